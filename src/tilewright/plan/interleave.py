"""The order of nodes in which the cores and engines beside them have something to do at the same time.

A list schedule: an engine that is free takes, of the nodes whose operands are there, the one with the most to be done
behind it, the first in the order given where several have the same. Then whatever other engines compute is put off as
long as it is done one node of the cores before these need it: few tensors wait to be read, and there is time to move
them. What begins while the cores compute a node comes before that node, to be started beside it (`plan.overlap`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from heapq import heappop, heappush
from math import inf

from msgspec import Struct, field

from tilewright.core.graph import Graph
from tilewright.core.op import is_view
from tilewright.core.states import links

GAIN = 0.01
"""The share of all cycles that has to be saved for another plan to be worth its while."""


class Interleaved(Struct, frozen=True):
    """A graph in such an order."""

    graph: Graph
    beside: frozenset[str]
    """First results of nodes that another engine computes beside nodes of the cores that come behind them."""


def interleaved(graph: Graph, engines: Sequence[str], cycles: Sequence[float]) -> Interleaved | None:
    """None where little can be done at the same time.

    `engines` are those of the nodes, the cores "", and `cycles` what each takes there.
    """
    if not any(engines):
        return None
    found = _ListSchedule(graph, engines, cycles)
    if max(found.ends, default=0.0) > (1 - GAIN) * sum(cycles):
        return None
    beside = frozenset(graph.nodes[index].outputs[0] for index in found.beside())
    return Interleaved(graph.with_nodes([graph.nodes[index] for index in found.order()]), beside)


class _Lane(Struct):
    """An engine, with the nodes whose operands are there soon, and those for which they are, the most urgent first."""

    free: float = 0.0
    soon: list[tuple[float, float, int]] = field(default_factory=list[tuple[float, float, int]])
    ready: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    @property
    def next(self) -> float:
        """When the next node can begin."""
        if self.ready:
            return self.free
        return max(self.free, self.soon[0][0]) if self.soon else inf

    def take(self) -> int:
        """That node."""
        now = self.next
        while self.soon and self.soon[0][0] <= now:
            heappush(self.ready, heappop(self.soon)[1:])
        return heappop(self.ready)[1]


class _ListSchedule:
    """When each node of a graph begins and ends."""

    def __init__(self, graph: Graph, engines: Sequence[str], cycles: Sequence[float]) -> None:
        self._graph, self._engines, self._cycles = graph, engines, cycles
        count = len(graph.nodes)
        self.starts, self.ends = [0.0] * count, [0.0] * count
        lanes = {engine: _Lane() for engine in engines}
        missing = [len(own) for own in self._before]
        done = [index for index in range(count) if not missing[index] and self._come(index, lanes)]
        for _ in range(count):
            if not done:
                lane = min(lanes.values(), key=lambda each: each.next)
                start, index = lane.next, lane.take()
                self.starts[index], self.ends[index] = start, start + cycles[index]
                lane.free = self.ends[index]
                done.append(index)
            for other in self._behind[done.pop()]:
                missing[other] -= 1
                if not missing[other] and self._come(other, lanes):
                    done.append(other)
        self._put_off()

    def _put_off(self) -> None:
        """Moves what other engines compute to as late as it should be, without change to the order on any of them."""
        last = max(self.ends, default=0.0)
        free = dict.fromkeys(self._engines, last)
        working = sorted(start for start, engine in zip(self.starts, self._engines, strict=True) if not engine)
        for index in sorted(range(len(self.starts)), key=lambda each: (self.starts[each], each), reverse=True):
            engine = self._engines[index]
            if engine:
                due = min((self._needed(other, working) for other in self._behind[index]), default=last)
                self.ends[index] = max(self.ends[index], min(due, free[engine]))
                self.starts[index] = free[engine] = self.ends[index] - self._cycles[index]

    def _needed(self, index: int, working: Sequence[float]) -> float:
        """When the operands of a node should be there: for the cores when they begin with the node before it."""
        start = self.starts[index]
        if is_view(self._graph.nodes[index]):
            return min((self._needed(other, working) for other in self._behind[index]), default=inf)
        before = bisect_left(working, start) - 1
        return start if self._engines[index] or before < 0 else working[before]

    def _come(self, index: int, lanes: dict[str, _Lane]) -> bool:
        """The operands of a node are known; whether it is a view, with which nothing is to be done."""
        there = max((self.ends[other] for other in self._before[index]), default=0.0)
        if not is_view(self._graph.nodes[index]):
            heappush(lanes[self._engines[index]].soon, (there, -self._left[index], index))
            return False
        self.starts[index] = self.ends[index] = there
        return True

    @cached_property
    def _before(self) -> list[set[int]]:
        """The nodes that each one waits for."""
        linked = links(self._graph)
        made = {
            name: index
            for index, (node, link) in enumerate(zip(self._graph.nodes, linked, strict=True))
            for name in (*node.made, *link.makes)
        }
        return [
            {made[name] for name in (*node.reads, *link.needs) if name in made}
            for node, link in zip(self._graph.nodes, linked, strict=True)
        ]

    @cached_property
    def _behind(self) -> list[list[int]]:
        """The nodes that wait for each one."""
        found: list[list[int]] = [[] for _ in self._before]
        for index, own in enumerate(self._before):
            for other in sorted(own):
                found[other].append(index)
        return found

    @cached_property
    def _left(self) -> list[float]:
        """Cycles from the start of each node to the end of all, if nothing had to wait for an engine."""
        found = [0.0] * len(self._cycles)
        for index in reversed(range(len(found))):
            found[index] = self._cycles[index] + max((found[other] for other in self._behind[index]), default=0.0)
        return found

    def beside(self) -> list[int]:
        """Nodes of other engines during which the cores work."""
        working = [index for index, engine in enumerate(self._engines) if not engine and self._cycles[index]]
        spans = sorted((self.starts[index], self.ends[index]) for index in working)
        found: list[int] = []
        for index, engine in enumerate(self._engines):
            # The last one that begins before it ends, as cores do one thing after the other.
            at = bisect_left(spans, (self.ends[index], 0.0)) - 1
            if engine and at >= 0 and spans[at][1] > self.starts[index]:
                found.append(index)
        return found

    def order(self) -> list[int]:
        """Nodes of the cores as they begin, each behind what other engines begin before its end, as far as all that is
        before these is there by then; views right behind what they show."""
        found: dict[int, None] = {}

        def add(index: int) -> None:
            found[index] = None
            for other in self._behind[index]:
                if is_view(self._graph.nodes[other]) and all(own in found for own in self._before[other]):
                    add(other)

        def apart(until: float) -> None:
            for index in list(others):
                if self.starts[index] < until and all(own in found for own in self._before[index]):
                    others.remove(index)
                    add(index)

        nodes = sorted(range(len(self._engines)), key=lambda index: (self.starts[index], index))
        computing = [index for index in nodes if not is_view(self._graph.nodes[index])]
        others = [index for index in computing if self._engines[index]]
        for index in nodes:
            if is_view(self._graph.nodes[index]) and not self._before[index]:
                add(index)
        for index in computing:
            if not self._engines[index]:
                apart(self.ends[index])
                add(index)
        apart(inf)
        return list(found)
