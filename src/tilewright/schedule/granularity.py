"""How finely each operation is cut, and over how many engines: one is changed after another as long as that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilewright.core.split import Loops, OperationSplit, Parts
from tilewright.errors import TilewrightError
from tilewright.schedule.costs import NodePrices
from tilewright.schedule.fabric import Fabric
from tilewright.schedule.network import Operation, OperationGraph
from tilewright.schedule.nodes import split_network
from tilewright.schedule.placement import ROLES, loop_named
from tilewright.schedule.scheduling import NodeCosts, Priority, Scheduling
from tilewright.schedule.search import Objective, Tried, value

ROWS, CHANNELS = ROLES[4][2], ROLES[4][1]
"""What operations are cut along in time, and across engines."""
GAIN = 1e-3
"""The part by which a change has to be better."""

Allocation = Mapping[str, tuple[int, ...]]
"""By operation: the place of each slice."""


@dataclass(frozen=True)
class CutNetwork:
    """A network cut and allocated in some way, and what that comes to."""

    splits: Mapping[str, OperationSplit]
    scheduling: Scheduling
    costs: NodeCosts
    tried: Tried

    @property
    def allocation(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for (name, _), place in zip(self.scheduling.nodes.groups, self.tried.places, strict=True):
            found[name] = (*found.get(name, ()), place)
        return found


class Cutter:
    """Cuts one network for one machine in many ways."""

    def __init__(
        self,
        network: OperationGraph,
        fabric: Fabric,
        prices: NodePrices,
        engines: Mapping[str, tuple[str, ...]],
        priority: Priority,
        progress: Callable[[str], None] = lambda _stage: None,
    ) -> None:
        self.network, self.fabric, self.engines = network, fabric, engines
        self._prices, self._progress = prices, progress
        self._priority: Priority = priority

    def scheduling(self, splits: Mapping[str, OperationSplit]) -> tuple[Scheduling, NodeCosts]:
        """What schedules a network that is cut in some way."""
        nodes = split_network(self.network, splits, self.fabric.slots)
        costs = self._prices.costs(
            nodes, self.engines, progress=lambda stage: self._progress(f"{nodes.count:,} nodes: {stage}")
        )
        return Scheduling(nodes, self.fabric, costs, self._priority), costs

    def refined(self, first: CutNetwork, objective: Objective) -> CutNetwork:
        """The best of changes to one operation after another, those with most work first."""
        best = first
        for operation in self._by_work(best):
            self._progress(f"ways to cut {operation.name}")
            best = self._changed(best, operation, objective)
        return best

    def _by_work(self, cut: CutNetwork) -> list[Operation]:
        """Operations by the cycles that they take."""
        nodes = cut.scheduling.nodes
        places = np.array(cut.tried.places)[nodes.group]
        work = np.bincount(nodes.operation, cut.costs.cycles[nodes.kind, places], len(nodes.tiles))
        return [self.network.operations[number] for number in np.argsort(-work, kind="stable").tolist()]

    def _changed(self, best: CutNetwork, operation: Operation, objective: Objective) -> CutNetwork:
        for split in self._ways(operation, best.splits.get(operation.name, OperationSplit())):
            splits = {**best.splits, operation.name: split}
            try:
                scheduling, costs = self.scheduling(splits)
            except TilewrightError:
                continue  # its nodes fit nowhere
            for allocation in self._allocations(best, operation, split):
                places = tuple(allocation[name][part] for name, part in scheduling.nodes.groups)
                try:
                    found = scheduling.evaluate(np.array(places))
                except TilewrightError:
                    continue
                tried = Tried(places, found.latency, found.energy)
                if value(tried, objective) < value(best.tried, objective) * (1 - GAIN):
                    best = CutNetwork(splits, scheduling, costs, tried)
        return best

    def _ways(self, operation: Operation, split: OperationSplit) -> Iterator[OperationSplit]:
        """Other ways to cut an operation: more or less finely in time, over more or fewer engines."""
        row, channel = (self._loop(operation, name) for name in (ROWS, CHANNELS))
        ways: dict[OperationSplit, None] = {}
        if row is not None:
            size = operation.domain.dims[row]
            now = next((size if parts == "all" else parts for name, parts in split.within if name == row), 1)
            for parts in (now * 2, now // 2, 1, now * 4, size):
                ways[replace(split, within=_cut(row, min(max(parts, 1), size)))] = None
        count = len(self.engines.get(operation.name, self.fabric.engines))
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

    def _allocations(self, best: CutNetwork, operation: Operation, split: OperationSplit) -> Iterator[Allocation]:
        """All slices where the operation is now, or each on another engine, the least busy first."""
        now = best.allocation
        slices = 1
        for _, parts in split.across:
            slices *= parts if parts != "all" else 1
        mine = now[operation.name]
        if slices == len(mine):
            yield now
        else:
            yield {**now, operation.name: (mine[0],) * slices}
        if slices > 1:
            able = [self.fabric.places.index(name) for name in self.engines.get(operation.name, self.fabric.engines)]
            busy = self._busy(best)
            order = sorted(able, key=lambda place: (place != mine[0], busy[place]))
            yield {**now, operation.name: tuple(order[number % len(order)] for number in range(slices))}

    def _busy(self, cut: CutNetwork) -> list[float]:
        nodes = cut.scheduling.nodes
        places = np.array(cut.tried.places)[nodes.group]
        return np.bincount(places, cut.costs.cycles[nodes.kind, places], len(self.fabric.places)).tolist()


def _cut(loop: str, parts: Parts) -> Loops:
    return ((loop, parts),) if parts != 1 else ()
