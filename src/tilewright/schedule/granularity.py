"""How each operation is cut, over how many engines, and where fusion ends: one is changed after another if that helps.

Schedules that are evaluated come out of one budget, so that ways to search can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from tilewright.core.split import Loops, OperationSplit, Parts
from tilewright.errors import TilewrightError
from tilewright.schedule.fabric import Fabric
from tilewright.schedule.network import Operation, OperationGraph
from tilewright.schedule.nodes import Nodes, split_network
from tilewright.schedule.placement import ROLES, OperationPlacement, loop_named
from tilewright.schedule.scheduling import NodeCosts, Priority, Rules, Scheduling
from tilewright.schedule.search import AllocationResult, SearchOptions, Tried, choices, search

ROWS, CHANNELS = ROLES[4][2], ROLES[4][1]
"""What operations are cut along in time, and across engines."""
GAIN = 1e-3
"""The part by which a change has to be better."""
UNIFORM, AGAIN = 0.3, 0.1
"""Of evaluations: the part to try ways to cut all operations alike, and of each search after a round of changes."""
LEAST = 8
"""Evaluations that a search is worth."""

Allocation = Mapping[str, tuple[int, ...]]
"""By operation: the place of each slice."""


@dataclass(frozen=True)
class Granularity:
    """How a network is cut."""

    splits: Mapping[str, OperationSplit] = field(default_factory=lambda: MappingProxyType({}))
    cuts: frozenset[str] = frozenset()
    """Operations at which fusion ends: nothing from there on begins before all before is done."""
    priority: Priority = "latency"


@dataclass(frozen=True)
class CutNetwork:
    """A network cut and allocated in some way, and what that comes to."""

    how: Granularity
    scheduling: Scheduling
    costs: NodeCosts
    tried: Tried
    found: AllocationResult | None = None
    """Of the search behind it."""

    @property
    def allocation(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for (name, _), place in zip(self.scheduling.nodes.groups, self.tried.places, strict=True):
            found[name] = (*found.get(name, ()), place)
        return found


class Cutter:
    """Cuts one network for one machine in many ways, and counts the schedules that it evaluates."""

    def __init__(
        self,
        network: OperationGraph,
        fabric: Fabric,
        costs: Callable[[Nodes], NodeCosts],
        placement: OperationPlacement,
        options: SearchOptions,
        *,
        rules: Rules = "own",
        progress: Callable[[str], None] = lambda _stage: None,
    ) -> None:
        self.network, self.fabric, self.placement, self.options = network, fabric, placement, options
        self._costs, self._progress = costs, progress
        self._rules: Rules = rules
        self.evaluated = 0
        self.best: CutNetwork | None = None

    @property
    def left(self) -> int:
        return self.options.evaluations - self.evaluated

    def scheduling(self, how: Granularity) -> tuple[Scheduling, NodeCosts]:
        """What schedules a network that is cut in some way."""
        padded = self._rules == "stream"
        nodes = split_network(self.network, how.splits, self.fabric.slots, padded=padded, cuts=how.cuts)
        costs = self._costs(nodes)
        return Scheduling(nodes, self.fabric, costs, how.priority, self._rules), costs

    def ordered(self, cut: CutNetwork, order: Sequence[int]) -> Scheduling:
        """The same nodes with an order that is given."""
        return Scheduling(cut.scheduling.nodes, self.fabric, cut.costs, order, self._rules)

    def choices(self, scheduling: Scheduling, costs: NodeCosts) -> list[tuple[int, ...]]:
        """By group: the places that it may have."""
        return choices(scheduling, costs, self.placement.engines, self.placement.fixed)

    def searched(self, how: Granularity, evaluations: int, first: tuple[int, ...] = ()) -> Tried:
        """The best allocation of a network that is cut in some way. An interrupt ends it with the best so far."""
        scheduling, costs = self.scheduling(how)
        found = search(
            scheduling,
            costs,
            self.choices(scheduling, costs),
            replace(self.options, evaluations=max(evaluations, 1)),
            first=first,
            progress=lambda stage: self._progress(f"{scheduling.nodes.count:,} nodes: {stage}"),
        )
        self.evaluated += found.evaluated
        self._keep(CutNetwork(how, scheduling, costs, found.best, found), gain=0.0)
        if found.stopped:
            raise KeyboardInterrupt
        return found.best

    def refined(self) -> None:
        """Changes the best way to cut the network at one operation after another, those with most work first, as often
        as that helps; then engines are chosen once more."""
        while self.left > 0 and self.best:
            before = self.best
            for operation in self._by_work(before):
                self._progress(f"{self.evaluated:,} of {self.options.evaluations:,}: ways to cut {operation.name}")
                self._changed(self.best, operation)
            last = self.best is before
            again = self.left if last else min(self.left, max(int(AGAIN * self.options.evaluations), LEAST))
            if again < LEAST:
                return
            self.searched(self.best.how, again, self.best.tried.places)
            if self.best is before:
                return

    def _keep(self, one: CutNetwork, gain: float = GAIN) -> None:
        """If it is better by some part."""
        if self.best is not None:
            (more, value), (most, old) = self.options.key(one.tried), self.options.key(self.best.tried)
            if not (more < most or (more == most and value < old * (1 - gain))):
                return
        self.best = one

    def _by_work(self, cut: CutNetwork) -> list[Operation]:
        """Operations by the cycles that they take."""
        nodes = cut.scheduling.nodes
        places = np.array(cut.tried.places)[nodes.group]
        work = np.bincount(nodes.operation, cut.costs.cycles[nodes.kind, places], len(nodes.tiles))
        return [self.network.operations[number] for number in np.argsort(-work, kind="stable").tolist()]

    def _changed(self, best: CutNetwork, operation: Operation) -> None:
        for how in self._ways(operation, best.how):
            if self.left <= 0:
                break
            try:
                scheduling, costs = self.scheduling(how)
            except TilewrightError:
                continue  # its nodes fit nowhere
            rows = [
                [allocation[name][part] for name, part in scheduling.nodes.groups]
                for allocation in self._allocations(best, operation, scheduling, costs)
            ]
            found = scheduling.evaluate_many(np.array(rows[: self.left]), self.options.workers)
            self.evaluated += len(found[0])
            for row, *values in zip(rows, *(column.tolist() for column in found), strict=False):
                if values[0] >= 0:
                    self._keep(CutNetwork(how, scheduling, costs, Tried(tuple(row), *values)))

    def _ways(self, operation: Operation, how: Granularity) -> Iterator[Granularity]:
        """Other ways to cut a network at an operation: more or less finely in time, over more or fewer engines, and
        with fusion ended there or not."""
        name = operation.name
        split = how.splits.get(name, OperationSplit())
        if name not in self.placement.fixed:
            for other in self._splits(operation, split):
                yield replace(how, splits={**how.splits, name: other})
        if operation is not self.network.operations[0]:
            yield replace(how, cuts=how.cuts ^ {name})

    def _splits(self, operation: Operation, split: OperationSplit) -> Iterator[OperationSplit]:
        row, channel = (self._loop(operation, name) for name in (ROWS, CHANNELS))
        ways: dict[OperationSplit, None] = {}
        if row is not None:
            size = operation.domain.dims[row]
            now = next((size if parts == "all" else parts for name, parts in split.within if name == row), 1)
            for parts in (now * 2, now // 2, 1, now * 4, size):
                ways[replace(split, within=_cut(row, min(max(parts, 1), size)))] = None
        count = len(self.placement.engines[operation.name])
        for loop in filter(None, (channel, row)):
            for parts in {2, count}:
                if 1 < parts <= min(count, operation.domain.dims[loop]):
                    ways[replace(split, across=((loop, parts),))] = None
        ways[replace(split, across=())] = None
        ways.pop(split, None)
        yield from ways

    def _loop(self, operation: Operation, name: str) -> str | None:
        loop = loop_named(operation, name)
        usable = loop in operation.domain.parallel and operation.domain.dims[loop] > 1 if loop else False
        return loop if usable else None

    def _allocations(
        self, best: CutNetwork, operation: Operation, scheduling: Scheduling, costs: NodeCosts
    ) -> Iterator[Allocation]:
        """All slices where the operation is now, each on another engine, the least busy first, or each where it is done
        first beside what engines do already."""
        now = best.allocation
        nodes = scheduling.nodes
        groups = [number for number, (name, _) in enumerate(nodes.groups) if name == operation.name]
        mine = now[operation.name]
        yield now if len(groups) == len(mine) else {**now, operation.name: (mine[0],) * len(groups)}
        cycles = [costs.cycles[nodes.kind[nodes.group == group]].sum(0) for group in groups]
        able = [self.fabric.places.index(name) for name in self.placement.engines[operation.name]]
        able = [place for place in able if all(each[place] >= 0 for each in cycles)]
        if len(groups) == 1 or not able:
            return
        busy = self._busy(best, operation)
        order = sorted(able, key=lambda place: (place != mine[0], busy[place]))
        yield {**now, operation.name: tuple(order[number % len(order)] for number in range(len(groups)))}
        places: list[int] = []
        for each in cycles:
            places.append(min(able, key=lambda place, each=each: (busy[place] + int(each[place]), place)))
            busy[places[-1]] += int(each[places[-1]])
        yield {**now, operation.name: tuple(places)}

    def _busy(self, cut: CutNetwork, operation: Operation) -> list[float]:
        """By place: cycles of work on all other operations."""
        nodes = cut.scheduling.nodes
        others = nodes.operation != self.network.operations.index(operation)
        places = np.array(cut.tried.places)[nodes.group]
        cycles = cut.costs.cycles[nodes.kind, places]
        return np.bincount(places[others], cycles[others], len(self.fabric.places)).tolist()


def _cut(loop: str, parts: Parts) -> Loops:
    return ((loop, parts),) if parts != 1 else ()
