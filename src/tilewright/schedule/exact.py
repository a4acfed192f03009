"""How little a schedule can take, by constraint programming: where nodes run and in which order, for few nodes.

The model leaves out memory and that transfers wait for one another, so nothing takes less than its optimum. What it
keeps: engines do one thing at a time, nodes wait for one another and for tensors to cross channels, what comes from
outside crosses the channels out of there, and results have to get home.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

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


class Proof(Struct, frozen=True):
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
        self.starts, self.ends = ([self.model.new_int_var(0, latest, "") for _ in range(nodes.count)] for _ in range(2))
        engines: dict[int, list[IntervalVar]] = {}
        for node, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            cycles = {place: int(costs.cycles[nodes.kind[node], place]) for place in self._at(node)}
            self.model.add(end - start == self._where(node, cycles))
            for place, here in self._at(node).items():
                interval = self.model.new_optional_fixed_size_interval_var(start, cycles[place], here, "")
                engines.setdefault(place, []).append(interval)
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
            before: list[int] = nodes.before[nodes.before_starts[node] : nodes.before_starts[node + 1]].tolist()
            for other in before:
                self.model.add(self.starts[node] >= self.ends[other])
            for tensor, slot in reads[node]:
                maker = int(nodes.makers[tensor])
                if maker >= 0:
                    self._crossing(maker, dict(writes[maker])[tensor], node, slot, int(nodes.bits[tensor]))
            given, late = self._outside(node, reads[node]), self._home(node, writes[node], outside)
            self.model.add(self.starts[node] >= self._where(node, given))
            self.model.add(self.last - self.ends[node] >= self._where(node, late))

    def _where(self, node: int, values: Mapping[int, int]) -> LinearExprT:
        """Of values by place, the one of the place where a node is."""
        return sum(values[place] * here for place, here in self._at(node).items())

    def _outside(self, node: int, reads: Sequence[tuple[int, int]]) -> dict[int, int]:
        """By place: cycles in which all that a node needs from outside leaves there."""
        nodes = self.nodes
        width = sum(c.bits or inf for c in self.fabric.channels if self.fabric.home in c.sources) or inf
        found: dict[int, int] = {}
        for place in self._at(node):
            given = {t for t, slot in reads if nodes.makers[t] < 0 and not self._streamed(node, place, slot)}
            found[place] = int(sum(int(nodes.bits[tensor]) for tensor in given) / width)
        return found

    def _home(self, node: int, writes: Sequence[tuple[int, int]], outside: int) -> dict[int, int]:
        """By place: cycles until a node's results are at home."""
        found: dict[int, int] = {}
        for place in self._at(node):
            rate = self.rates[place][outside]
            results = [t for t, slot in writes if self.nodes.result[t] and not self._streamed(node, place, slot)]
            bits = max((int(self.nodes.bits[tensor]) for tensor in results), default=0)
            found[place] = int(bits * rate) if rate < inf else 0
        return found

    def _crossing(self, maker: int, made: int, node: int, slot: int, bits: int) -> None:
        """A tensor goes from where it is made to where it is read."""
        for source, there in self._at(maker).items():
            for target, here in self._at(node).items():
                rate = self.rates[source][target]
                if self._streamed(maker, source, made) or self._streamed(node, target, slot) or not 0 < rate < inf:
                    continue
                late = int(bits * rate)
                self.model.add(self.starts[node] - self.ends[maker] >= late * (there + here - 1))


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
    order = sorted(range(nodes.count), key=lambda node: (times[node], node))
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
