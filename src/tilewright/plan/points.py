"""Groups and how far their moves go -> moves and runs, at points of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.moves import Move, Point, Run, Tiles
from tilewright.core.plan import CONSTANT_ALIGNMENT, Group, Stage, TileBuffer
from tilewright.timeline.parts import Facts


class Crossing(Struct, frozen=True):
    """How far moves of a buffer go beyond its group."""

    early: int = 0
    """How many groups before this one it, or its first slot, is loaded; then it has its bytes during those, too."""
    late: int = 0
    """How many groups behind this one the last store from it is awaited, likewise; 1 where there are several stores; 0
    where that is in the group in which it is stored."""
    kept: int = 0
    """How many groups before this one left the whole tensor in these bytes, held since then; 0 where it is loaded."""


class Overlap(Struct, frozen=True):
    """Groups of the cores beside which another engine computes a group before them."""

    first: int
    """Beside which it is started."""
    last: int
    """Beside which it is awaited."""
    inside: bool = False
    """Whether that group needs it, and awaits it itself."""


WITHIN = Crossing()
"""Of a buffer that is loaded and stored while its own group works."""
Crossings = Mapping[tuple[int, int], Crossing]
"""By group and buffer; all others are `WITHIN` their groups."""
Overlaps = Mapping[int, Overlap]
"""By group, which has one step and one node; all others are computed before the next one begins."""


def points(
    groups: Sequence[Group],
    facts: Sequence[Facts],
    stages: Sequence[Stage],
    crossings: Crossings,
    overlaps: Overlaps = MappingProxyType({}),
    constants: Mapping[str, int] = MappingProxyType({}),
) -> tuple[tuple[Move, ...], tuple[Run, ...]]:
    """All moves and runs of some groups, one behind the other; `constants` are bytes of all constants."""
    found = [_Points(number, groups, facts, crossings, overlaps) for number in range(len(groups))]
    moves = [found[stage.start].stage(number, stage) for number, stage in enumerate(stages)]
    moves += [move for mine in found for move in mine.moves()]
    return tuple(_joined(groups, moves, constants)), tuple(run for mine in found for run in mine.runs())


def _joined(groups: Sequence[Group], moves: Sequence[Move], constants: Mapping[str, int]) -> Iterator[Move]:
    """The same moves. Loads that are started together, and awaited together, come as they lie in memory; of neighbours
    among them that no other load brings, later ones join the first, as constants are laid out in this order."""
    loads = Counter(groups[move.group].buffers[move.buffer].tensor for move in moves if move.kind == "load")

    def whole(buffer: TileBuffer) -> bool:
        size = constants.get(buffer.tensor)
        alone = buffer.slots == 1 and loads[buffer.tensor] == 1
        return alone and not buffer.pack and buffer.within < 0 and buffer.bytes == size

    for (kind, group, tiles, *_), each in groupby(moves, lambda m: (m.kind, m.group, m.tiles, m.issue, m.wait)):
        if kind != "load" or tiles != "first":
            yield from each
            continue
        end = -1
        for move in sorted(each, key=lambda move: groups[group].buffers[move.buffer].offset):
            mine = groups[group].buffers[move.buffer]
            joins = whole(mine) and mine.offset == end
            yield replace(move, joins=joins) if joins else move
            end = mine.end if whole(mine) and not mine.bytes % CONSTANT_ALIGNMENT else -1


class _Points(Struct, frozen=True):
    """Those of one group."""

    number: int
    groups: Sequence[Group]
    facts: Sequence[Facts]
    crossings: Crossings
    overlaps: Overlaps

    @property
    def _group(self) -> Group:
        return self.groups[self.number]

    @property
    def _mine(self) -> Facts:
        return self.facts[self.number]

    def _crossing(self, buffer: int) -> Crossing:
        return self.crossings.get((self.number, buffer), WITHIN)

    def _carriers(self, number: int) -> Sequence[int]:
        """Nodes of a group beside which something is done."""
        return () if number in self.overlaps else self.facts[number].carriers

    def stage(self, number: int, stage: Stage) -> Move:
        issue = Point(stage.start, "entry") if stage.start == stage.first else self._at_first(stage.start)
        return Move("stage", stage.first, number, "all", issue, Point(stage.first, "entry"))

    def moves(self) -> Iterator[Move]:
        # What a node awaits itself would be in the way of what it begins with.
        reads = sorted(self._mine.reads, key=self._mine.awaits.__contains__)
        loads = [move for buffer in reads for move in self._loads(buffer)]
        for points in dict.fromkeys((move.tiles, move.issue, move.wait) for move in loads):
            yield from (move for move in loads if (move.tiles, move.issue, move.wait) == points)
        for buffer in self._mine.stores:
            yield from self._stores(buffer)

    def runs(self) -> Iterator[Run]:
        group, mine = self._group, self._mine
        for position, engine in enumerate(mine.engines):
            start = wait = Point(self.number, "each", "now")
            if group.ahead and position == 0:
                driven = not group.queued and self._driven(())
                start = Point(self.number, "each", "beside" if driven else "before", -1)
                wait = Point(self.number, "each", "ending" if mine.carriers else "after", -1)
                wait = Point(self.number, "each", "after") if group.queued else wait
            overlap = self.overlaps.get(self.number)
            if overlap is not None:
                side = "inside" if overlap.inside else "ending"
                start, wait = Point(overlap.first, "first", "beside"), Point(overlap.last, "last", side)
            yield Run(self.number, position, engine, start, wait, position in self._carriers(self.number))

    # Points of any group

    def _at_first(self, number: int) -> Point:
        """Where a group starts something for others."""
        if self.groups[number].queued:
            return Point(number, "first", "after")
        return Point(number, "first", "beside" if self._carriers(number) else "before")

    def _beside_cores(self, number: int) -> int:
        """A group, or the next one where another engine computes it beside later ones: that is started first."""
        while number < self.number - 1 and number in self.overlaps:
            number += 1
        return number

    def _at_last(self, number: int) -> Point:
        """Where a group waits for something of others."""
        beside = self._carriers(number) and not self.groups[number].queued
        return Point(number, "last", "ending") if beside else Point(number, "exit")

    # Loads

    def _leads(self, buffer: int) -> bool:
        """Whether it is read by a node that runs a step ahead."""
        return self._group.ahead and self._mine.reads[buffer] == 0

    def _for_later(self, buffer: int) -> bool:
        """Whether what it holds is needed only when the group is started, beside a later one."""
        overlap, mine = self.overlaps.get(self.number), self._group.buffers[buffer]
        soon = range(self.number + 1, self.number + 1 if overlap is None else overlap.first + 1)
        return overlap is not None and not any(
            crossing.kept and number in soon and self._same(self.groups[number].buffers[index], mine)
            for (number, index), crossing in self.crossings.items()
            if number not in self.overlaps
        )

    @staticmethod
    def _same(a: TileBuffer, b: TileBuffer) -> bool:
        return (a.tensor, a.pack, a.offset) == (b.tensor, b.pack, b.offset)

    @property
    def _started(self) -> Point:
        """Where the first node is started."""
        return next(run.start for run in self.runs())

    def _distance(self, buffer: int) -> int:
        """How many steps ahead a buffer is loaded."""
        if self._group.queued:
            return 2
        return 0 if self._mine.steps == 1 else self._group.buffers[buffer].slots - 1 + self._leads(buffer)

    def _there(self, buffer: int) -> bool:
        """Whether it is there before the group begins, and not loaded again."""
        mine = self._crossing(buffer)
        return mine.kept > 0 or (mine.early > 0 and self._group.buffers[buffer].slots == 1)

    def _driven(self, buffers: Sequence[int]) -> bool:
        """Whether something for later steps is done beside a step."""
        return len(self._mine.carriers) > 0 and self._mine.steps > 1 and self._mine.by_cores.isdisjoint(buffers)

    def _loads(self, buffer: int) -> Iterator[Move]:
        mine, behind = self._crossing(buffer), self._sharing(buffer)
        if mine.early and not mine.kept:
            before = self.number - 1
            arrived = before >= 0 and self._carriers(before)
            wait = self._at_last(before) if arrived else Point(self.number, "entry")
            wait = self._started if not arrived and self._for_later(buffer) else wait
            wait = Point(self.number, "last", "inside") if buffer in self._mine.awaits else wait
            issue = self._at_first(self._beside_cores(self.number - mine.early))
            yield Move("load", self.number, buffer, "first", issue, wait, behind=behind)
        if not self._there(buffer):
            tiles: Tiles = "rest" if mine.early else "all"
            issue, wait = self._each(buffer)
            yield Move("load", self.number, buffer, tiles, issue, wait, behind=behind)

    def _each(self, buffer: int) -> tuple[Point, Point]:
        """Where the loads of each step are started, and awaited."""
        distance = self._distance(buffer)
        if self._group.queued:
            return Point(self.number, "each", "after", -distance), Point(self.number, "each", "before", -1)
        wait = self._started if self._leads(buffer) or self._for_later(buffer) else Point(self.number, "each")
        same = [b for b in self._mine.reads if self._distance(b) == distance and not self._there(b)]
        side = "beside" if distance and self._driven(same) else "before"
        return Point(self.number, "each", side, -distance), wait

    def _sharing(self, buffer: int) -> tuple[int, ...]:
        mine, buffers = self._group.buffers[buffer], self._group.buffers
        return tuple(b for b in self._mine.stores if mine.offset < buffers[b].end and buffers[b].offset < mine.end)

    # Stores

    def _hands_on(self) -> bool:
        """Whether the last results are stored by the group behind."""
        late = all(self._crossing(b).late for b in self._mine.stores)
        behind = self.number + 1
        return late and behind < len(self.groups) and len(self._carriers(behind)) > 0

    def _stores_behind(self) -> bool:
        """Whether what a step makes is stored while the next one works.

        What cores copy to bytes that a result takes, they copy before that, for a later step.
        """
        mine = self._mine
        slots = all(self._group.buffers[b].slots > 1 for b in mine.stores)
        moved = [*mine.stores, *(b for b in mine.reads if self._sharing(b))]
        return not self._group.queued and slots and self._driven(moved)

    def _stores(self, buffer: int) -> Iterator[Move]:
        number, slots, late = self.number, self._group.buffers[buffer].slots, self._crossing(buffer).late
        overlap = self.overlaps.get(number)
        wait = self._at_last(number + late) if late else Point(number if overlap is None else overlap.last, "exit")
        if overlap is not None:
            yield Move("store", number, buffer, "last", Point(overlap.last, "last", "ending"), wait)
            return
        hands_on, behind = self._hands_on(), self._stores_behind()
        start = Point(number, "each", "before", -1) if self._group.queued else Point(number, "each")
        reuse = start if self._mine.stores[buffer] > slots else None
        if self._mine.steps > 1:
            issue = Point(number, "each", "beside", 1) if behind else Point(number, "each", "after")
            tiles: Tiles = "but last" if hands_on or behind else "all"
            yield Move("store", number, buffer, tiles, issue, wait, reuse)
        if hands_on:
            queued = self.groups[number + 1].queued
            issue = Point(number + 1, "entry") if queued else Point(number + 1, "first", "beside")
            yield Move("store", number, buffer, "last", issue, wait)
        elif behind or self._mine.steps == 1:
            yield Move("store", number, buffer, "last", Point(number, "last", "after"), wait)
