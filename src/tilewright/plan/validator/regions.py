"""The validator's replay of a tiled group: what every node touches at every step, all steps at once.

A region is a start and a stop for each axis. Each is an integer, or an array with one axis per tile loop (and a last
one for the core) that has extent 1 along every loop it does not depend on. So no step is left out, and a group of a
hundred thousand steps costs hardly more than one of ten: only what depends on several loops is ever spread out.

This is the validator's own arithmetic on access maps. The planner and the code generator project tiles with
`core.tiles`, and a mistake there must not go unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from tilewright.core.domain import Affine, Axis, Domain, Whole
from tilewright.core.tiles import Member, TileLoop

Values = int | np.ndarray[Any, Any]
"""One number, or one for each step."""


class Interval(Struct, frozen=True):
    """`[start, stop)` of an axis or of a loop dimension."""

    start: Values
    stop: Values

    @property
    def size(self) -> Values:
        return self.stop - self.start


Box = tuple[Interval, ...]
Ranges = Mapping[str, Interval]


def smaller(a: Values, b: Values) -> Values:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


def larger(a: Values, b: Values) -> Values:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


def most(value: Values) -> int:
    return value if isinstance(value, int) else int(value.max())


def everywhere(condition: Any) -> bool:
    """Whether a comparison of Values holds at every step."""
    return bool(np.all(condition))


def extents(box: Box) -> str:
    """The largest extents of a region, for messages."""
    return "x".join(str(most(part.size)) for part in box) or "1"


def rows(part: Interval, where: Any) -> str:
    """A part at the first step at which something does not hold, for messages."""
    start, stop, wrong = np.broadcast_arrays(part.start, part.stop, ~np.asarray(where))
    index = int(np.argmax(wrong))
    return f"{start.flat[index]}..{stop.flat[index]}"


def cover(boxes: Sequence[Box]) -> Box:
    """The smallest box around all."""
    found = boxes[0]
    for other in boxes[1:]:
        pairs = zip(found, other, strict=True)
        found = tuple(Interval(smaller(a.start, b.start), larger(a.stop, b.stop)) for a, b in pairs)
    return found


def whole(shape: Iterable[int]) -> Box:
    return tuple(Interval(0, extent) for extent in shape)


def touched(domain: Domain, key: str, ranges: Ranges) -> Box:
    """The part of an operand that tiles touch."""
    return tuple(
        Interval(0, extent) if isinstance(axis, Whole) else _along(axis, extent, domain, ranges)
        for axis, extent in zip(domain.access[key], domain.shapes[key], strict=True)
    )


def _along(axis: Affine, extent: int, domain: Domain, ranges: Ranges) -> Interval:
    lowest: Values = axis.constant
    highest: Values = axis.constant
    for name, coefficient in axis.terms:
        part = ranges.get(name)
        first, last = (0, domain.dims[name] - 1) if part is None else (part.start, part.stop - 1)
        if coefficient < 0:
            first, last = last, first
        lowest, highest = lowest + first * coefficient, highest + last * coefficient
    if axis.divisor != 1:
        lowest, highest = lowest // axis.divisor, highest // axis.divisor
    start = larger(smaller(lowest, extent), 0)
    return Interval(start, larger(smaller(highest + 1, extent), start))


def cut_dimension(domain: Domain, axis: Axis) -> tuple[str, int]:
    """The dimension whose tiles are runs along an axis of a result, and the length of a run for one of it."""
    if isinstance(axis, Whole) or axis.divisor != 1 or axis.constant:
        return "", 0
    terms = sorted((c, n) for n, c in axis.terms if domain.dims[n] > 1)
    if not terms or terms[0][0] < 0:
        return "", 0
    *minor, (step, name) = terms
    reach = sum(c * (domain.dims[n] - 1) for c, n in minor)
    return (name, step) if reach < step and name not in domain.whole else ("", 0)


class Replay:
    """All steps of a group. Loops must run over dimensions of the last node."""

    def __init__(self, members: Sequence[Member], loops: Sequence[TileLoop], keep: Mapping[str, int]) -> None:
        self.members, self.loops, self.keep = members, loops, keep
        self.rank = len(loops) + 1
        self.ranges: list[dict[str, Interval]] = [{} for _ in members]
        self.regions: list[dict[str, Box]] = [{} for _ in members]
        self.inner = {m.output.tensor for m in members[:-1]}
        self.held: dict[str, Box] = {}
        """What is wanted of each inner tensor, and so lies in its buffer, at every step."""
        self.problems: list[str] = []
        self._run()

    def index(self, loop: int) -> Values:
        """The index of a loop; a loop of one tile never moves."""
        count = self.loops[loop].count
        return 0 if count == 1 else np.arange(count).reshape([-1 if i == loop else 1 for i in range(self.rank)])

    def driven(self, value: Values, loop: int) -> bool:
        return not isinstance(value, int) and value.shape[loop] > 1

    def depends(self, parts: Iterable[Interval]) -> frozenset[int]:
        """The loops at whose steps regions may change."""
        return frozenset(
            loop
            for part in parts
            for value in (part.start, part.stop)
            for loop in range(len(self.loops))
            if self.driven(value, loop)
        )

    def pace(self, position: int) -> int:
        """The innermost loop at each of whose steps a node runs; -1 where it runs once."""
        return max(self.depends(part for box in self.regions[position].values() for part in box), default=-1)

    def share(self, position: int, name: str, chunk: int, cores: int) -> dict[str, Interval]:
        """The tile of a node narrowed to each core's share."""
        part = self.ranges[position].get(name, Interval(0, self.members[position].domain.dims[name]))
        core = np.arange(cores).reshape([1] * (self.rank - 1) + [cores])
        start = smaller(part.start + core * chunk, part.stop)
        return {**self.ranges[position], name: Interval(start, smaller(start + chunk, part.stop))}

    def _run(self) -> None:
        wanted: dict[str, list[Box]] = {}
        for position in reversed(range(len(self.members))):
            mine = self.members[position]
            tensor = mine.output.tensor
            if position == len(self.members) - 1:
                for number, loop in enumerate(self.loops):
                    start = self.index(number) * loop.size
                    stop = smaller(start + loop.size, mine.domain.dims[loop.dim])
                    self.ranges[position][loop.dim] = Interval(start, stop)
            elif tensor not in wanted:
                self.problems.append(f"nothing behind it in the group reads '{tensor}'")
            else:
                self.held[tensor] = cover(wanted[tensor])
                self._compute(position, self.missing(tensor))
            for use in mine.uses:
                found = touched(mine.domain, use.key, self.ranges[position])
                self.regions[position][use.key] = found
                if not use.writes and use.tensor in self.inner:
                    wanted.setdefault(use.tensor, []).append(found)

    def _compute(self, position: int, box: Box) -> None:
        """The tile of an inner node that makes a region of its result."""
        domain, key = self.members[position].domain, self.members[position].output.key
        found = self.ranges[position]
        for number, (axis, part) in enumerate(zip(domain.access[key], box, strict=True)):
            name, step = cut_dimension(domain, axis)
            if name in found:
                self.problems.append(f"axis {number} of '{self.members[position].output.tensor}' shares {name}")
            if name:
                found[name] = Interval(part.start // step, -(-part.stop // step))

    def missing(self, tensor: str) -> Box:
        """What is computed of an inner tensor: all that is wanted but the lines kept from the step before."""
        box = self.held[tensor]
        axis = self.keep.get(tensor)
        if axis is None or not self.loops or self.loops[-1].count == 1:
            return box
        return tuple(self._behind(part) if number == axis else part for number, part in enumerate(box))

    def _behind(self, part: Interval) -> Interval:
        done = self.before(part.stop)
        start = np.where(np.asarray(self.index(len(self.loops) - 1)) == 0, part.start, larger(part.start, done))
        return Interval(start, part.stop)

    def before(self, value: Values) -> Values:
        """A value at the previous step of the innermost loop; at its first step, the value there."""
        axis = len(self.loops) - 1
        if isinstance(value, int) or not self.driven(value, axis):
            return value
        return np.concatenate([value.take([0], axis), value.take(range(value.shape[axis] - 1), axis)], axis)

    def kept(self, tensor: str, axis: int) -> Iterator[str]:
        """Why lines of an inner tensor cannot be kept from step to step."""
        if tensor not in self.held:
            yield f"keeps lines of '{tensor}', which no node but the last makes"
            return
        box, last = self.held[tensor], len(self.loops) - 1
        if not 0 <= axis < len(box):
            yield f"keeps lines of '{tensor}' along axis {axis} of {len(box)}"
            return
        if last < 0 or self.loops[last].count == 1:
            return
        if not self.driven(box[axis].stop, last):
            yield f"keeps lines of '{tensor}' along axis {axis}, which the loop over {self.loops[last].dim} never moves"
            return
        for other, part in enumerate(box):
            if other < axis and most(part.size) > 1:
                yield f"keeps lines of '{tensor}' along axis {axis}, but axis {other} has extent {most(part.size)}"
            if other != axis and self.depends([part]) & {last}:
                yield f"keeps lines of '{tensor}' along axis {axis}, but the innermost loop moves axis {other} too"
        for name, value in (("begin", box[axis].start), ("end", box[axis].stop)):
            fine = np.asarray(value) >= self.before(value)
            if not everywhere(fine):
                found = rows(box[axis], fine)
                yield f"keeps lines of '{tensor}', but lines {found} {name} before those of the previous step"
