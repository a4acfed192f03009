"""How each operation is cut, over how many engines, and where fusion ends: changed at one operation at a time.

Schedules that are evaluated come out of one budget, so that ways to search can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.split import Loops, OperationSplit, Parts
from tilewright.errors import TilewrightError
from tilewright.schedule.fabric import Fabric
from tilewright.schedule.genetic import mutated
from tilewright.schedule.network import Operation, OperationGraph
from tilewright.schedule.nodes import Nodes, split_network
from tilewright.schedule.placement import ROLES, OperationPlacement, loop_named
from tilewright.schedule.scheduling import NodeCosts, Priority, Rules, Scheduling
from tilewright.schedule.search import COOLING, HEAT, AllocationResult, SearchOptions, Tried, choices, search

ROWS, CHANNELS = ROLES[4][2], ROLES[4][1]
"""What operations are cut along in time, and across engines."""
UNIFORM, AGAIN = 0.2, 0.1
"""Of evaluations: the part to try ways to cut all operations alike, and of the search for engines at the end."""
ENGINES = 0.4
"""How often a change is one of engines alone."""
EARLY = 3.0
"""How much more often operations with much work are changed: the first third of them in 63 of 100 changes."""
REFUSED = 50
"""Changes without a schedule, for each operation, until it is enough."""
LEAST = 8
"""Evaluations that a search is worth."""

Allocation = Mapping[str, tuple[int, ...]]
"""By operation: the place of each slice."""


class Granularity(Struct, frozen=True):
    """How a network is cut."""

    splits: Mapping[str, OperationSplit] = field(default_factory=lambda: MappingProxyType({}))
    cuts: frozenset[str] = frozenset()
    """Operations at which fusion ends: nothing from there on begins before all before is done."""
    priority: Priority = "latency"


class CutNetwork(Struct, frozen=True):
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
        self._keep(CutNetwork(how, scheduling, costs, found.best, found))
        if found.stopped:
            raise KeyboardInterrupt
        return found.best

    def refined(self) -> None:
        """Changes the best way to cut the network a little at a time: one operation is cut in another way, those with
        most work most often, or slices go to other engines. Worse ones are taken the less the longer it runs. Then
        engines are chosen once more."""
        random = Random(self.options.seed)
        assert self.best is not None
        now, begin, refused = self.best, self.evaluated, 0
        last = max(int(AGAIN * self.options.evaluations), LEAST)
        while self.left > last and refused < REFUSED * len(self.network.operations):
            self._progress(f"{self.evaluated:,} of {self.options.evaluations:,}: ways to cut operations")
            before = self.evaluated
            change = self._moved if random.random() < ENGINES else self._changed
            new = change(now, random)
            refused = 0 if self.evaluated > before else refused + 1
            if new is None:
                continue
            self._keep(new)
            heat = HEAT * (COOLING / HEAT) ** ((before - begin) / (self.options.evaluations - begin))
            if self.options.taken(now.tried, new.tried, heat, random):
                now = new
        if self.left >= LEAST:
            self.searched(self.best.how, self.left, self.best.tried.places)

    def _keep(self, one: CutNetwork) -> None:
        """If it is better."""
        if self.best is None or self.options.key(one.tried) < self.options.key(self.best.tried):
            self.best = one

    def _by_work(self, cut: CutNetwork) -> list[Operation]:
        """Operations by the cycles that they take."""
        nodes = cut.scheduling.nodes
        places = np.array(cut.tried.places)[nodes.group]
        work = np.bincount(nodes.operation, cut.costs.cycles[nodes.kind, places], len(nodes.tiles))
        return [self.network.operations[number] for number in np.argsort(-work, kind="stable").tolist()]

    def _changed(self, now: CutNetwork, random: Random) -> CutNetwork | None:
        """With an operation cut in another way, on the engines that are best for it."""
        operations = self._by_work(now)
        operation = operations[min(int(random.expovariate(EARLY) * len(operations)), len(operations) - 1)]
        ways = list(self._ways(operation, now.how))
        if not ways:
            return None
        how = random.choice(ways)
        try:
            scheduling, costs = self.scheduling(how)
        except TilewrightError:
            return None  # its nodes fit nowhere
        rows = [
            [allocation[name][part] for name, part in scheduling.nodes.groups]
            for allocation in self._allocations(now, operation, scheduling, costs)
        ]
        return self._best(how, scheduling, costs, rows)

    def _moved(self, now: CutNetwork, random: Random) -> CutNetwork | None:
        """With a slice or a few on other engines."""
        allowed = self.choices(now.scheduling, now.costs)
        movable = [group for group, places in enumerate(allowed) if len(places) > 1]
        if not movable:
            return None
        row = mutated(now.tried.places, movable, allowed, random)
        return self._best(now.how, now.scheduling, now.costs, [row])

    def _best(
        self, how: Granularity, scheduling: Scheduling, costs: NodeCosts, rows: Sequence[Sequence[int]]
    ) -> CutNetwork | None:
        """The best of some allocations, if any can be scheduled."""
        found = scheduling.evaluate_many(np.array(rows[: self.left]), self.options.workers)
        self.evaluated += len(found[0])
        values = zip(rows, *(column.tolist() for column in found), strict=False)
        tried = [Tried(tuple(row), *value) for row, *value in values if value[0] >= 0]
        return CutNetwork(how, scheduling, costs, min(tried, key=self.options.key)) if tried else None

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
