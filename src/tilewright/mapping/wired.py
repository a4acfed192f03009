"""Which dimensions of a layer may be unrolled along which dimension of an array, by the wires that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, prod

from msgspec import Struct

from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer
from tilewright.machine.array import ArrayEngine
from tilewright.mapping.spatial import Loops, candidates, limit, normalise
from tilewright.price.array_nest import loops_by_memory

KEPT = 64
"""Ways to fill the first few dimensions of an array that are pursued, those that use most units."""
Unrolled = dict[str, Loops]


class Unrolling(Struct, frozen=True):
    """What a user says about unrolling."""

    given: tuple[tuple[str, Loops], ...] = ()
    """By dimension of the array; others are searched."""
    mixed: bool = False
    """Whether several dimensions of a layer may share one of the array."""
    most: int | None = 3
    """Ways that are searched, those that use most units first."""


def wired(layer: Layer, engine: ArrayEngine) -> dict[str, tuple[str, ...]]:
    """By array dimension with wires of its own: the layer's dimensions that they allow."""
    present = frozenset(operand.slot for operand in layer.operands)
    allowed = {array: {slots & present for slots in sets} for array, sets in engine.wiring.items()}
    found = {
        array: tuple(d for d, size in layer.dims.items() if size > 1 and _indexes(layer, d) in sets)
        for array, sets in allowed.items()
    }
    if any(found.values()) or not found:
        return found
    # Results of any operator can be spread over units; otherwise a single one would do all of its work.
    first = next(iter(found))
    return found | {first: tuple(d for d in layer.output.dims if layer.dims[d] > 1)}


def _indexes(layer: Layer, dim: str) -> frozenset[str]:
    """The slots of the operands that a dimension indexes."""
    return frozenset(o.slot for o in layer.operands if dim in o.dims or dim in layer.summed(o))


def unrollings(layer: Layer, engine: ArrayEngine, unrolling: Unrolling | None = None) -> tuple[SpatialMapping, ...]:
    """The unrollings to search, as the wires allow them and as a user says."""
    wanted = unrolling or Unrolling()
    named = {array: tuple(each for each in loops if each[0] in layer.dims) for array, loops in engine.dataflow.items()}
    given = (named if any(named.values()) else {}) | dict(wanted.given)
    anything = tuple(d for d, size in layer.dims.items() if size > 1)
    allowed = dict.fromkeys(engine.dims, anything) | wired(layer, engine)
    hints = {array: dims for array, dims in allowed.items() if array not in given}
    if wanted.mixed:
        given |= {array: () for array, dims in hints.items() if not dims}
        used = {array: dims for array, dims in hints.items() if dims}
        return candidates(layer, engine, given, used, mixed=wanted.mixed, most=wanted.most)
    normalise(layer, engine, given)  # says what is wrong with what a user gives
    found: dict[tuple[Loops, ...], None] = {}
    for loops in _filled(layer, engine, given, hints):
        found[tuple(normalise(layer, engine, loops).loops.values())] = None
    ranked = list(found)[: wanted.most]
    return tuple(SpatialMapping(dict(zip(engine.dims, loops, strict=True))) for loops in ranked)


def _filled(
    layer: Layer, engine: ArrayEngine, given: Mapping[str, Loops], hints: Mapping[str, tuple[str, ...]]
) -> list[Unrolled]:
    """Ways to fill the array whose smallest tiles fit into all memories, those that use most units first."""
    kept: list[Unrolled] = [{}]
    for array in engine.dims:
        grown: list[Unrolled] = []
        for loops in kept:
            choices = [given[array]] if array in given else _choices(layer, engine, array, hints[array], loops)
            grown += [{**loops, array: choice} for choice in choices]
        fitting = [loops for loops in grown if _fits(layer, engine, loops)]
        kept = sorted(fitting or grown[:1], key=lambda loops: -_units(loops))[:KEPT]
    return kept


def _choices(layer: Layer, engine: ArrayEngine, array: str, dims: tuple[str, ...], before: Unrolled) -> Iterator[Loops]:
    """What may lie along one dimension: as much of a loop as possible, the two most that divide it, or nothing."""
    for dim in dims:
        left = ceil(layer.dims[dim] / prod(s for loops in before.values() for d, s in loops if d == dim))
        most = min(left, limit(layer, engine, array, dim))
        even = [steps for steps in range(most, 0, -1) if left % steps == 0][:2]
        yield from ((((dim, steps),)) for steps in dict.fromkeys((most, *even)) if steps > 1)
    yield ()


def _units(loops: Unrolled) -> int:
    return prod(steps for found in loops.values() for _, steps in found)


def _fits(layer: Layer, engine: ArrayEngine, loops: Unrolled) -> bool:
    """Whether memories have room for one element of everything that is unrolled below them."""
    taken: dict[str, float] = {}
    for operand in layer.operands:
        extents: dict[str, float] = {}
        entries = loops_by_memory(engine, operand.slot, loops)
        for entry, memory in zip(entries, engine.levels(operand.slot), strict=False):
            for dim, steps in entry:
                extents[dim] = extents.get(dim, 1) * steps
            bits = layer.elements(operand, extents) * operand.bits
            taken[memory.name] = taken.get(memory.name, 0.0) + bits
    return all(taken.get(memory.name, 0.0) <= memory.bits for memory in engine.memories)
