"""What a group reads once, loaded while the group before it still works, where there are bytes for it by then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group, Stage, TileBuffer
from tilewright.core.platform import Platform
from tilewright.core.tiles import Member, member, trace
from tilewright.cost.tiles import group_cost
from tilewright.plan.packing import round_up

Bytes = tuple[int, int]


@dataclass
class Prefetch:
    """Groups of a plan, with what else is in the engine's memory."""

    graph: Graph
    platform: Platform
    choices: Sequence[Choice]
    groups: list[Group]
    occupied: list[list[Bytes]]
    """Bytes of the engine's memory that are taken during each group: its workspace, and tensors that stay."""
    capacity: int
    made: Mapping[str, int]
    """The group that writes each tensor between groups, by its own name and those of its views."""
    sources: Mapping[str, str]
    """The memory of each tensor outside the engine's."""
    stages: Sequence[Stage]

    def run(self) -> None:
        """Moves loads of one group after the other into the one before it."""
        for number in range(1, len(self.groups)):
            before = self.groups[number]
            for index in self._once(number):
                self._earlier(number, index)
            after = self.groups[number]
            if after is not before:
                gain = self._cycles(before) - self._cycles(after)
                self.groups[number] = replace(after, cycles=after.cycles - gain)

    def _once(self, number: int) -> Iterator[int]:
        """Buffers that a group fills once, with something that is there before the group before it begins."""
        group = self.groups[number]
        members = [
            member(self.graph, self.graph.nodes[work.step], self.choices[work.step].kernel) for work in group.works
        ]
        own = {use.tensor for mine in members for use in mine.uses if use.writes}
        for index, buffer in enumerate(group.buffers):
            dma = self.platform.dma(self._source(number, buffer), self.platform.cores.memory)
            there = buffer.tensor not in own and self.made.get(buffer.tensor, -1) < number - 1
            beside = dma is not None and not dma.by_cores and not dma.through
            ready = there and beside and buffer.slots == 1 and not self._arriving(number, buffer)
            if ready and self._stays(group, members, index):
                yield index

    def _source(self, number: int, buffer: TileBuffer) -> str:
        for stage in self.stages:
            if (stage.tensor, stage.pack) == (buffer.tensor, buffer.pack) and stage.first <= number <= stage.last:
                return stage.place.space
        return self.sources[buffer.tensor]

    def _arriving(self, number: int, buffer: TileBuffer) -> bool:
        """Whether a copy in a nearer memory is complete only when the group begins."""
        return any(
            (stage.tensor, stage.pack) == (buffer.tensor, buffer.pack) and stage.first == number
            for stage in self.stages
        )

    def _stays(self, group: Group, members: Sequence[Member], index: int) -> bool:
        """Whether a buffer holds the same at every step."""
        uses = [
            (position, key)
            for position, work in enumerate(group.works)
            for key, bound in work.buffers.items()
            if bound == index
        ]
        start = [0] * len(group.loops)
        first = trace(members, group.loops, group.keep, start)
        for loop in range(len(group.loops)):
            later = trace(members, group.loops, group.keep, [int(k == loop) for k in range(len(start))])
            if any(first.regions[position][key] != later.regions[position][key] for position, key in uses):
                return False
        return bool(uses)

    def _earlier(self, number: int, index: int) -> None:
        group, buffer = self.groups[number], self.groups[number].buffers[index]
        size = round_up(buffer.bytes, self.platform.alignment)
        here = (buffer.offset, buffer.offset + size)
        # Where it lies now, or outside of all that both groups have.
        before = self.occupied[number - 1]
        free = here if not any(_meet(here, other) for other in before) else self._gap(number, size)
        if free is None:
            return
        before.append(free)
        if free != here:
            self.occupied[number].append(free)
        moved = replace(buffer, offset=free[0], early=True)
        buffers = (*group.buffers[:index], moved, *group.buffers[index + 1 :])
        self.groups[number] = replace(group, buffers=buffers)

    def _gap(self, number: int, size: int) -> Bytes | None:
        start = 0
        for low, high in sorted([*self.occupied[number - 1], *self.occupied[number]]):
            if start + size <= low:
                break
            start = max(start, high)
        return (start, start + size) if start + size <= self.capacity else None

    def _cycles(self, group: Group) -> float:
        return group_cost(self.graph, self.platform, self.choices, group, self.sources).cycles


def _meet(a: Bytes, b: Bytes) -> bool:
    return a[0] < b[1] and b[0] < a[1]
