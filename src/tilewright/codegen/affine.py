"""Linear addresses in C: access maps of dense row-major operands become strides over loop dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.core.domain import Affine, Axis, Domain, Whole


@dataclass(frozen=True)
class Guard:
    """A condition under which an access lies inside its tensor."""

    expression: str


@dataclass(frozen=True)
class Address:
    """`constant + sum(stride * dimension)` elements, plus terms that are not linear, valid where the guards hold."""

    strides: Mapping[str, int]
    constant: int
    terms: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()

    def text(self) -> str:
        parts = [name if stride == 1 else f"{name} * {stride}" for name, stride in self.strides.items() if stride]
        parts += list(self.terms)
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


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
    text = " + ".join(name if c == 1 else f"{name} * {c}" for name, c in axis.terms)
    if axis.constant or not text:
        text = f"{text} + {axis.constant}" if text else str(axis.constant)
    text = text.replace("+ -", "- ")
    return text if axis.divisor == 1 else f"({text}) / {axis.divisor}"


def address(domain: Domain, operand: str) -> Address:
    """The address of an operand at a point of the domain; whole axes contribute index 0."""
    return linear(domain.access[operand], domain.shapes[operand], domain.dims)


def linear(axes: Sequence[Axis], shape: Sequence[int], sizes: Mapping[str, int]) -> Address:
    strides: dict[str, int] = {}
    constant = 0
    terms: list[str] = []
    guards: list[Guard] = []
    ranges = {name: (0, size) for name, size in sizes.items()}
    for axis, extent, stride in zip(axes, shape, row_major(shape), strict=True):
        if isinstance(axis, Whole):
            continue
        guards += _guards(axis, extent, ranges)
        if axis.divisor == 1:
            constant += axis.constant * stride
            for name, coefficient in axis.terms:
                strides[name] = strides.get(name, 0) + coefficient * stride
        else:
            text = expression(axis)
            terms.append(text if stride == 1 else f"({text}) * {stride}")
    return Address(strides, constant, tuple(terms), tuple(guards))


def _guards(axis: Affine, extent: int, ranges: Mapping[str, tuple[int, int]]) -> list[Guard]:
    numerator = Affine(axis.terms, axis.constant)
    text = expression(numerator)
    found: list[Guard] = []
    if any(ranges[name][1] == 0 for name in axis.dims):
        return found
    lo, hi = numerator.bounds(ranges)
    if lo < 0:
        found.append(Guard(f"{text} >= 0"))
    if hi >= extent * axis.divisor:
        found.append(Guard(f"{text} < {extent * axis.divisor}"))
    if axis.exact:
        found.append(Guard(f"({text}) % {axis.divisor} == 0"))
    return found
