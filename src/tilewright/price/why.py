"""Where a cost comes from: a tree from the total down to the numbers that went into it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tilewright.machine.array import READS, MemoryLevel
from tilewright.price.array import ArrayCost, operation_cycles
from tilewright.price.array_latency import allowed, by_port
from tilewright.price.array_moves import ArrayMove
from tilewright.price.array_nest import OperandNest
from tilewright.price.sparsity import working


class Why(Struct, frozen=True):
    """A number, how it was worked out, and the numbers that went into it."""

    what: str
    value: float
    unit: str
    how: str = ""
    parts: tuple[Why, ...] = ()

    def __str__(self) -> str:
        how = f" = {self.how}" if self.how else ""
        return f"{self.what}: {self.value:,.6g} {self.unit}{how}"

    def lines(self, depth: int = 0) -> list[str]:
        """The tree as text, two spaces for each level."""
        return ["  " * depth + str(self), *(line for part in self.parts for line in part.lines(depth + 1))]


def explain(cost: ArrayCost) -> Why:
    """Energy and latency of a layer."""
    parts = (_energy(cost), _latency(cost))
    return Why("energy times delay", cost.product, "pJ x cycles", "energy * latency", parts)


def _energy(cost: ArrayCost) -> Why:
    units = tuple(Why(name, value, "pJ") for name, value in cost.unit_energies.items())
    memories = [_memory(cost, memory) for memory in cost.engine.memories]
    spent = tuple(memory for memory in memories if memory.parts)
    return Why(
        "energy",
        cost.energy,
        "pJ",
        "array + memories",
        (
            Why("array", cost.unit_energy, "pJ", _operations(cost), units),
            Why("memories", cost.memory_energy, "pJ", " + ".join(m.what for m in spent), spent),
        ),
    )


def _operations(cost: ArrayCost) -> str:
    part = 1.0 if cost.engine.compute_in_memory else working(cost.layer)
    return f"{cost.layer.operations:,} operations" + (f" * {part:.6g} without a zero" if part < 1 else "")


def _memory(cost: ArrayCost, memory: MemoryLevel) -> Why:
    moves = [move for move in cost.moves if move.memory.name == memory.name and move.words]
    parts = tuple(_crossing(cost, move) for move in moves)
    return Why(memory.name, sum(move.energy for move in moves), "pJ", "sum over operands and directions", parts)


def _crossing(cost: ArrayCost, move: ArrayMove) -> Why:
    each = move.memory.read_energy if move.direction in READS else move.memory.write_energy
    kind = "read" if move.direction in READS else "written"
    return Why(
        f"{move.operand} {move.direction}",
        move.energy,
        "pJ",
        f"{move.words:,} words {kind} * {each:g} pJ",
        (_words(move), _times(cost, move)),
    )


def _words(move: ArrayMove) -> Why:
    port = move.port
    assert port is not None
    scaled = f" * {port.granularity}/{port.bits}" if port.granularity != port.bits else ""
    return Why(
        "accesses",
        move.words,
        "words",
        f"int(ceil({move.elements:,} elements * {move.bits} bits / {port.granularity}){scaled} "
        f"* {move.times:,} times * {move.copies:,} copies)",
    )


def _times(cost: ArrayCost, move: ArrayMove) -> Why:
    nest = cost.nests[move.operand]
    return Why(
        "times",
        move.times,
        "",
        f"{cost.temporal.steps:,} steps // {move.period:,} in which it has what it needs",
        (_stays(cost, nest, move),),
    )


def _stays(cost: ArrayCost, nest: OperandNest, move: ArrayMove) -> Why:
    """The loops during which the data that cross stay."""
    loops = cost.temporal.order[: nest.kept[move.entry - 1]] if move.entry else ()
    shown = " ".join(f"{dim}={steps}" for dim, steps in reversed(loops))
    if not move.entry:
        return Why("stays", move.period, "steps", "loops right above the array that do not index it")
    return Why(
        "stays", move.period, "steps", f"loops at {nest.memories[move.entry - 1].name} and below: {shown or 'none'}"
    )


def _latency(cost: ArrayCost) -> Why:
    latency = cost.latency
    order = " ".join(f"{dim}={steps}" for dim, steps in reversed(cost.temporal.order)) or "one step"
    each = operation_cycles(cost.layer, cost.engine, cost.spatial)
    return Why(
        "latency",
        latency.total,
        "cycles",
        "computing + stall + loading + storing",
        (
            Why("computing", latency.computing, "cycles", f"{cost.temporal.steps:,} steps ({order}) * {each:g}"),
            _stall(cost),
            Why("loading", latency.loading, "cycles", "until the first operation", _loads(cost, inputs=True)),
            Why("storing", latency.storing, "cycles", "after the last operation", _loads(cost, inputs=False)),
        ),
    )


def _stall(cost: ArrayCost) -> Why:
    ports = by_port(move for move in cost.latency.moves if move.times)
    found = tuple(
        Why(f"{key[0]}.{key[1]}", cycles, "cycles", "of slack" if cycles < 0 else "late", _late(cost, ports[key]))
        for key, cycles in cost.latency.stalls.items()
    )
    how = "the slowest port, and all that the array cannot work beside"
    return Why("stall", cost.latency.stall, "cycles", how, found)


def _late(cost: ArrayCost, moves: Sequence[ArrayMove]) -> tuple[Why, ...]:
    cycles = operation_cycles(cost.layer, cost.engine, cost.spatial)
    parts: list[Why] = []
    for move in moves:
        room = allowed(move, cost.double_buffered, cycles)
        late = (move.busy - room) * (move.times - 1)
        parts.append(
            Why(
                f"{move.operand} {move.direction}",
                late,
                "cycles",
                f"({move.busy:,} busy - {room:,} allowed) * ({move.times:,} times - 1)",
            )
        )
    return tuple(parts)


def _loads(cost: ArrayCost, *, inputs: bool) -> tuple[Why, ...]:
    written = cost.layer.output.name
    return tuple(
        Why(f"{operand} {direction} of {cost.nests[operand].memories[level].name}", cycles, "cycles")
        for (operand, level, direction), cycles in cost.latency.loads.items()
        if (operand != written) == inputs and cycles
    )
