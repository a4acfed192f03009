"""Mappings of a layer onto an array: what is unrolled over the units, the order of the rest, and what is kept where."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod
from types import MappingProxyType

from msgspec import Struct

from tilewright.core.workload import Layer

Loop = tuple[str, float]
"""A dimension of the layer with its steps; unrolled ones may be fractions, see `SpatialMapping.fractional`."""
Unrolled = Mapping[str, tuple[Loop, ...]]


class SpatialMapping(Struct, frozen=True):
    """For each dimension of the array the dimensions of the layer that are unrolled along it."""

    loops: Mapping[str, tuple[tuple[str, int], ...]]

    def factor(self, dim: str) -> int:
        """Units over which a dimension of the layer is unrolled, along all dimensions of the array."""
        return prod(steps for loops in self.loops.values() for name, steps in loops if name == dim)

    def steps(self, layer: Layer) -> dict[str, int]:
        """What is left of each dimension to run in time; dimensions with nothing left are not named."""
        left = dict(layer.dims)
        for loops in self.loops.values():
            for name, steps in loops:
                left[name] = ceil(left[name] / steps)
        return {name: steps for name, steps in left.items() if steps > 1}

    def fractional(self, layer: Layer) -> Unrolled:
        """Average units in use where a factor does not divide its dimension: 3 over 2 units takes 2 steps of 1.5."""
        changed = {array: list(loops) for array, loops in self.loops.items()}
        exact: dict[str, list[Loop]] = {array: [*loops] for array, loops in self.loops.items()}
        for dim, size in layer.dims.items():
            places = [(a, i) for a, loops in changed.items() for i, (name, _) in enumerate(loops) if name == dim]
            if not places:
                continue
            array, index = max(places, key=lambda place: changed[place[0]][place[1]][1])
            steps = changed[array][index][1]
            first = places.index((array, index))
            before = prod(changed[a][i][1] for a, i in places[:first])
            exact[array][index] = (dim, size / ceil(size / (steps * before)) / before)
        return MappingProxyType({array: tuple(loops) for array, loops in exact.items()})

    def integral(self, layer: Layer, *, up: bool = False) -> Unrolled:
        """The same in whole units, rounded down or `up`."""
        return MappingProxyType(
            {
                array: tuple((name, float(ceil(round(steps, 9)) if up else int(steps))) for name, steps in loops)
                for array, loops in self.fractional(layer).items()
            }
        )

    def __str__(self) -> str:
        return ", ".join(
            f"{array}: {' '.join(f'{name}={steps}' for name, steps in loops)}" for array, loops in self.loops.items()
        )


class TemporalMapping(Struct, frozen=True):
    """The order of loops in time, and for each operand and memory how many of them run while a tile stays there."""

    order: tuple[tuple[str, int], ...]
    """Innermost first."""
    cuts: Mapping[str, tuple[int, ...]]
    """By operand, for each of its memories from the inside out: the loops of `order` at it or below it."""

    @property
    def steps(self) -> int:
        return prod(steps for _, steps in self.order)

    def at(self, operand: str, level: int) -> tuple[tuple[str, int], ...]:
        """The loops between the memory below and this one."""
        cuts = self.cuts[operand]
        return self.order[cuts[level - 1] if level else 0 : cuts[level]]
