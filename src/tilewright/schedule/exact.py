"""How little a schedule can take, by constraint programming: where nodes run and in which order, for few nodes.

The model leaves out memory and that transfers wait for one another, so nothing takes less than its optimum. What it
keeps: engines do one thing at a time, nodes wait for one another and for tensors to cross channels, what comes from
outside crosses the channels out of there, and results have to get home.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from tilewright.base.solver import FEASIBLE, OPTIMAL, new_model, new_solver, solved
from tilewright.schedule.fabric import Fabric
from tilewright.schedule.nodes import Nodes, Numbers
from tilewright.schedule.scheduling import NodeCosts

if TYPE_CHECKING:
    from tilewright.base.solver import CpModel, IntervalVar, IntVar, LinearExprT

MOST_NODES = 500
"""That are worth it."""
EFFORT = 20.0
"""In CP-SAT's units of time, of which a second has about two here."""


@dataclass(frozen=True)
class Proof:
    """What was found."""

    bound: int
    """Cycles that no schedule takes less than."""
    places: tuple[int, ...]
    """By group, and the order of all nodes, of a good solution of the model; nothing where none was found."""
    order: tuple[int, ...]


class _Model:
    """Variables: by group its places, by node when it starts."""

    def __init__(
        self, nodes: Nodes, fabric: Fabric, costs: NodeCosts, allowed: Sequence[tuple[int, ...]], latest: int
    ) -> None:
        self.nodes, self.fabric, self.costs = nodes, fabric, costs
        self.model: CpModel = new_model()
        self.at: list[dict[int, IntVar]] = [{p: self.model.new_bool_var("") for p in places} for places in allowed]
        for chosen in self.at:
            self.model.add_exactly_one(chosen.values())
        self.starts = [self.model.new_int_var(0, latest, "") for _ in range(nodes.count)]
        self.ends: list[LinearExprT] = []
        engines: dict[int, list[IntervalVar]] = {}
        for node, start in enumerate(self.starts):
            length: LinearExprT = 0
            for place, here in self._at(node).items():
                cycles = int(costs.cycles[nodes.kind[node], place])
                length += cycles * here
                interval = self.model.new_optional_fixed_size_interval_var(start, cycles, here, "")
                engines.setdefault(place, []).append(interval)
            self.ends.append(start + length)
        for intervals in engines.values():
            self.model.add_no_overlap(intervals)
        self.last = self.model.new_int_var(0, latest, "")
        self.rates = _rates(fabric)

    def _at(self, node: int) -> dict[int, IntVar]:
        return self.at[int(self.nodes.group[node])]

    def _streamed(self, node: int, place: int, slot: int) -> bool:
        return bool(int(self.costs.streamed[self.nodes.kind[node], place]) >> slot & 1)

    def order(self) -> None:
        """Nodes wait for one another, and for what comes over channels."""
        nodes, outside = self.nodes, self.fabric.places.index(self.fabric.home)
        writes = _slots(nodes.writes_starts, nodes.write_tensor, nodes.write_slot)
        reads = _slots(nodes.reads_starts, nodes.read_tensor, nodes.read_slot)
        for node in range(nodes.count):
            for other in nodes.before[nodes.before_starts[node] : nodes.before_starts[node + 1]].tolist():
                self.model.add(self.starts[node] >= self.ends[other])
            for tensor, slot in reads[node]:
                maker = int(nodes.makers[tensor])
                if maker >= 0:
                    self._crossing(maker, dict(writes[maker])[tensor], node, slot, int(nodes.bits[tensor]))
            for place, here in self._at(node).items():
                given = [t for t, slot in reads[node] if nodes.makers[t] < 0 and not self._streamed(node, place, slot)]
                bits = sum(int(nodes.bits[tensor]) for tensor in set(given))
                width = sum(c.bits or inf for c in self.fabric.channels if self.fabric.home in c.sources)
                self.model.add(self.starts[node] >= int(bits / width if width else 0)).only_enforce_if(here)
                results = [t for t, slot in writes[node] if nodes.result[t] and not self._streamed(node, place, slot)]
                rate = self.rates[place][outside]
                late = max((int(nodes.bits[tensor] * rate) for tensor in results), default=0) if rate < inf else 0
                self.model.add(self.last >= self.ends[node] + late).only_enforce_if(here)

    def _crossing(self, maker: int, made: int, node: int, slot: int, bits: int) -> None:
        """A tensor goes from where it is made to where it is read."""
        for source, there in self._at(maker).items():
            for target, here in self._at(node).items():
                rate = self.rates[source][target]
                if self._streamed(maker, source, made) or self._streamed(node, target, slot) or not 0 < rate < inf:
                    continue
                late = self.starts[node] >= self.ends[maker] + int(bits * rate)
                self.model.add(late).only_enforce_if(there, here)


def prove(
    nodes: Nodes,
    fabric: Fabric,
    costs: NodeCosts,
    allowed: Sequence[tuple[int, ...]],
    latency: int,
    effort: float = EFFORT,
) -> Proof:
    """A bound below all schedules, one of which takes the given latency."""
    built = _Model(nodes, fabric, costs, allowed, latency)
    built.order()
    built.model.minimize(built.last)
    solver = new_solver(effort)
    if solved(solver, built.model) not in (OPTIMAL, FEASIBLE):
        return Proof(max(0, ceil(solver.best_objective_bound)), (), ())
    places = tuple(next(p for p, here in chosen.items() if solver.boolean_value(here)) for chosen in built.at)
    times: list[int] = [solver.value(start) for start in built.starts]
    order = np.lexsort((np.arange(nodes.count), times)).tolist()
    return Proof(ceil(solver.best_objective_bound - 1e-6), places, tuple(order))


def _rates(fabric: Fabric) -> list[list[float]]:
    """By source and target: cycles of a bit on the fastest way, by other places as well."""
    count = len(fabric.places)
    found = [[0.0 if one == other else inf for other in range(count)] for one in range(count)]
    for (source, target), way in fabric.routes.items():
        slowest = max((1 / (fabric.channels[link].bits or inf) for link in way), default=0.0)
        found[fabric.places.index(source)][fabric.places.index(target)] = slowest
    for one in range(count):
        for other in range(count):
            if fabric.sites[one] == fabric.sites[other]:
                found[one][other] = 0.0
    for middle in range(count):
        for one in range(count):
            for other in range(count):
                found[one][other] = min(found[one][other], found[one][middle] + found[middle][other])
    return found


def _slots(starts: Numbers, tensors: Numbers, slots: Numbers) -> list[list[tuple[int, int]]]:
    """By node: its tensors with the slots that they are in."""
    pairs: list[list[int]] = np.stack([tensors, slots], 1).tolist()
    bounds: list[int] = starts.tolist()
    return [[(tensor, slot) for tensor, slot in pairs[low:high]] for low, high in pairwise(bounds)]
