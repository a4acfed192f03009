"""Which boxes of one list overlap which of another: by arithmetic on intervals, for all at once.

A box overlaps another one if it does so along every axis. So boxes are sorted into classes of equal intervals along
each axis, classes are compared, which are few, and pairs of boxes are put together from pairs of classes. Where the two
lists see the same elements under different shapes, axes that become one another are compared together, element by
element unless both sides are runs of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]


class Boxes(Struct, frozen=True):
    """Boxes in a tensor of some shape: along each axis where each begins and ends."""

    shape: tuple[int, ...]
    starts: Numbers
    """By box and axis."""
    stops: Numbers

    @property
    def count(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> Numbers:
        """Elements of each."""
        return np.prod(np.maximum(self.stops - self.starts, 0), axis=1, dtype=np.int64)


class _Rows(Struct, frozen=True):
    """For each class of one list those of the other that it overlaps: rows of different lengths."""

    counts: Numbers
    first: Numbers
    """Where each row begins in `items`."""
    items: Numbers


def overlapping(these: Boxes, those: Boxes) -> tuple[Numbers, Numbers]:
    """All pairs: numbers of boxes of the first list and of the second, by the second, then by the first."""
    which = np.arange(those.count)
    keys = np.zeros(those.count, np.int64)
    mine = np.zeros(these.count, np.int64)
    for axes, others in _shared(these.shape, those.shape):
        classes, in_class = _classes(these, axes)
        other_classes, in_other = _classes(those, others)
        rows = _compare(classes, other_classes)
        count = max(classes.count, 1)
        mine = mine * count + in_class
        taken = in_other[which]
        numbers = _spread(rows.first[taken], rows.counts[taken])
        keys = np.repeat(keys * count, rows.counts[taken]) + rows.items[numbers]
        which = np.repeat(which, rows.counts[taken])
    order = np.argsort(mine, kind="stable")
    held = mine[order]
    left, right = np.searchsorted(held, keys, "left"), np.searchsorted(held, keys, "right")
    found = order[_spread(left, right - left)]
    which = np.repeat(which, right - left)
    sort = np.lexsort((found, which))
    return found[sort], which[sort]


def _spread(first: Numbers, counts: Numbers) -> Numbers:
    """`first`, `first + 1`, ... for each row, one row behind the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(first - (ends - counts), counts)


def _shared(shape: Sequence[int], other: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Axes of two shapes of the same elements that become one another: as few together as can be."""
    if tuple(shape) == tuple(other):
        return [([axis], [axis]) for axis in range(len(shape))]
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(shape) or j < len(other):
        mine, its = [i] if i < len(shape) else [], [j] if j < len(other) else []
        i, j = i + len(mine), j + len(its)
        while (size := prod(shape[a] for a in mine)) != (wanted := prod(other[a] for a in its)):
            if size < wanted:
                mine.append(i)
                i += 1
            else:
                its.append(j)
                j += 1
        found.append((mine, its))
    return found


def _classes(boxes: Boxes, axes: Sequence[int]) -> tuple[Boxes, Numbers]:
    """The different boxes along some axes, and which of them each box has."""
    shape = tuple(boxes.shape[axis] for axis in axes)
    both = np.concatenate([boxes.starts[:, axes], boxes.stops[:, axes]], axis=1)
    if both.size and (both == both[0]).all():
        unique, inverse = both[:1], np.zeros(boxes.count, np.int64)
    else:
        unique, inverse = np.unique(both, axis=0, return_inverse=True)
    return Boxes(shape, unique[:, : len(axes)], unique[:, len(axes) :]), inverse.reshape(-1)


def _compare(these: Boxes, those: Boxes) -> _Rows:
    runs, other_runs = _runs(these), _runs(those)
    if runs is not None and other_runs is not None:
        return _intervals(*runs, *other_runs)
    holder: dict[int, list[int]] = {}
    for number in range(these.count):
        for element in _elements(these, number).tolist():
            holder.setdefault(element, []).append(number)
    rows = [
        sorted({number for element in _elements(those, other).tolist() for number in holder.get(element, ())})
        for other in range(those.count)
    ]
    return _rows(rows)


def _rows(rows: list[list[int]]) -> _Rows:
    counts = np.array([len(row) for row in rows], np.int64)
    return _Rows(counts, np.cumsum(counts) - counts, np.array([item for row in rows for item in row], np.int64))


def _runs(boxes: Boxes) -> tuple[Numbers, Numbers] | None:
    """Boxes as intervals of elements, where each is one: one element of outer axes, all of inner ones."""
    if len(boxes.shape) == 1:
        return boxes.starts[:, 0], boxes.stops[:, 0]
    if not boxes.shape:
        return np.zeros(boxes.count, np.int64), np.ones(boxes.count, np.int64)
    lengths = boxes.stops - boxes.starts
    strides = np.array([prod(boxes.shape[axis + 1 :]) for axis in range(len(boxes.shape))], np.int64)
    first = boxes.starts @ strides
    sizes = boxes.sizes
    reach = np.maximum(lengths - 1, 0) @ strides + 1
    if not ((reach == sizes) | (sizes == 0)).all():
        return None
    return first, first + sizes


def _elements(boxes: Boxes, number: int) -> Numbers:
    found: Numbers = np.zeros(1, np.int64)
    for start, stop, extent in zip(
        boxes.starts[number].tolist(), boxes.stops[number].tolist(), boxes.shape, strict=True
    ):
        found = np.add.outer(found * extent, np.arange(start, stop, dtype=np.int64)).reshape(-1)
    return found


def _intervals(starts: Numbers, stops: Numbers, other_starts: Numbers, other_stops: Numbers) -> _Rows:
    order = np.lexsort((stops, starts))
    order = order[(stops > starts)[order]]
    first, last = starts[order], stops[order]
    if not (np.diff(last) >= 0).all():
        return _rows(
            [
                np.flatnonzero((starts < stop) & (stops > start) & (stops > starts)).tolist() if stop > start else []
                for start, stop in zip(other_starts.tolist(), other_stops.tolist(), strict=True)
            ]
        )
    low = np.searchsorted(last, other_starts, "right")
    high = np.searchsorted(first, other_stops, "left")
    counts = np.where(other_stops > other_starts, np.maximum(high - low, 0), 0)
    return _Rows(counts.astype(np.int64), low.astype(np.int64), order.astype(np.int64))
