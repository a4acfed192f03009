"""Offsets of buffers inside a step of a group, some of which leave lines for the next step.

A buffer with kept lines is two rectangles of time and bytes: its start is taken all the time, the rest only between the
nodes that use it. General allocators know no such shapes, so these are placed one by one at the lowest offset that is
free for both, in several orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

ALWAYS = (0, 1 << 30)


class Piece(Struct, frozen=True):
    """Bytes needed from node `first` to node `last`, of which `kept` at the start are needed always."""

    size: int
    first: int
    last: int
    kept: int = 0

    def rectangles(self, offset: int) -> list[tuple[int, int, int, int]]:
        """Start and end in bytes, first and last node."""
        found = [(offset, offset + self.kept, *ALWAYS)] if self.kept else []
        return [*found, (offset + self.kept, offset + self.size, self.first, self.last)]


ORDERS: tuple[Callable[[Piece], tuple[int, ...]], ...] = (
    lambda p: (-p.size, -p.kept),
    lambda p: (-p.kept, -p.size),
    lambda p: (p.first - p.last, -p.size),
    lambda p: (p.first, -p.size),
)


def stack(pieces: Sequence[Piece]) -> tuple[list[int], int]:
    """Offsets of all pieces, and where the last one ends."""
    tries = [_in_order(pieces, sorted(range(len(pieces)), key=lambda i: (order(pieces[i]), i))) for order in ORDERS]
    return min(tries, key=lambda found: found[1])


def _in_order(pieces: Sequence[Piece], order: Sequence[int]) -> tuple[list[int], int]:
    offsets, taken, top = [0] * len(pieces), list[tuple[int, int, int, int]](), 0
    for index in order:
        piece = pieces[index]
        starts = {0} | {end for _, end, _, _ in taken} | {end - piece.kept for _, end, _, _ in taken}
        offset = min(o for o in starts if o >= 0 and _free(piece.rectangles(o), taken))
        offsets[index] = offset
        taken += piece.rectangles(offset)
        top = max(top, offset + piece.size)
    return offsets, top


def _free(wanted: Sequence[tuple[int, int, int, int]], taken: Sequence[tuple[int, int, int, int]]) -> bool:
    return not any(
        start < stop and begin < end and first <= until and since <= last
        for begin, stop, first, last in wanted
        for start, end, since, until in taken
    )
