"""Which dimensions of a layer may be unrolled along which dimension of an array, by the wires that it has."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.core.accelerator import ArrayEngine
from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer
from tilewright.mapping.spatial import Loops, candidates


@dataclass(frozen=True)
class Unrolling:
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
    given = dict(wanted.given)
    hints = {array: dims for array, dims in wired(layer, engine).items() if array not in given}
    given |= {array: () for array, dims in hints.items() if not dims}
    used = {array: dims for array, dims in hints.items() if dims}
    return candidates(layer, engine, given, used, mixed=wanted.mixed, most=wanted.most)
