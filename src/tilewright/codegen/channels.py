"""The channels of moves: each transfer that may be on its way with others has a number by which it is awaited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from tilewright.core.moves import Move
from tilewright.core.plan import Group


@dataclass(frozen=True)
class Channels:
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
    def _early(self) -> list[list[int]]:
        """For each buffer, how many groups before its own its first load is started."""
        found = [[0] * len(group.buffers) for group in self.groups]
        for move in self.moves:
            if move.kind == "load" and move.tiles == "first":
                found[move.group][move.buffer] = move.group - move.issue.group
        return found

    @cached_property
    def _late(self) -> list[list[int]]:
        """Likewise, how many groups later its last store is awaited."""
        found = [[0] * len(group.buffers) for group in self.groups]
        for move in self.moves:
            if move.kind == "store":
                found[move.group][move.buffer] = move.wait.group - move.group
        return found

    def of(self, group: int, buffer: int) -> int:
        """Of the first slot of a buffer; the others follow."""
        return self._slots[group][buffer]

    def stage(self, number: int) -> int:
        return self._shared + number

    def prefetch(self, group: int, buffer: int) -> int | None:
        """Of the first load of a buffer, where that is started before the group."""
        return self._in_turn(self._early, group, buffer, self._behind_stages) if self._early[group][buffer] else None

    def drained_later(self, group: int, buffer: int) -> int | None:
        """Of the store from a buffer that is awaited more than one group later."""
        first = self._behind_stages + _most(self._early) * (_furthest(self._early) + 1)
        return self._in_turn(self._late, group, buffer, first) if self._late[group][buffer] > 1 else None

    @cached_property
    def _behind_stages(self) -> int:
        return self._shared + sum(move.kind == "stage" for move in self.moves)

    @staticmethod
    def _in_turn(across: list[list[int]], group: int, buffer: int, first: int) -> int:
        """A channel among those that groups have in turn, for buffers that need one across so many groups."""
        mine = sum(distance > 0 for distance in across[group][:buffer])
        return first + group % (_furthest(across) + 1) * _most(across) + mine


def _most(across: list[list[int]]) -> int:
    """Buffers of one group that need such a channel."""
    return max(sum(distance > 0 for distance in group) for group in across)


def _furthest(across: list[list[int]]) -> int:
    return max((distance for group in across for distance in group), default=0)
