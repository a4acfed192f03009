"""Linear addresses in C: access maps of dense row-major operands become strides over loop dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tilewright.core.domain import Affine, Axis, Domain, Whole, dim
from tilewright.core.expr import Size, plain


class Guard(Struct, frozen=True):
    """A condition under which an access lies inside its tensor: `index >= 0`, or that `divisor` divides the index."""

    index: Affine
    divisor: int = 1

    @property
    def expression(self) -> str:
        text = expression(self.index)
        return f"{text} >= 0" if self.divisor == 1 else f"({text}) % {self.divisor} == 0"

    def holds(self, ranges: Mapping[str, tuple[int, int]]) -> bool | None:
        """Whether it does at all points of these (start, size); None where that depends on the point."""
        low, high = self.index.bounds(ranges)
        if self.divisor > 1 or low < 0 <= high:
            return None
        return low >= 0

    def seam(self) -> tuple[str, int] | None:
        """Where one dimension alone decides: its name, and the first of its indices at which that changes."""
        if self.divisor > 1 or len(self.index.terms) != 1:
            return None
        ((name, coefficient),) = self.index.terms
        constant = self.index.constant
        return name, -(constant // coefficient) if coefficient > 0 else constant // -coefficient + 1

    def bound(self, name: str) -> str:
        """C for the seam along a dimension, of values of the others; limited to the dimension's indices it is exact."""
        coefficient = dict(self.index.terms)[name]
        rest = self.index - dim(name) * coefficient
        if coefficient > 0:
            return _quotient(rest * -1 + (coefficient - 1), coefficient)
        return _quotient(rest - coefficient, -coefficient)


class Block(Struct, frozen=True):
    """How the part of a tensor that is at hand lies in memory: elements between neighbours along each axis, and how
    many elements before its first one the tensor itself would begin."""

    strides: tuple[Size, ...]
    origin: Size = 0


class Address(Struct, frozen=True):
    """`constant + sum(stride * dimension)` elements, plus terms that are not linear, valid where the guards hold."""

    strides: Mapping[str, Size]
    constant: Size
    terms: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()

    def text(self) -> str:
        parts = [scaled(name, stride) for name, stride in self.strides.items() if stride]
        parts += list(self.terms)
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


def scaled(index: str, stride: Size) -> str:
    """`index * stride` as C."""
    if stride == 1:
        return index
    return f"{index} * {stride}" if isinstance(stride, int) or len(stride.terms) == 1 else f"{index} * ({stride})"


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a dense tensor."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def expression(axis: Affine) -> str:
    """An index expression as C text; the numerator of a divided one is not negative where its guard holds."""
    parts = [(c, name if abs(c) == 1 else f"{name} * {abs(c)}") for name, c in axis.terms]
    if axis.constant or not parts:
        parts.append((axis.constant, str(abs(axis.constant))))
    # What is subtracted comes last, so that no text begins with a sign unless all of it is negative.
    parts.sort(key=lambda part: part[0] < 0)
    text = "".join(f" {'-' if sign < 0 else '+'} {part}" for sign, part in parts)
    text = text[3:] if parts[0][0] >= 0 else f"-{text[3:]}"
    return text if axis.divisor == 1 else f"({text}) / {axis.divisor}"


def dense(shape: Sequence[int]) -> Block:
    """A whole tensor."""
    return Block(row_major(shape))


def address(domain: Domain, operand: str, block: Block | None = None) -> Address:
    """The address of an operand at a point of the domain; whole axes contribute index 0."""
    return linear(domain.access[operand], domain.shapes[operand], domain.dims, block)


def linear(axes: Sequence[Axis], shape: Sequence[int], sizes: Mapping[str, int], block: Block | None = None) -> Address:
    held = block or dense(shape)
    strides: dict[str, Size] = {}
    constant: Size = -held.origin
    terms: list[str] = []
    guards: list[Guard] = []
    ranges = {name: (0, size) for name, size in sizes.items()}
    for axis, extent, stride in zip(axes, shape, held.strides, strict=True):
        if isinstance(axis, Whole):
            continue
        guards += _guards(axis, extent, ranges)
        if axis.divisor == 1:
            constant = plain(constant + stride * axis.constant)
            for name, coefficient in axis.terms:
                strides[name] = plain(strides.get(name, 0) + stride * coefficient)
        else:
            text = expression(axis)
            terms.append(text if stride == 1 else scaled(f"({text})", stride))
    return Address(strides, constant, tuple(terms), tuple(guards))


def _guards(axis: Affine, extent: int, ranges: Mapping[str, tuple[int, int]]) -> list[Guard]:
    numerator = Affine(axis.terms, axis.constant)
    found: list[Guard] = []
    if any(ranges[name][1] == 0 for name in axis.dims):
        return found
    lo, hi = numerator.bounds(ranges)
    if lo < 0:
        found.append(Guard(numerator))
    if hi >= extent * axis.divisor:
        found.append(Guard(numerator * -1 + (extent * axis.divisor - 1)))
    if axis.exact:
        found.append(Guard(numerator, axis.divisor))
    return found


def _quotient(numerator: Affine, divisor: int) -> str:
    text = expression(numerator)
    return text if divisor == 1 else f"({text}) / {divisor}"
