"""Orders of the loops between two cuts, one for each way in which they can matter.

Between two nodes that a mapping cuts, loops can come in any order. It shows in the cost only through the outermost run
of loops that bring new (or the same) data to an operand whose tile changes at the upper node: the time in which the
next tile may come, and how much of a tile is in use. Orders whose innermost loop lets a tile below stay are left out:
they are orders of another mapping, one that cuts higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from msgspec import Struct

from tilewright.mapping.tables import MIXED, SAME

Counts = tuple[int, ...]
"""How often each factor of the lattice occurs."""
Run = tuple[int, int, bool]
"""Kind and length (in loops, as a number of the lattice) of a run, and whether it still goes on."""


class LoopSegment(Struct, frozen=True):
    """Loops between two cuts."""

    counts: Counts
    watched: frozenset[int]
    """Operands for which the outermost run matters."""
    staying: frozenset[int]
    """Operands whose tile below must change with the innermost loop."""


class Orders:
    """Orders for one problem, from what each factor is to each operand."""

    def __init__(self, kinds: Sequence[Sequence[int]], strides: Sequence[int]) -> None:
        """`kinds` by operand and factor."""
        self._kinds, self._strides = kinds, strides
        self.of = cache(self._of)

    def _of(self, segment: LoopSegment) -> tuple[tuple[int, ...], ...]:
        """The orders (innermost first) that differ in a run; none if every order would let a tile below stay."""
        found: dict[tuple[tuple[int, Run], ...], tuple[int, ...]] = {}
        seen: set[tuple[Counts, tuple[tuple[int, Run], ...]]] = set()
        opened = tuple((operand, (-1, 0, True)) for operand in sorted(segment.watched))
        stack: list[tuple[Counts, tuple[tuple[int, Run], ...], tuple[int, ...]]] = [(segment.counts, opened, ())]
        while stack:
            left, runs, outer = stack.pop()
            if (left, runs) in seen and any(left):
                continue
            seen.add((left, runs))
            if not any(going for _, (_, _, going) in runs) or not any(left):
                inner = self._inner(left, segment.staying)
                first = inner[0] if inner else outer[0] if outer else None
                if first is None or self._changes(first, segment.staying):
                    found.setdefault(runs, (*inner, *outer))
                continue
            for factor in range(len(left) - 1, -1, -1):
                if left[factor]:
                    less = (*left[:factor], left[factor] - 1, *left[factor + 1 :])
                    stack.append((less, self._grown(runs, factor), (factor, *outer)))
        return tuple(found.values())

    def _grown(self, runs: tuple[tuple[int, Run], ...], factor: int) -> tuple[tuple[int, Run], ...]:
        """The runs with one more loop inside."""
        grown: list[tuple[int, Run]] = []
        for operand, (kind, length, going) in runs:
            this = self._kinds[operand][factor]
            if not going:
                grown.append((operand, (kind, length, False)))
            elif this != MIXED and kind in (-1, this):
                grown.append((operand, (this, length + self._strides[factor], True)))
            else:
                grown.append((operand, (kind, length, False)))
        return tuple(grown)

    def _changes(self, factor: int, staying: frozenset[int]) -> bool:
        return all(self._kinds[operand][factor] != SAME for operand in staying)

    def _inner(self, left: Counts, staying: frozenset[int]) -> tuple[int, ...]:
        """Any order of what is left; the innermost loop changes the tiles below if one can."""
        loops = [factor for factor, count in enumerate(left) for _ in range(count)]
        first = next((i for i, factor in enumerate(loops) if self._changes(factor, staying)), 0)
        return (*loops[first : first + 1], *loops[:first], *loops[first + 1 :])


def combined(choices: Sequence[Sequence[tuple[int, ...]]]) -> Iterator[tuple[int, ...]]:
    """Whole orders from the orders of each segment, the first segment changing slowest."""
    if not choices:
        yield ()
        return
    for first in choices[0]:
        for rest in combined(choices[1:]):
            yield (*first, *rest)
