"""The loops of a mapping as one operand sees them: which are unrolled where, which run at which memory, what is reused.

Lists run from the array outwards. Entry 0 is the array itself, entry `l` the memory `l - 1` of the operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile
from math import prod
from operator import mul

from msgspec import Struct

from tilewright.core.mapping import Loop, TemporalMapping, Unrolled
from tilewright.core.workload import Layer, Operand, Sum
from tilewright.machine.array import ArrayEngine, MemoryLevel


class OperandNest(Struct, frozen=True):
    """What follows for one operand from a mapping, before anybody asks for energy or time."""

    operand: Operand
    is_output: bool
    memories: tuple[MemoryLevel, ...]
    unrolled: tuple[tuple[Loop, ...], ...]
    """Loops unrolled over units that share a memory: entry 0 below the innermost one, the last above the outermost."""
    kept: tuple[int, ...]
    """By memory, the loops of the order that run while a tile stays: cuts, moved up past loops that reuse the tile."""
    elements: tuple[int, ...]
    """Elements at a time: of one unit, then of one copy of each memory."""
    bits: tuple[int, ...]
    """Of an element that crosses below each memory, and above the last one."""
    partial: tuple[bool, ...]
    """Whether what crosses there is not summed up yet."""
    copies: tuple[int, ...]
    """Units, then copies of each memory, that are in use."""
    widths: tuple[int, ...]
    """By memory: how many copies below it want different data."""
    periods: tuple[int, ...]
    """Cycles for which a unit, then each memory, has what it needs."""
    relevant_runs: tuple[int, ...]
    """Steps of the outermost loops at the memory below, as far as all of them bring other data."""
    reused_runs: tuple[int, ...]
    """The same for loops that bring the same data."""
    reuse_above: tuple[float, ...]
    """How often each element comes by at an entry or above."""
    steps: int

    @property
    def depth(self) -> int:
        return len(self.memories)

    def tile_bits(self, entry: int) -> int:
        return self.elements[entry] * self.bits[entry]


def loops_by_memory(engine: ArrayEngine, slot: str, unrolled: Unrolled) -> tuple[tuple[Loop, ...], ...]:
    """The unrolled loops by the first memory that serves them; the last entry has those that none serves."""
    memories = engine.levels(slot)
    entries: list[list[Loop]] = [[] for _ in range(len(memories) + 1)]
    for array, loops in unrolled.items():
        first = next((i for i, memory in enumerate(memories) if array in memory.serves), len(memories))
        entries[first].extend(loops)
    return tuple(tuple(entry) for entry in entries)


class _Splitter:
    """Takes loops from the inside out, and says for each how much new data it brings and how much it reuses."""

    def __init__(self, layer: Layer, operand: Operand) -> None:
        self._relevant = frozenset(layer.relevant(operand))
        self._sums: dict[str, Sum] = {}
        for name in operand.sums:
            found = layer.sums[name]
            self._sums |= {found.first: found, found.second: found}
        self._extents = dict.fromkeys(self._sums, 1.0)
        self._values = dict.fromkeys(operand.sums, 1.0)

    def __call__(self, loops: Iterable[Loop]) -> tuple[float, float]:
        """The factors of new data and of reuse of some loops."""
        new, reused = 1.0, 1.0
        for dim, steps in loops:
            found = self._sums.get(dim)
            if found is None:
                new, reused = (new * steps, reused) if dim in self._relevant else (new, reused * steps)
                continue
            self._extents[dim] *= steps
            values = found.values(self._extents[found.first], self._extents[found.second])
            before, self._values[found.name] = self._values[found.name], values
            new *= values / before
            reused *= steps / (values / before)
        return new, reused


def _split(layer: Layer, operand: Operand, entries: Sequence[Iterable[Loop]]) -> tuple[list[float], list[float]]:
    splitter = _Splitter(layer, operand)
    pairs = [splitter(entry) for entry in entries]
    return [new for new, _ in pairs], [reused for _, reused in pairs]


def _from_above(factors: Sequence[float]) -> list[float]:
    """Products of each entry and all above it."""
    found: list[float] = [1.0]
    for factor in reversed(factors):
        found.append(found[-1] * factor)
    return found[:0:-1]


def build(
    layer: Layer, engine: ArrayEngine, operand: Operand, unrolled: Unrolled, temporal: TemporalMapping
) -> OperandNest:
    """The nest of one operand."""
    memories = engine.levels(operand.slot)
    depth = len(memories)
    entries = loops_by_memory(engine, operand.slot, unrolled)
    kept = _kept(layer, operand, temporal)
    in_time: list[tuple[tuple[str, int], ...]] = [
        (),
        *(temporal.order[start:stop] for start, stop in zip((0, *kept), kept, strict=False)),
    ]
    _, reuse = _split(layer, operand, [(*t, *s) for t, s in zip(in_time, entries, strict=True)])
    per_copy, _ = _split(layer, operand, [(), *((*t, *s) for t, s in zip(in_time[1:], entries, strict=False))])
    new_units, _ = _split(layer, operand, entries)
    unique = [*_from_above(new_units), 1.0]
    used = _from_above([prod(steps for _, steps in entry) for entry in entries])
    is_output = operand is layer.output
    partial = _partial(layer, [(*t, *s) for t, s in zip(in_time, entries, strict=True)]) if is_output else ()
    runs = [_runs(layer, operand, loops) for loops in in_time]
    cycles = [prod(steps for _, steps in temporal.order[:stop]) for stop in kept]
    return OperandNest(
        operand=operand,
        is_output=is_output,
        memories=memories,
        unrolled=entries,
        kept=kept,
        elements=tuple(round(product) for product in accumulate(per_copy, mul)),
        bits=tuple(operand.bits if p else operand.final_bits for p in partial)
        if is_output
        else (operand.bits,) * (depth + 1),
        partial=tuple(partial),
        copies=tuple(round(round(product, 3)) for product in used),
        widths=tuple(round(unique[entry] / unique[entry + 1]) for entry in range(depth)),
        periods=(1 if is_output else _stationary(layer, operand, in_time[1]), *cycles),
        relevant_runs=(1, *(new for new, _ in runs[1:])),
        reused_runs=(1, *(reused for _, reused in runs[1:])),
        reuse_above=(*_from_above(reuse), 1.0, 1.0),
        steps=temporal.steps,
    )


def _kept(layer: Layer, operand: Operand, temporal: TemporalMapping) -> tuple[int, ...]:
    """A tile also stays during the loops right above it that do not index it."""
    irrelevant = layer.irrelevant(operand)

    def moved(cut: int) -> int:
        while cut < len(temporal.order) and temporal.order[cut][0] in irrelevant:
            cut += 1
        return cut

    return tuple(moved(cut) for cut in temporal.cuts[operand.name])


def _stationary(layer: Layer, operand: Operand, loops: Sequence[tuple[str, int]]) -> int:
    irrelevant = layer.irrelevant(operand)
    return prod(steps for _, steps in takewhile(lambda loop: loop[0] in irrelevant, loops))


def _runs(layer: Layer, operand: Operand, loops: Sequence[tuple[str, int]]) -> tuple[int, int]:
    relevant, irrelevant = layer.relevant(operand), layer.irrelevant(operand)
    outermost = loops[::-1]
    return (
        prod(steps for _, steps in takewhile(lambda loop: loop[0] in relevant, outermost)),
        prod(steps for _, steps in takewhile(lambda loop: loop[0] in irrelevant, outermost)),
    )


def _partial(layer: Layer, entries: Sequence[Sequence[Loop]]) -> tuple[bool, ...]:
    irrelevant = layer.irrelevant(layer.output)
    sums = [any(dim in irrelevant and steps > 1 for dim, steps in entry) for entry in entries]
    return (*(any(sums[entry:]) for entry in range(1, len(entries))), False)
