"""Costs on array machines as rows: for tables, for JSON and for pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from tilewright.machine.array import ArrayEngine, Arrays
from tilewright.price.array import ArrayCost, areas

UNITS = "array"
"""The array itself, beside the memories."""


class NestRow(Struct, frozen=True):
    """A loop of a mapping, and for each operand the memory that keeps a tile while it runs."""

    loop: str
    unrolled: bool
    memories: Mapping[str, str]


def energy_text(picojoules: float) -> str:
    """`1234567` picojoules as `1.23 uJ`."""
    for exponent, unit in ((12, "J"), (9, "mJ"), (6, "uJ"), (3, "nJ")):
        if picojoules >= 10**exponent:
            return f"{picojoules / 10**exponent:.3g} {unit}"
    return f"{picojoules:.3g} pJ"


def bytes_text(bits: float) -> str:
    """`12000` bits as `1.5 KB`."""
    for size, unit in ((8 * 1024**3, "GB"), (8 * 1024**2, "MB"), (8 * 1024, "KB"), (8, "B")):
        if bits >= size:
            return f"{bits / size:.3g} {unit}"
    return f"{bits:.3g} bits"


def area_of(machine: Arrays) -> float:
    """Of units and memories, in whatever unit the machine's description has."""
    return sum(max(sum(areas(mode).values()) for mode in modes) for modes in machine.engines)


def energy_by_memory(costs: Iterable[ArrayCost], engine: ArrayEngine | Arrays) -> dict[str, float]:
    """Picojoules of the array and of each memory, from the inside out."""
    found: dict[str, float] = {UNITS: 0.0, **{memory.name: 0.0 for memory in engine.memories}}
    for cost in costs:
        found[UNITS] += cost.unit_energy
        for move in cost.moves:
            found[move.memory.name] += move.energy
    return found


def latency_parts(costs: Iterable[ArrayCost]) -> dict[str, float]:
    """Cycles by what they are for."""
    found: dict[str, float] = {"computing": 0.0, "stall": 0.0, "loading": 0.0, "storing": 0.0}
    for cost in costs:
        latency = cost.latency
        found["computing"] += latency.computing
        found["stall"] += latency.stall
        found["loading"] += latency.loading
        found["storing"] += latency.storing
    return found


def nest_rows(cost: ArrayCost) -> list[NestRow]:
    """The loops of a mapping, the outermost first; those that are unrolled come last.

    Neighbours of one dimension at the same memories are one loop.
    """
    found: list[tuple[str, int, dict[str, str]]] = []
    for place in range(len(cost.temporal.order) - 1, -1, -1):
        dim, steps = cost.temporal.order[place]
        at: dict[str, str] = {}
        for operand in cost.layer.operands:
            cuts = cost.temporal.cuts[operand.name]
            level = next(level for level, cut in enumerate(cuts) if place < cut)
            at[operand.name] = cost.engine.levels(operand.slot)[level].name
        if found and found[-1][0] == dim and found[-1][2] == at:
            found[-1] = (dim, found[-1][1] * steps, at)
        else:
            found.append((dim, steps, at))
    unrolled = [
        NestRow(f"at once {dim} in {steps} along {array}", True, {})
        for array, loops in cost.spatial.loops.items()
        for dim, steps in loops
        if steps > 1
    ]
    return [*(NestRow(f"for {dim} in {steps}", False, at) for dim, steps, at in found), *unrolled]


def layer_values(cost: ArrayCost) -> dict[str, object]:
    """A mapped layer as plain values."""
    moves: dict[str, dict[str, dict[str, float]]] = {}
    for move in cost.moves:
        by_operand = moves.setdefault(move.memory.name, {}).setdefault(move.operand, {})
        by_operand[move.direction] = by_operand.get(move.direction, 0.0) + move.energy
    latency = cost.latency
    return {
        "layer": cost.layer.name,
        "operator": cost.layer.kind,
        "equation": cost.layer.equation,
        "dims": dict(cost.layer.dims),
        "bits": {o.name: [o.bits, o.final_bits] for o in cost.layer.operands},
        "operations": cost.layer.operations,
        "energy": cost.energy,
        "cycles": cost.cycles,
        "utilisation": cost.utilisation,
        "spatial": {array: [list(loop) for loop in loops] for array, loops in cost.spatial.loops.items()},
        "order": [list(loop) for loop in cost.temporal.order],
        "cuts": {name: list(cuts) for name, cuts in cost.temporal.cuts.items()},
        "memories": {o.name: [m.name for m in cost.engine.levels(o.slot)] for o in cost.layer.operands},
        "unit_energy": cost.unit_energy,
        "memory_energy": moves,
        "latency": {
            "ideal": latency.ideal,
            "computing": latency.computing,
            "stall": latency.stall,
            "loading": latency.loading,
            "storing": latency.storing,
        },
    }
