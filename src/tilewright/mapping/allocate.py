"""Which loops of an order run at which memory: each memory in turn keeps, for each operand, the tile that saves most.

This is how ZigZag decides it for one order (its "uneven" and "even" mappings), with the same ties. The search looks at
all other ways as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.mapping import Loop, SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer, Operand
from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine, MemoryLevel
from tilewright.price.array_nest import loops_by_memory

Order = tuple[tuple[str, int], ...]


class _OperandState(Struct):
    """How far one operand is: the loops that it has room for, and where it is in the order."""

    operand: Operand
    entries: tuple[tuple[Loop, ...], ...]
    extents: dict[str, float]
    level: int = 0
    cut: int = 0

    def enter(self) -> None:
        """Adds the loops that are unrolled below its next memory."""
        for dim, steps in self.entries[self.level]:
            self.extents[dim] = self.extents.get(dim, 1) * steps


class _Choice(Struct, frozen=True):
    """A tile of an operand in a memory."""

    cut: int
    bits: float
    cost: float


def allocate(
    layer: Layer,
    engine: ArrayEngine,
    spatial: SpatialMapping,
    order: Order,
    *,
    even: bool = False,
    corrected: bool = False,
) -> TemporalMapping:
    """The mapping of one order.

    With `even`, all operands of a memory are cut at the same loop; `corrected`, tiles take half of memories with two
    buffers.
    """
    memories = usable(engine, corrected=corrected)
    unrolled = spatial.fractional(layer)
    states = {o.slot: _OperandState(o, loops_by_memory(engine, o.slot, unrolled), {}) for o in layer.operands}
    cuts: dict[str, list[int]] = {operand.name: [] for operand in layer.operands}
    for state in states.values():
        state.enter()
    for memory in memories:
        held = [states[slot] for slot in memory.slots if slot in states]
        if not held:
            continue
        chosen = _choose(layer, memory, held, order, even)
        for state, choice in zip(held, chosen, strict=True):
            for dim, steps in order[state.cut : choice.cut]:
                state.extents[dim] = state.extents.get(dim, 1) * steps
            state.cut = choice.cut
            cuts[state.operand.name].append(choice.cut)
            state.level += 1
            state.enter()
    return TemporalMapping(order, {name: tuple(found) for name, found in cuts.items()})


def usable(engine: ArrayEngine, *, corrected: bool) -> list[MemoryLevel]:
    """The memories with the bits that tiles may take: half of those with two buffers, in the corrected model."""
    return [
        replace(memory, bits=memory.bits // 2) if corrected and memory.double_buffered else memory
        for memory in engine.memories
    ]


def _choose(
    layer: Layer, memory: MemoryLevel, held: Sequence[_OperandState], order: Order, even: bool
) -> tuple[_Choice, ...]:
    """The tiles that leave the least traffic above, among those that fit together; the last of equal ones."""
    options = [_options(layer, memory, state, order) for state in held]
    least_of_each = [(state.operand.name, choices[0].bits) for state, choices in zip(held, options, strict=True)]
    if sum(bits for _, bits in least_of_each) > memory.bits:
        raise too_small(layer, memory, least_of_each)
    best: tuple[_Choice, ...] | None = None
    best_cost = float("inf")
    for choices in product(*options):
        if sum(choice.bits for choice in choices) > memory.bits:
            continue
        if even and len({choice.cut for choice in choices}) > 1:
            continue
        cost = sum(choice.cost for choice in choices)
        if cost <= best_cost:
            best, best_cost = choices, cost
    if best is None:
        raise too_small(layer, memory, least_of_each)
    return best


def _options(layer: Layer, memory: MemoryLevel, state: _OperandState, order: Order) -> list[_Choice]:
    """Every tile of an operand that fits into a memory by itself; only the whole at its outermost one."""
    operand = state.operand
    bits = element_bits(layer, operand, order[state.cut :], state.entries[state.level + 1 :])
    extents = dict(state.extents)
    choices: list[_Choice] = []
    above = prod(steps for _, steps in order[state.cut :])
    for cut in range(state.cut, len(order) + 1):
        if cut > state.cut:
            dim, steps = order[cut - 1]
            extents[dim] = extents.get(dim, 1) * steps
            above //= steps
        size = layer.elements(operand, extents) * bits
        if size > memory.bits:
            if cut == state.cut:
                raise too_small(layer, memory, [(operand.name, size)])
            break
        choices.append(_Choice(cut, size, above * size))
    if state.level < len(state.entries) - 2:
        return choices
    last = choices[-1]
    if last.cut < len(order):
        raise too_small(layer, memory, [(operand.name, layer.elements(operand) * bits)])
    return [_Choice(last.cut, last.bits, 0.0)]


def element_bits(layer: Layer, operand: Operand, left: Order, above: Sequence[Sequence[Loop]]) -> int:
    """Bits of an element in a memory: of an output those of sums, as long as loops above the memory below still add.

    `left` are the loops in time that lie above the memory below, `above` the entries that are unrolled above this one.
    """
    if operand is not layer.output:
        return operand.bits
    adding = layer.irrelevant(operand)
    spatial = (loop for entry in above for loop in entry)
    if any(dim in adding for dim, _ in left) or any(dim in adding and steps > 1 for dim, steps in spatial):
        return operand.bits
    return operand.final_bits


def tiles(
    layer: Layer, engine: ArrayEngine, spatial: SpatialMapping, temporal: TemporalMapping
) -> dict[str, dict[str, float]]:
    """By operand and memory: the bits that its tile takes there."""
    unrolled = spatial.fractional(layer)
    found: dict[str, dict[str, float]] = {}
    for operand in layer.operands:
        entries = loops_by_memory(engine, operand.slot, unrolled)
        extents: dict[str, float] = {}
        taken: dict[str, float] = {}
        below = 0
        cuts = temporal.cuts[operand.name]
        for level, (memory, cut) in enumerate(zip(engine.levels(operand.slot), cuts, strict=True)):
            for dim, steps in (*entries[level], *temporal.order[below:cut]):
                extents[dim] = extents.get(dim, 1) * steps
            bits = element_bits(layer, operand, temporal.order[below:], entries[level + 1 :])
            taken[memory.name] = layer.elements(operand, extents) * bits
            below = cut
        found[operand.name] = taken
    return found


def too_small(
    layer: Layer,
    memory: MemoryLevel,
    wanted: Sequence[tuple[str, float]],
    help: str = "unroll less over the units that this memory serves, or make it larger",
) -> TilewrightError:
    """Which memory lacks how many bits, and what each operand wants of it."""
    total = sum(bits for _, bits in wanted)
    names = " and ".join(name for name, _ in wanted)
    return TilewrightError(
        "no-mapping",
        f"layer '{layer.name}': memory '{memory.name}' is {total - memory.bits:.0f} bits too small for {names}",
        reasons=[f"{name} needs {bits:.0f} of {memory.bits} bits" for name, bits in wanted],
        help=help,
    )
