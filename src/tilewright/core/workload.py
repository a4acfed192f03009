"""Layers as loop nests: dimensions with sizes, and which operand each of them indexes; workloads are many."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import gcd, prod
from types import MappingProxyType

from msgspec import Struct, field


class Sum(Struct, frozen=True):
    """An axis indexed by two dimensions at once: `IX = 2*OX + FX` (stride 2, dilation 1)."""

    name: str
    first: str
    second: str
    first_scale: int
    second_scale: int
    size: int
    """Values that the whole layer touches: no more than the tensor has, padding left out."""

    def values(self, first: float, second: float) -> int:
        """How many different values it takes while its dimensions run over so many steps."""
        a, b = int(first), int(second)
        common = gcd(self.first_scale, self.second_scale)
        different = a * b - max(0, b - self.first_scale // common) * (a - self.second_scale // common)
        return min(self.size, different)


class Operand(Struct, frozen=True):
    """A tensor of a layer."""

    name: str
    slot: str
    """What the machine's memories call it."""
    dims: tuple[str, ...]
    """Dimensions that index it by themselves."""
    sums: tuple[str, ...] = ()
    """Axes that are indexed by two dimensions."""
    bits: int = 8
    """Of an element; of an output, while it is summed up."""
    final_bits: int = 8
    """Of an element of an output when it is done."""
    sources: tuple[str, ...] = ()
    """The layers that make it, several where something without a cost joins them; none of constants and inputs."""
    constant: bool = False
    density: float = 1.0
    """The part of its elements that is not zero."""


class Layer(Struct, frozen=True, dict=True):
    """A loop nest in which each point multiplies one element of every input and adds to one of the output."""

    name: str
    kind: str
    dims: Mapping[str, int]
    output: Operand
    inputs: tuple[Operand, ...]
    sums: Mapping[str, Sum] = field(default_factory=lambda: MappingProxyType({}))
    equation: str = ""

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """The output, then the inputs."""
        return (self.output, *self.inputs)

    def operand(self, name: str) -> Operand:
        return next(operand for operand in self.operands if operand.name == name)

    @property
    def operations(self) -> int:
        """Points of the loop nest: multiply-accumulates."""
        return prod(self.dims.values())

    def summed(self, operand: Operand) -> frozenset[str]:
        """Dimensions that index an operand together with another one (partially relevant)."""
        return frozenset(d for name in operand.sums for d in (self.sums[name].first, self.sums[name].second))

    def relevant(self, operand: Operand) -> tuple[str, ...]:
        """Dimensions that index an operand by themselves and have more than one step."""
        summed = self.summed(operand)
        return tuple(d for d in operand.dims if d not in summed and self.dims[d] > 1)

    def irrelevant(self, operand: Operand) -> tuple[str, ...]:
        """Dimensions that do not index an operand and have more than one step: its reuse."""
        summed = self.summed(operand)
        return tuple(d for d, size in self.dims.items() if d not in operand.dims and d not in summed and size > 1)

    def elements(self, operand: Operand, extents: Mapping[str, float] | None = None) -> float:
        """Elements of an operand that are touched while dimensions run over some steps (one if not named)."""
        run = self.dims if extents is None else extents
        plain = prod(run.get(d, 1) for d in self.relevant(operand))
        return plain * prod(
            self.sums[name].values(run.get(self.sums[name].first, 1), run.get(self.sums[name].second, 1))
            for name in operand.sums
        )


class Workload(Struct, frozen=True):
    """Layers in an order in which they can run; operands say which layer makes them."""

    name: str
    layers: tuple[Layer, ...]

    def producers(self, layer: Layer) -> tuple[str, ...]:
        """The layers whose results a layer reads."""
        return tuple(dict.fromkeys(name for operand in layer.inputs for name in operand.sources))

    def consumers(self, name: str) -> tuple[Layer, ...]:
        """The layers that read what a layer makes."""
        return tuple(layer for layer in self.layers if any(name in o.sources for o in layer.inputs))
