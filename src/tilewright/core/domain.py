"""Loop domains and access maps: what an operator touches, said once.

A `Domain` holds the loop dimensions of an operator and, for every axis of every operand, the affine expression of those
dimensions that indexes it. Footprints, halos, reuse, the split among cores and MACs are all answered from here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache, cached_property
from math import prod
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field


class Affine(Struct, frozen=True):
    """`(sum(coefficient * dimension) + constant) // divisor`.

    With `exact`, points whose numerator the divisor does not divide touch nothing (gaps of a transposed convolution).
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0
    divisor: int = 1
    exact: bool = False

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.constant + other)
        merged = dict(self.terms)
        for name, coefficient in other.terms:
            merged[name] = merged.get(name, 0) + coefficient
        return Affine(tuple((n, c) for n, c in merged.items() if c), self.constant + other.constant)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> Affine:
        return Affine(tuple((n, c * factor) for n, c in self.terms if c * factor), self.constant * factor)

    __radd__ = __add__
    __rmul__ = __mul__

    def over(self, divisor: int, *, exact: bool = False) -> Affine:
        """This expression divided by `divisor`, rounding down."""
        return self if divisor == 1 else Affine(self.terms, self.constant, divisor, exact)

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple([name for name, _ in self.terms])

    def bounds(self, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """Smallest and largest value when each dimension runs over its (start, size)."""
        lo = hi = self.constant
        for name, coefficient in self.terms:
            start, size = ranges[name]
            ends = (coefficient * start, coefficient * (start + size - 1))
            lo, hi = lo + min(ends), hi + max(ends)
        return lo // self.divisor, hi // self.divisor

    def __str__(self) -> str:
        text = " + ".join(name if c == 1 else f"{c}*{name}" for name, c in self.terms) or "0"
        if self.constant and self.terms:
            text += f" {'+' if self.constant > 0 else '-'} {abs(self.constant)}"
        elif not self.terms:
            text = str(self.constant)
        return text if self.divisor == 1 else f"({text}) / {self.divisor}"


class Whole(Struct, frozen=True):
    """The whole extent of an axis is needed, wherever the tile lies (data-dependent or non-affine access)."""

    def __str__(self) -> str:
        return "WHOLE"


WHOLE = Whole()
Axis = Affine | Whole
Tile = Mapping[str, tuple[int, int]]
"""Start and size along each tiled dimension; a dimension that is not named is taken whole."""


@cache
def dim(name: str) -> Affine:
    return Affine(((name, 1),))


def dims(names: str) -> tuple[Affine, ...]:
    """`m, k = dims("M K")`."""
    return tuple(dim(name) for name in names.split())


def at(index: int) -> Affine:
    """A constant index."""
    return Affine((), index)


class AxisRegion(Struct, frozen=True):
    """A part of an axis: `[start, start + size)` inside the tensor, plus what lies outside it on both sides."""

    start: int
    size: int
    before: int = 0
    after: int = 0


class Domain(Struct, frozen=True, dict=True):
    """Loop dimensions with sizes, and the access map of each operand."""

    dims: Mapping[str, int]
    access: Mapping[str, tuple[Axis, ...]]
    shapes: Mapping[str, tuple[int, ...]]
    outputs: tuple[str, ...]
    whole: frozenset[str] = frozenset()
    """Dimensions that a tile never splits (normalised axes, recurrences)."""
    products: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Names that kernels may use for products of dimensions."""

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The same for equal domains."""
        maps = (self.dims, self.access, self.shapes, self.products)
        return (*(tuple(each.items()) for each in maps), self.outputs, self.whole)

    @cached_property
    def answers(self) -> dict[str, Any]:
        """What others work out about it, so that they do it once."""
        return {}

    def footprint(self, operand: str, tile: Tile) -> tuple[AxisRegion, ...]:
        """The part of an operand that a tile touches, axis by axis."""
        ranges = {
            name: (0, size) if name in self.whole else tile.get(name, (0, size)) for name, size in self.dims.items()
        }
        return tuple(
            _span(axis, extent, ranges) for axis, extent in zip(self.access[operand], self.shapes[operand], strict=True)
        )

    def relevant(self, operand: str) -> frozenset[str]:
        """Dimensions that index an operand; the others are its reuse."""
        return frozenset(name for axis in self.access[operand] if isinstance(axis, Affine) for name in axis.dims)

    @cached_property
    def parallel(self) -> tuple[str, ...]:
        """Dimensions that index every output, so that tiles along them are independent."""
        indexing = [self.relevant(output) for output in self.outputs]
        return tuple(name for name in self.dims if name not in self.whole and all(name in each for each in indexing))

    @cached_property
    def reduction(self) -> tuple[str, ...]:
        """Dimensions that index no output."""
        indexing = frozenset[str]().union(*map(self.relevant, self.outputs))
        return tuple(name for name in self.dims if name not in indexing)

    def points(self) -> int:
        """Iterations of the whole domain (MACs of a contraction)."""
        return prod(self.dims.values())

    def sizes(self) -> dict[str, int]:
        """Every name a kernel may use for a size: dimensions and products."""
        return {**self.dims, **{name: prod(self.dims[part] for part in parts) for name, parts in self.products.items()}}

    def __str__(self) -> str:
        loops = " ".join(f"{name}={size}" for name, size in self.dims.items())
        maps = " ".join(f"{operand}[{', '.join(map(str, axes))}]" for operand, axes in self.access.items())
        return f"{loops}: {maps}"


def shared(domain: Domain) -> Domain:
    """The domain seen first of those that are equal, with all that was worked out about it: layers repeat."""
    if len(_DOMAINS) >= MOST_DOMAINS:
        _DOMAINS.clear()
    return _DOMAINS.setdefault(domain.key, domain)


MOST_DOMAINS = 4096
_DOMAINS: dict[tuple[Hashable, ...], Domain] = {}


def _span(axis: Axis, extent: int, ranges: Mapping[str, tuple[int, int]]) -> AxisRegion:
    if isinstance(axis, Whole) or extent == 0:
        return AxisRegion(0, extent)
    if any(ranges[name][1] == 0 for name in axis.dims):
        return AxisRegion(0, 0)
    lo, hi = axis.bounds(ranges)
    start, stop = min(max(lo, 0), extent), max(min(hi + 1, extent), 0)
    if stop <= start:
        return AxisRegion(min(start, extent - 1), 0, max(0, min(hi + 1, 0) - lo), max(0, hi + 1 - max(lo, extent)))
    return AxisRegion(start, stop - start, start - lo, hi + 1 - stop)


def elementwise(output: tuple[int, ...], inputs: Mapping[str, tuple[int, ...]], name: str = "Y") -> Domain:
    """The domain of an element-wise operator whose inputs broadcast to the output."""
    names = axis_names(len(output))
    access: dict[str, tuple[Axis, ...]] = {}
    for operand, shape in inputs.items():
        lead = len(output) - len(shape)
        # One number may have more axes than the output, as a bound of a Clip has.
        access[operand] = tuple(
            dim(names[lead + i]) if lead + i >= 0 and extent == output[lead + i] else at(0)
            for i, extent in enumerate(shape)
        )
    access[name] = tuple(dim(n) for n in names)
    return Domain(
        MappingProxyType(dict(zip(names, output, strict=True))),
        MappingProxyType(access),
        MappingProxyType({**inputs, name: output}),
        (name,),
        products=MappingProxyType({"SIZE": tuple(names), "ROWS": tuple(names[:-1]), "COLUMNS": tuple(names[-1:])}),
    )


def axis_names(rank: int) -> tuple[str, ...]:
    """Names of the loop dimensions of an operator of any rank: D0, D1, ..."""
    return tuple(f"D{i}" for i in range(rank))


def domain(
    sizes: Mapping[str, int],
    access: Mapping[str, Sequence[Axis]],
    shapes: Mapping[str, tuple[int, ...]],
    outputs: str,
    *,
    whole: str = "",
    products: Mapping[str, Sequence[str]] | None = None,
) -> Domain:
    """A frozen Domain from plain values; `outputs` and `whole` are space-separated names."""
    return Domain(
        MappingProxyType(dict(sizes)),
        MappingProxyType({operand: tuple(axes) for operand, axes in access.items()}),
        MappingProxyType(dict(shapes)),
        tuple(outputs.split()),
        frozenset(whole.split()),
        MappingProxyType({name: tuple(parts) for name, parts in (products or {}).items()}),
    )
