"""Mappings as JSON values, to keep one, change it or pin it: what is unrolled, the order, what is kept where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer
from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine


def to_json(layer: Layer, engine: ArrayEngine, spatial: SpatialMapping, temporal: TemporalMapping) -> dict[str, object]:
    """A value of dictionaries, lists, texts and numbers; loops from the innermost on."""
    return {
        "layer": layer.name,
        "machine": engine.name,
        "spatial": {array: [list(loop) for loop in loops] for array, loops in spatial.loops.items()},
        "order": [list(loop) for loop in temporal.order],
        "kept": {
            operand.name: {
                memory.name: cut
                for memory, cut in zip(engine.levels(operand.slot), temporal.cuts[operand.name], strict=True)
            }
            for operand in layer.operands
        },
    }


def from_json(layer: Layer, engine: ArrayEngine, value: object) -> tuple[SpatialMapping, TemporalMapping]:
    """The mapping of a value, checked against the layer and the machine."""
    if not isinstance(value, Mapping):
        raise _wrong(layer, "it is not a dictionary")
    data = cast("Mapping[str, object]", value)
    try:
        unrolled = cast("Mapping[str, list[tuple[str, int]]]", data["spatial"])
        spatial = SpatialMapping({a: tuple((str(d), int(n)) for d, n in loops) for a, loops in unrolled.items()})
        order = tuple((str(d), int(n)) for d, n in cast("list[tuple[str, int]]", data["order"]))
        kept = cast("Mapping[str, Mapping[str, int]]", data["kept"])
        cuts = {
            operand.name: tuple(int(kept[operand.name][memory.name]) for memory in engine.levels(operand.slot))
            for operand in layer.operands
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _wrong(layer, f"something is missing or of the wrong kind: {str(error)[:200]}") from error
    temporal = TemporalMapping(order, cuts)
    check(layer, engine, spatial, temporal)
    return spatial, temporal


def check(layer: Layer, engine: ArrayEngine, spatial: SpatialMapping, temporal: TemporalMapping) -> None:
    """Whether loops run over the whole layer, and cuts go from the inside out; room is another question."""
    for array in spatial.loops:
        if array not in engine.dims:
            raise _wrong(layer, f"array '{engine.name}' has no dimension {array}")
    wanted = spatial.steps(layer) if all(d in layer.dims for v in spatial.loops.values() for d, _ in v) else None
    if wanted is None:
        raise _wrong(layer, "it unrolls a dimension that the layer does not have")
    steps: dict[str, int] = {}
    for dim, count in temporal.order:
        steps[dim] = steps.get(dim, 1) * count
    for dim in {*wanted, *steps}:
        if wanted.get(dim, 1) != steps.get(dim, 1):
            raise _wrong(layer, f"{dim} takes {steps.get(dim, 1)} steps in time instead of {wanted.get(dim, 1)}")
    for name, cuts in temporal.cuts.items():
        if list(cuts) != sorted(cuts) or cuts[-1] != len(temporal.order) or cuts[0] < 0:
            raise _wrong(layer, f"{name} is not kept for longer from memory to memory, and at last for all loops")


def _wrong(layer: Layer, why: str) -> TilewrightError:
    return TilewrightError(
        "bad-mapping",
        f"layer '{layer.name}': the mapping is not one of it: {why}",
        help="write one with to_json for this layer and machine, and change that",
    )
