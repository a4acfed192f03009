"""What can be unrolled over an array: given mappings fitted to a layer, and candidates where something is left open.

Limits are those of ZigZag: no more units than there are, no more data at a time than the ports of the innermost
memories carry and than they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod

from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer, Operand
from tilewright.errors import TilewrightError
from tilewright.machine.array import FROM_LOW, TO_LOW, ArrayEngine

Loops = tuple[tuple[str, int], ...]


def normalise(layer: Layer, engine: ArrayEngine, given: Mapping[str, Loops]) -> SpatialMapping:
    """A given mapping, reduced to what the layer has and what the array and its innermost memories allow."""
    for array in given:
        if array not in engine.dims:
            raise TilewrightError(
                "unknown-dimension",
                f"array '{engine.name}' has no dimension {array}",
                help=f"dimensions of this array: {', '.join(engine.dims)}",
            )
    loops = {
        array: [
            (dim, min(steps, limit(layer, engine, array, dim)))
            for dim, steps in given.get(array, ())
            if dim in layer.dims
        ]
        for array in engine.dims
    }
    check_units(layer, engine, loops)
    for operand in layer.operands:
        _fit(layer, engine, operand, loops)
    return SpatialMapping({array: tuple(found) for array, found in loops.items()})


def check_units(layer: Layer, engine: ArrayEngine, loops: Mapping[str, Sequence[tuple[str, int]]]) -> None:
    """An error where loops that share a dimension of the array take more units than it has."""
    for array, found in loops.items():
        used = prod(steps for _, steps in found)
        if used > engine.dims[array]:
            raise TilewrightError(
                "bad-mapping",
                f"layer '{layer.name}': the mapping unrolls over {used} units along {array}, where '{engine.name}' has "
                f"{engine.dims[array]}",
                help="unroll over fewer of them",
            )


def limit(layer: Layer, engine: ArrayEngine, array: str, dim: str) -> int:
    """Units along an array dimension over which a dimension of the layer can be unrolled."""
    most = min(layer.dims[dim], engine.dims[array])
    for operand in layer.operands:
        inner = engine.levels(operand.slot)[0]
        if array not in inner.serves or not operand.bits or dim in layer.irrelevant(operand):
            continue
        port = inner.port(operand.slot, FROM_LOW if operand is layer.output else TO_LOW)
        if port is not None and layer.dims[dim] > 1:
            most = min(most, max(1, port.bits // operand.bits))
    return most


def _fit(layer: Layer, engine: ArrayEngine, operand: Operand, loops: dict[str, list[tuple[str, int]]]) -> None:
    """Takes units away, one at a time from the largest factor, until an element for each fits in the inner memory."""
    inner = engine.levels(operand.slot)[0]
    if not operand.bits:
        return
    room = inner.bits // operand.bits
    reuse = layer.irrelevant(operand)
    while True:
        places = [
            (array, index)
            for array in inner.serves
            for index, (dim, steps) in enumerate(loops[array])
            if dim not in reuse and steps > 1
        ]
        if prod(loops[array][index][1] for array, index in places) <= room:
            return
        if not places:
            raise TilewrightError(
                "no-mapping",
                f"layer '{layer.name}': memory '{inner.name}' is {operand.bits - inner.bits} bits too small for one "
                f"element of {operand.name}",
                help=f"make the memory larger, or leave {operand.name} out of what it holds",
            )
        array, index = max(places, key=lambda place: loops[place[0]][place[1]][1])
        dim, steps = loops[array][index]
        loops[array][index] = (dim, steps - 1)


def candidates(
    layer: Layer,
    engine: ArrayEngine,
    given: Mapping[str, Loops] | None = None,
    hints: Mapping[str, Sequence[str]] | None = None,
    *,
    mixed: bool = False,
    most: int | None = 3,
) -> tuple[SpatialMapping, ...]:
    """Ways to fill the array dimensions that nothing is given for, best first by the units in use.

    `hints` name the layer's dimensions to try along an array dimension (all are tried where it has none of them),
    `mixed` allows several of them along one, and `most` limits how many are returned.
    """
    given, hints = given or {}, hints or {}
    fixed = normalise(layer, engine, given)
    open_arrays = [array for array in engine.dims if array not in given]
    if not open_arrays:
        return (fixed,)
    choices = [
        _along(layer, engine, array, [d for d in hints.get(array, ()) if d in layer.dims] or tuple(layer.dims), mixed)
        for array in open_arrays
    ]
    found: dict[tuple[Loops, ...], float] = {}
    for combination in product(*choices):
        chosen = dict(zip(open_arrays, combination, strict=True))
        loops = {array: chosen.get(array, fixed.loops.get(array, ())) for array in engine.dims}
        used = _used(loops.values())
        if any(steps > layer.dims[dim] for dim, steps in used.items()):
            continue
        mapping = normalise(layer, engine, loops)
        found.setdefault(tuple(mapping.loops.values()), _rank(_used(mapping.loops.values())))
    ranked = sorted(found, key=lambda loops: -found[loops])
    return tuple(SpatialMapping(dict(zip(engine.dims, loops, strict=True))) for loops in ranked[:most])


def _used(loops: Iterable[Loops]) -> dict[str, int]:
    used: dict[str, int] = {}
    for found in loops:
        for dim, steps in found:
            used[dim] = used.get(dim, 1) * steps
    return used


def _rank(used: Mapping[str, int]) -> float:
    """Units in use, and a little for spreading them over several dimensions."""
    units = prod(used.values())
    return units + (units / max(used.values(), default=1) - 1)


def _along(layer: Layer, engine: ArrayEngine, array: str, dims: Sequence[str], mixed: bool) -> list[Loops]:
    """What may be unrolled along one dimension of the array."""
    size = engine.dims[array]
    divisors = {dim: list(_divisors(limit(layer, engine, array, dim))) for dim in dims}
    found: list[Loops] = [((dim, steps),) for dim, some in divisors.items() for steps in some]
    if mixed:
        for count in range(2, len(divisors) + 1):
            for chosen in combinations(divisors, count):
                for steps in product(*([d for d in divisors[dim] if d > 1] for dim in chosen)):
                    if prod(steps) <= size:
                        found.append(tuple(zip(chosen, steps, strict=True)))
    return found


def _divisors(number: int) -> Iterator[int]:
    """From the largest to 1."""
    return (divisor for divisor in range(number, 0, -1) if number % divisor == 0)
