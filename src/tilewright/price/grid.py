"""What a group of nodes touches at every step of many tilings at once.

A grid takes several tile sizes along each cut dimension and evaluates all of them together, in numpy. Every range and
region moves with at most one loop, so each is one row of numbers per loop: one for each size and each index of the
loop. Neighbouring indices at which nothing differs but the position are merged into a class with a multiplicity, so
sums and maxima over all steps are exact and cheap. `core.tiles.trace` says the same for one step.

Arrays over classes have one axis per loop, of length 1 where a value does not move with the loop; arrays over tilings
(results of `most` and `total`) have one axis per loop with one entry per size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct

from tilewright.core.domain import Affine, Axis, Domain, Whole
from tilewright.core.tiles import Member, axis_dim

Array = np.ndarray[Any, Any]
Value = Array | int
"""One number for all steps, or an array over classes or tilings."""


class Clash(Exception):
    """Two loops move one axis: they cannot both cut this group."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"loops {a} and {b}")
        self.loops = (a, b)


class Cut(Struct, frozen=True):
    """A dimension of the last node with the tile sizes to look at, and its extent."""

    dim: str
    extent: int
    sizes: tuple[int, ...]


class Span(Struct, frozen=True, eq=False):
    """`[start, stop)` along an axis or dimension, for every point of the loop that moves it (-1: none)."""

    loop: int
    start: Value
    stop: Value

    @property
    def size(self) -> Value:
        return self.stop - self.start


Box = tuple[Span, ...]


class Points(Struct, frozen=True, eq=False):
    """All indices of a loop, for one tile size after the other."""

    begin: Array
    """Where each size begins."""
    number: Array
    """Which size a point belongs to."""
    first: Array
    last: Array
    span: Span


def _points(loop: int, cut: Cut) -> Points:
    counts = [-(-cut.extent // size) for size in cut.sizes]
    index = np.concatenate([np.arange(count) for count in counts])
    number = np.repeat(np.arange(len(counts)), counts)
    size = np.asarray(cut.sizes)[number]
    start = index * size
    span = Span(loop, start, np.minimum(start + size, cut.extent))
    begin = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return Points(begin, number, index == 0, index == np.asarray(counts)[number] - 1, span)


class Projection(Struct, frozen=True, eq=False):
    """Tiles of every node, regions of every use and what is held of inner tensors: `Trace` over all points."""

    ranges: tuple[Mapping[str, Span], ...]
    regions: tuple[Mapping[str, Box], ...]
    wanted: Mapping[str, Box]
    """What is computed of each inner tensor: less than what is held where lines are kept."""
    held: Mapping[str, Box]


class Grid:
    """Tilings of a group. `keep` names inner tensors of which lines are kept along an axis; `sweep` is the loop that
    drives them, innermost in every order."""

    def __init__(
        self, members: Sequence[Member], cuts: Sequence[Cut], keep: Mapping[str, int] | None = None, sweep: int = -1
    ) -> None:
        self.members, self.cuts = tuple(members), tuple(cuts)
        self.keep, self.sweep = dict(keep or {}), sweep
        self.rank = len(cuts)
        self.points = [_points(loop, cut) for loop, cut in enumerate(cuts)]
        self._spans: list[list[Span]] = [[points.span] for points in self.points]
        self._sizes: dict[Span, Value] = {}
        self._corners: dict[tuple[bool, tuple[bool, ...]], tuple[Array, ...]] = {}
        self.projection = self._project()

    # Projection

    def _project(self) -> Projection:
        members = self.members
        inside = {m.output.tensor for m in members[:-1]}
        ranges: list[Mapping[str, Span]] = [{} for _ in members]
        regions: list[dict[str, Box]] = [{} for _ in members]
        needs: dict[str, list[Box]] = {}
        held: dict[str, Box] = {}
        wanted: dict[str, Box] = {}
        ranges[-1] = {cut.dim: points.span for cut, points in zip(self.cuts, self.points, strict=True)}
        for position in reversed(range(len(members))):
            mine = members[position]
            if position < len(members) - 1:
                tensor = mine.output.tensor
                held[tensor] = self.hull(needs[tensor])
                wanted[tensor] = self._missing(tensor, held[tensor])
                ranges[position] = self._tile_of(mine, wanted[tensor])
            for use in mine.uses:
                found = self.region(mine.domain, use.key, ranges[position])
                regions[position][use.key] = found
                if not use.writes and use.tensor in inside:
                    needs.setdefault(use.tensor, []).append(found)
        return Projection(tuple(ranges), tuple(regions), wanted, held)

    def _missing(self, tensor: str, box: Box) -> Box:
        axis = self.keep.get(tensor)
        if axis is None or box[axis].loop != self.sweep:
            return box
        part, points = box[axis], self.points[self.sweep]
        done = np.concatenate([[0], part.stop[:-1]]) if isinstance(part.stop, np.ndarray) else part.stop
        start = np.where(points.first, part.start, np.maximum(part.start, done))
        return (*box[:axis], self._new(self.sweep, start, part.stop), *box[axis + 1 :])

    def _new(self, loop: int, start: Value, stop: Value) -> Span:
        if loop < 0:
            return Span(-1, start, stop)
        if not isinstance(start, np.ndarray) and not isinstance(stop, np.ndarray):
            return Span(-1, start, stop)
        length = len(self.points[loop].number)
        full = [v if isinstance(v, np.ndarray) else np.full(length, v) for v in (start, stop)]
        span = Span(loop, full[0], full[1])
        self._spans[loop].append(span)
        return span

    def region(self, domain: Domain, key: str, ranges: Mapping[str, Span]) -> Box:
        """The part of an operand that a tile touches."""
        pairs = zip(domain.access[key], domain.shapes[key], strict=True)
        return tuple(self.extent(domain, axis, extent, ranges) for axis, extent in pairs)

    def extent(self, domain: Domain, axis: Axis, extent: int, ranges: Mapping[str, Span]) -> Span:
        """The part of an axis that a tile touches."""
        if isinstance(axis, Whole):
            return Span(-1, 0, extent)
        if len(axis.terms) == 1 and not axis.constant and axis.divisor == 1:
            name, coefficient = axis.terms[0]
            if coefficient == 1 and domain.dims[name] == extent:
                return ranges.get(name) or Span(-1, 0, extent)
        loop, low, high = _ends(domain, axis, ranges)
        if loop < 0:
            begin = min(max(int(low), 0), extent)
            return Span(-1, begin, max(min(max(int(high) + 1, 0), extent), begin))
        begin = np.minimum(np.maximum(low, 0), extent)
        return self._new(loop, begin, np.maximum(np.minimum(np.maximum(high + 1, 0), extent), begin))

    def outside(self, domain: Domain, axis: Axis, extent: int, ranges: Mapping[str, Span]) -> tuple[Value, Value]:
        """How far a tile reaches over both edges of an axis, over classes."""
        if isinstance(axis, Whole) or axis.divisor != 1:
            return 0, 0
        loop, low, high = _ends(domain, axis, ranges)
        before, after = np.maximum(-np.asarray(low), 0), np.maximum(np.asarray(high) + 1 - extent, 0)
        return self._over(Span(loop, before, after), before), self._over(Span(loop, before, after), after)

    def _tile_of(self, mine: Member, wanted: Box) -> dict[str, Span]:
        found: dict[str, Span] = {}
        for axis, part in zip(mine.domain.access[mine.output.key], wanted, strict=True):
            name, factor = axis_dim(mine.domain, axis)
            if name and factor == 1:
                found[name] = part
            elif name:
                found[name] = self._new(part.loop, part.start // factor, (part.stop + (factor - 1)) // factor)
        return found

    def hull(self, boxes: Sequence[Box]) -> Box:
        """The smallest box around boxes."""
        merged = boxes[0]
        for other in boxes[1:]:
            merged = tuple(self._around(a, b) for a, b in zip(merged, other, strict=True))
        return merged

    def _around(self, a: Span, b: Span) -> Span:
        if a is b:
            return a
        loop = _joined(a.loop, b.loop)
        if loop < 0:
            return Span(-1, min(int(a.start), int(b.start)), max(int(a.stop), int(b.stop)))
        return self._new(loop, np.minimum(a.start, b.start), np.maximum(a.stop, b.stop))

    # Classes

    @cached_property
    def _classes(self) -> tuple[tuple[Array, Array], ...]:
        """Found when first asked for: hulls of regions that share a buffer must be made before."""
        return tuple(self._merged(loop) for loop in range(self.rank))

    def _merged(self, loop: int) -> tuple[Array, Array]:
        """The first point of each class of a loop, and how many points it stands for."""
        points = self.points[loop]
        fresh = points.first | points.last
        fresh[1:] |= points.first[:-1]
        for span in self._spans[loop]:
            size = span.size
            fresh[1:] |= size[1:] != size[:-1] if isinstance(size, np.ndarray) else False
        chosen = np.flatnonzero(fresh)
        return chosen, np.diff(np.append(chosen, len(fresh)))

    @cached_property
    def counts(self) -> tuple[Array, ...]:
        """How often each loop runs."""
        return tuple(
            self._along(loop, np.diff(np.append(p.begin, len(p.number)))) for loop, p in enumerate(self.points)
        )

    @cached_property
    def steps(self) -> Array:
        """How many steps each tiling has."""
        return self.product(self.counts)

    @cached_property
    def ragged(self) -> Array:
        """Tilings in which tiles differ in size."""
        sizes = [self._along(loop, np.asarray(cut.sizes)) for loop, cut in enumerate(self.cuts)]
        return self.product([cut.extent % size == 0 for cut, size in zip(self.cuts, sizes, strict=True)]) == 0

    @cached_property
    def uneven(self) -> Array:
        """Those of several loops: what sizes there are is known at run time only."""
        loops = np.zeros((1,) * self.rank, int)
        for count in self.counts:
            loops = loops + (count > 1)
        return self.ragged & (loops > 1)

    @cached_property
    def _begin(self) -> tuple[Array, ...]:
        """The first class of each size."""
        return tuple(np.searchsorted(c[0], p.begin) for c, p in zip(self._classes, self.points, strict=True))

    @cached_property
    def _number(self) -> tuple[Array, ...]:
        """Which size each class belongs to."""
        return tuple(p.number[c[0]] for c, p in zip(self._classes, self.points, strict=True))

    @cached_property
    def first(self) -> tuple[Array, ...]:
        """Classes at which a loop stands at 0."""
        return tuple(self._along(i, p.first[self._classes[i][0]]) for i, p in enumerate(self.points))

    @cached_property
    def last(self) -> tuple[Array, ...]:
        """Classes at which a loop stands at its last index."""
        return tuple(self._along(i, p.last[self._classes[i][0]]) for i, p in enumerate(self.points))

    def _along(self, loop: int, values: Array) -> Array:
        shape = [1] * self.rank
        shape[loop] = -1
        return values.reshape(shape)

    def _over(self, span: Span, values: Value) -> Value:
        """Values at the points of a span's loop, over classes."""
        if span.loop < 0 or not isinstance(values, np.ndarray):
            return values
        return self._along(span.loop, values[self._classes[span.loop][0]])

    def size(self, span: Span) -> Value:
        """The size of a span, over classes."""
        found = self._sizes.get(span)
        if found is None:
            found = self._sizes[span] = self._over(span, span.size)
        return found

    def moves(self, box: Box) -> dict[int, Array]:
        """With which loops a box moves, for each size of the loop."""
        found: dict[int, Array] = {}
        for span in box:
            if span.loop < 0:
                continue
            begin, changed = self.points[span.loop].begin, np.zeros(len(self.points[span.loop].begin), bool)
            for values in (span.start, span.stop):
                if isinstance(values, np.ndarray):
                    changed |= np.maximum.reduceat(values, begin) != np.minimum.reduceat(values, begin)
            known = found.get(span.loop)
            found[span.loop] = changed if known is None else known | changed
        return {loop: self._along(loop, changed) for loop, changed in found.items() if changed.any()}

    # Between classes and tilings

    def most(self, values: Value) -> Value:
        """The largest value of all steps, for each tiling."""
        if not isinstance(values, np.ndarray) or not values.ndim:
            return values
        for axis in range(self.rank):
            if values.shape[axis] > 1:
                values = np.maximum.reduceat(values, self._begin[axis], axis=axis)
        return values

    def total(self, values: Array) -> Array:
        """The sum over all steps, for each tiling."""
        for axis, (classes, weights, begin) in enumerate(self._sums):
            if values.shape[axis] == classes:
                values = values if weights is None else values * weights
                values = values if begin is None else np.add.reduceat(values, begin, axis=axis)
            else:
                values = values * self.counts[axis]
        return values

    @cached_property
    def _sums(self) -> tuple[tuple[int, Array | None, Array | None], ...]:
        """Of each loop its classes, how many points each stands for and where sizes begin; None where all are 1."""
        found: list[tuple[int, Array | None, Array | None]] = []
        for axis, (begin, (_, points)) in enumerate(zip(self._begin, self._classes, strict=True)):
            weights = None if bool(np.all(points == 1)) else self._along(axis, points)
            found.append((len(points), weights, None if len(begin) == len(points) else begin))
        return tuple(found)

    def over_classes(self, values: Value) -> Value:
        """Values of tilings, over classes."""
        if isinstance(values, np.ndarray) and values.ndim:
            for axis in range(self.rank):
                if values.shape[axis] > 1:
                    values = np.take(values, self._number[axis], axis=axis)
        return values

    def corner(self, values: Array, *, last: bool) -> Array:
        """Values at the first or the last step of each tiling."""
        key = (last, tuple(n > 1 for n in values.shape))
        index = self._corners.get(key)
        if index is None:
            index = np.ix_(*(self._ends[axis][last] if long else [0] for axis, long in enumerate(key[1])))
            self._corners[key] = index
        return values[index]

    @cached_property
    def _ends(self) -> tuple[tuple[Array, Array], ...]:
        """The first and the last class of each size."""
        pairs = zip(self._begin, self._number, strict=True)
        return tuple((begin, np.append(begin[1:], len(number)) - 1) for begin, number in pairs)

    def at(self, values: Array, step: Sequence[int]) -> float:
        """The value at one step of the only tiling of a grid, given by the index of each loop."""
        classes = (
            int(np.searchsorted(self._classes[axis][0], index, side="right")) - 1 if values.shape[axis] > 1 else 0
            for axis, index in enumerate(step)
        )
        return float(values[tuple(classes)])

    @cached_property
    def path(self) -> Array:
        """The class of every step of the only tiling of a grid, one after the other."""
        shape = [len(chosen) for chosen, _ in self._classes]
        axes = [np.repeat(np.arange(len(times)), times) for _, times in self._classes]
        return np.ravel_multi_index(np.ix_(*axes), shape).reshape(-1) if axes else np.zeros(1, int)

    def flat(self, values: Array) -> Array:
        """Values of all classes, as `path` numbers them."""
        return np.broadcast_to(values, [len(chosen) for chosen, _ in self._classes]).reshape(-1)

    def product(self, factors: Sequence[Value]) -> Array:
        result = np.ones((1,) * self.rank, np.int64)
        for factor in factors:
            result = result * factor
        return result

    def elements(self, box: Box) -> Value:
        """Elements of a box, over classes."""
        result: Value = 1
        for span in box:
            result = result * self.size(span)
        return result

    def room(self, box: Box) -> Value:
        """Elements of the largest box of all steps, for each tiling."""
        loops = [span.loop for span in box if span.loop >= 0]
        if len(set(loops)) < len(loops):
            return self.most(self.elements(box))
        result: Value = 1
        for span in box:
            result = result * self.most(self.size(span))
        return result

    def every(self, loop: int, values: Array) -> Array:
        """Whether something holds at all points of a loop, for each size."""
        return self._along(loop, np.logical_and.reduceat(values, self.points[loop].begin))


def _ends(domain: Domain, axis: Affine, ranges: Mapping[str, Span]) -> tuple[int, Value, Value]:
    """The first and the last index of a tile along an axis, and the loop that moves them; either may lie outside."""
    loop = -1
    low: Value = axis.constant
    high: Value = axis.constant
    for name, coefficient in axis.terms:
        part = ranges.get(name)
        start, last = (0, domain.dims[name] - 1) if part is None else (part.start, part.stop - 1)
        loop = _joined(loop, part.loop if part else -1)
        ends = (start, last) if coefficient > 0 else (last, start)
        low, high = low + ends[0] * coefficient, high + ends[1] * coefficient
    if axis.divisor != 1:
        low, high = low // axis.divisor, high // axis.divisor
    return loop, low, high


def _joined(a: int, b: int) -> int:
    if a >= 0 and b >= 0 and a != b:
        raise Clash(a, b)
    return max(a, b)


def begins(grid: Grid) -> Array:
    """The first step, over classes."""
    found = np.ones((1,) * grid.rank, bool)
    for edge in grid.first:
        found = found & edge
    return found


def ends(grid: Grid) -> Array:
    """The last step, over classes."""
    found = np.ones((1,) * grid.rank, bool)
    for edge in grid.last:
        found = found & edge
    return found
