"""The channels of moves: each transfer that may be on its way with others has a number by which it is awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate

from msgspec import Struct

from tilewright.core.moves import Move, Point
from tilewright.core.plan import Group


class Channels(Struct, frozen=True, dict=True):
    """Slots of a group's buffers come first, those of all groups in the same numbers; then copies in a nearer memory,
    prefetches, and stores that are awaited more than one group later, which have channels in turn."""

    groups: Sequence[Group]
    moves: Sequence[Move]

    @cached_property
    def _slots(self) -> list[list[int]]:
        return [[0, *accumulate(buffer.slots for buffer in group.buffers)] for group in self.groups]

    @cached_property
    def _shared(self) -> int:
        """The first channel that no group has for itself."""
        return max(slots[-1] for slots in self._slots)

    @cached_property
    def _early(self) -> _Across:
        """For each buffer, how many groups before its own its first load is started."""
        first = [move for move in self.moves if move.kind == "load" and move.tiles == "first"]
        return self._across({(move.group, move.buffer): move.group - move.issue.group for move in first})

    @cached_property
    def _late(self) -> _Across:
        """Likewise, how many groups later its last store is awaited."""
        stores = [move for move in self.moves if move.kind == "store"]
        return self._across({(move.group, move.buffer): move.wait.group - move.group for move in stores})

    def _across(self, found: Mapping[tuple[int, int], int]) -> _Across:
        return _Across(
            [[found.get((n, b), 0) for b in range(len(group.buffers))] for n, group in enumerate(self.groups)]
        )

    def of(self, group: int, buffer: int) -> int:
        """Of the first slot of a buffer; the others follow."""
        return self._slots[group][buffer]

    def stage(self, number: int) -> int:
        return self._shared + number

    def prefetch(self, group: int, buffer: int) -> int | None:
        """Of the first load of a buffer, where that is started before the group: one for those that are started and
        awaited together."""
        if not self._early.groups[group][buffer]:
            return None
        points = self._points
        first = min(b for (g, b), each in points.items() if g == group and each == points[group, buffer])
        return self._behind_stages + self._early.in_turn(group, first)

    @cached_property
    def _points(self) -> Mapping[tuple[int, int], tuple[Point, Point]]:
        """Where the first load of a buffer of a group is started and awaited."""
        first = [move for move in self.moves if move.kind == "load" and move.tiles == "first"]
        return {(move.group, move.buffer): (move.issue, move.wait) for move in first}

    def drained_later(self, group: int, buffer: int) -> int | None:
        """Of the store from a buffer that is awaited more than one group later."""
        first = self._behind_stages + self._early.count
        return first + self._late.in_turn(group, buffer) if self._late.groups[group][buffer] > 1 else None

    @cached_property
    def _behind_stages(self) -> int:
        return self._shared + sum(move.kind == "stage" for move in self.moves)


class _Across(Struct, frozen=True, dict=True):
    """Across how many groups each buffer of each group needs a channel."""

    groups: list[list[int]]

    @cached_property
    def _most(self) -> int:
        """Buffers of one group that need one."""
        return max(sum(distance > 0 for distance in group) for group in self.groups)

    @cached_property
    def _turns(self) -> int:
        """Groups that have channels of their own, one behind the other."""
        return max((distance for group in self.groups for distance in group), default=0) + 1

    @property
    def count(self) -> int:
        return self._most * self._turns

    def in_turn(self, group: int, buffer: int) -> int:
        """A channel among those that groups have in turn."""
        return group % self._turns * self._most + sum(distance > 0 for distance in self.groups[group][:buffer])
