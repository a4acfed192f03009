"""A layer on an array with one spatial mapping, as tables over the nodes of its lattice.

Each entry of an operand's nest (see `price.array_nest`) is a tile that stays from one node to the next fetch.
All that its moves cost follows from the node alone, so it is worked out once per node, and mappings look it up.
"""

from __future__ import annotations

from functools import cached_property
from math import gcd, prod

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tilewright.core.mapping import Loop, SpatialMapping, TemporalMapping, Unrolled
from tilewright.core.workload import Layer, Operand, Sum
from tilewright.machine.array import FROM_HIGH, FROM_LOW, READS, TO_HIGH, TO_LOW, ArrayEngine, MemoryLevel, Port
from tilewright.mapping.lattice import Ints, Lattice
from tilewright.price.array import evaluate, operation_cycles
from tilewright.price.array_nest import OperandNest, build, loops_by_memory

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEW, SAME, MIXED = 0, 1, 2
"""What a loop does to an operand: each step brings other data, the same data, or data that overlap (sums)."""


class MoveTable(Struct, frozen=True):
    """One operand crossing one memory in one direction, at each node."""

    operand: int
    entry: int
    level: int
    direction: str
    port: int
    """Among the ports of the problem."""
    present: Flags
    busy: Ints
    """Cycles of the port for one time."""
    average: Ints
    """Bits in a cycle on average."""
    times: Ints
    """How often it happens."""
    least: Ints
    """Bits that have to cross before the array can begin, by the node of the innermost memory."""


class EntryTable(Struct, frozen=True):
    """A tile of an operand at each node, and what it costs to move it."""

    operand: int
    entry: int
    allowed: Flags
    """Nodes at which the order may be cut here, as far as this operand says."""
    energy: Floats
    """Of all moves of the tile, over the whole layer."""
    moves: tuple[MoveTable, ...]


class OperandTable(Struct, frozen=True):
    """An operand of the layer."""

    index: int
    operand: Operand
    is_output: bool
    memories: tuple[int, ...]
    """Among the memories of the machine."""
    same: frozenset[str]
    """Dimensions whose loops bring the same data again."""
    mixed: frozenset[str]
    """Dimensions whose loops bring data that overlap."""
    kinds: tuple[int, ...]
    """By factor of the lattice: NEW, SAME or MIXED."""
    entries: tuple[EntryTable, ...]
    """Of the unit (inputs only) and of each memory but the outermost, by increasing entry."""
    tiles: tuple[Ints, ...]
    """By memory: bits of a tile, for double buffering."""
    elements: tuple[Floats, ...]
    """By memory: elements of a tile, as the room for it is reckoned."""
    sums_open: tuple[Flags, ...]
    """By memory: whether an output whose lower memory is cut at a node still has sums to come there."""

    @property
    def depth(self) -> int:
        return len(self.memories)

    def kind(self, dim: str) -> int:
        """NEW, SAME or MIXED."""
        return _kind(dim, self.same, self.mixed)


class Problem(Struct, frozen=True, dict=True):
    """A layer, a machine and a spatial mapping; what is left is the order in time and what is kept where."""

    layer: Layer
    engine: ArrayEngine
    spatial: SpatialMapping
    lattice: Lattice
    operands: tuple[OperandTable, ...]
    ports: tuple[tuple[MemoryLevel, Port], ...]
    corrected: bool
    """Whether the model is the corrected one."""
    cycles: float
    """Of an operation of the array."""
    ideal: float
    """Cycles, if all units were always in use."""
    fixed_energy: float
    """Of the units, and of moves that no mapping changes."""

    @cached_property
    def steps(self) -> int:
        return int(self.lattice.periods[-1])

    @property
    def computing(self) -> float:
        """Cycles of all operations."""
        return self.steps * self.cycles

    @cached_property
    def spans(self) -> Ints:
        """By node: whole cycles until there."""
        return np.ceil(self.cycles * self.lattice.periods).astype(np.int64)

    @cached_property
    def times(self) -> Ints:
        """By node: how often a tile is fetched that stays until there."""
        return self.steps // self.lattice.periods

    def room(self, memory: int) -> int:
        """Bits of a memory that tiles can take."""
        found = self.engine.memories[memory]
        return found.bits // 2 if self.corrected and found.double_buffered else found.bits

    @cached_property
    def memories(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """By memory of the machine: the operands that it holds, each with its level there."""
        found: dict[int, list[tuple[int, int]]] = {}
        for table in self.operands:
            for level, memory in enumerate(table.memories):
                found.setdefault(memory, []).append((table.index, level))
        return {memory: tuple(users) for memory, users in found.items()}


def problem(layer: Layer, engine: ArrayEngine, spatial: SpatialMapping, *, corrected: bool = False) -> Problem:
    """The tables, for the model as it was or as it is `corrected`."""
    lattice = Lattice.of(spatial.steps(layer))
    ports = tuple((memory, port) for memory in engine.memories for port in memory.ports)
    whole = spatial.integral(layer, up=corrected)
    maker = _TableMaker(layer, engine, lattice, spatial.fractional(layer), whole, ports, corrected)
    tables = tuple(maker.operand(index, operand) for index, operand in enumerate(layer.operands))
    every = evaluate(layer, engine, spatial, _untiled(layer, engine, spatial), corrected=corrected)
    return Problem(
        layer=layer,
        engine=engine,
        spatial=spatial,
        lattice=lattice,
        operands=tables,
        ports=ports,
        corrected=corrected,
        cycles=operation_cycles(layer, engine, spatial),
        ideal=every.latency.ideal,
        fixed_energy=every.unit_energy + maker.fixed_energy,
    )


def _untiled(layer: Layer, engine: ArrayEngine, spatial: SpatialMapping) -> TemporalMapping:
    """Any mapping: what units cost does not depend on it."""
    order = tuple(spatial.steps(layer).items())
    return TemporalMapping(order, {o.name: (len(order),) * len(engine.levels(o.slot)) for o in layer.operands})


class _OperandSide:
    """An operand under one version of the spatial mapping (average or whole units)."""

    def __init__(
        self, layer: Layer, engine: ArrayEngine, lattice: Lattice, operand: Operand, unrolled: Unrolled
    ) -> None:
        self._layer, self._lattice, self._operand = layer, lattice, operand
        self.entries = loops_by_memory(engine, operand.slot, unrolled)
        self.depth = len(self.entries) - 1
        nothing = TemporalMapping((), {operand.name: (0,) * self.depth})
        self.nest: OperandNest = build(layer, engine, operand, unrolled, nothing)

    def extents(self, above: int) -> dict[str, Floats | float]:
        """By dimension: steps in time at each node, times those unrolled at entries below `above`."""
        found: dict[str, Floats | float] = {
            dim: steps.astype(np.float64) for dim, steps in self._lattice.extents.items()
        }
        for dim, steps in _flat(self.entries[:above]):
            found[dim] = found.get(dim, 1.0) * steps
        return found

    def elements(self, above: int) -> Floats:
        """Elements of a tile, not rounded."""
        run = self.extents(above)
        result = np.ones(self._lattice.size)
        for dim in self._layer.relevant(self._operand):
            result = result * run.get(dim, 1.0)
        for name in self._operand.sums:
            axis = self._layer.sums[name]
            result = result * sum_values(axis, run.get(axis.first, 1.0), run.get(axis.second, 1.0))
        return result

    @cached_property
    def tile(self) -> tuple[Ints, ...]:
        """Elements by entry; entry 0 is one unit."""
        return (
            np.ones(self._lattice.size, dtype=np.int64),
            *(np.rint(self.elements(entry)).astype(np.int64) for entry in range(1, self.depth + 1)),
        )

    def open(self, entry: int) -> Flags:
        """Whether sums are still to come above an entry that is cut at a node."""
        inside = self._layer.irrelevant(self._operand)
        if any(dim in inside and steps > 1 for dim, steps in _flat(self.entries[entry:])):
            return np.ones(self._lattice.size, dtype=bool)
        result = np.zeros(self._lattice.size, dtype=bool)
        for dim, steps in self._lattice.extents.items():
            if dim in inside:
                result |= steps < steps[-1]
        return result

    def reuse(self, entry: int) -> Floats:
        """How often elements come by above an entry that is cut at a node."""
        points = prod(steps for _, steps in _flat(self.entries[entry:])) * (
            self._lattice.periods[-1] / self._lattice.periods
        )
        return points * self.elements(entry) / self.elements(len(self.entries))[-1]

    def reused(self, entry: int) -> Flags:
        """Whether elements come by more than once above an entry that is cut at a node."""
        if not self._operand.sums:
            return self.open(entry) | self._fraction(entry)
        return np.abs(self.reuse(entry) - 1) > 1e-9

    def _fraction(self, entry: int) -> Flags:
        inside = self._layer.irrelevant(self._operand)
        product = prod(steps for dim, steps in _flat(self.entries[entry:]) if dim in inside)
        return np.full(self._lattice.size, product != 1)


class _TableMaker:
    """Makes the tables of one problem."""

    def __init__(
        self,
        layer: Layer,
        engine: ArrayEngine,
        lattice: Lattice,
        average: Unrolled,
        whole: Unrolled,
        ports: tuple[tuple[MemoryLevel, Port], ...],
        corrected: bool,
    ) -> None:
        self._layer, self._engine, self._lattice = layer, engine, lattice
        self._average, self._whole, self._corrected = average, whole, corrected
        self._port_index = {key: index for index, key in reversed(list(enumerate(ports)))}
        self._steps = int(lattice.periods[-1])
        self._times = self._steps // lattice.periods
        self.fixed_energy = 0.0

    def operand(self, index: int, operand: Operand) -> OperandTable:
        layer, lattice = self._layer, self._lattice
        average = _OperandSide(layer, self._engine, lattice, operand, self._average)
        whole = _OperandSide(layer, self._engine, lattice, operand, self._whole)
        is_output = operand is layer.output
        memories = average.nest.memories
        same, summed = frozenset(layer.irrelevant(operand)), layer.summed(operand)
        depth = len(memories)
        bits = [_bits(average, entry, operand, is_output) for entry in range(1, depth + 1)]
        entries = [self._entry(index, operand, average, whole, entry) for entry in range(depth)]
        if is_output:
            self.fixed_energy += float(entries[0].energy[0])
        return OperandTable(
            index=index,
            operand=operand,
            is_output=is_output,
            memories=tuple(self._engine.memories.index(memory) for memory in memories),
            same=same,
            mixed=summed,
            kinds=tuple(_kind(factor.dim, same, summed) for factor in lattice.factors),
            entries=tuple(entries),
            tiles=tuple(average.tile[level + 1] * bits[level] for level in range(depth)),
            elements=tuple(average.elements(level + 1) for level in range(depth)),
            sums_open=tuple(average.open(level + 1) for level in range(depth)),
        )

    def _entry(
        self, index: int, operand: Operand, average: _OperandSide, whole: _OperandSide, entry: int
    ) -> EntryTable:
        is_output = operand is self._layer.output
        plan = _directions(is_output, entry)
        energy = np.zeros(self._lattice.size)
        moves: list[MoveTable] = []
        period = self._lattice.periods if entry or not is_output else np.ones(self._lattice.size, dtype=np.int64)
        times = self._steps // period
        for level, direction in plan:
            memory = average.nest.memories[level]
            port = memory.port(operand.slot, direction)
            if port is None:
                continue
            present, bits = _moved(average, operand, is_output, entry, direction)
            width = average.nest.widths[level] if direction in (TO_LOW, FROM_LOW) else 1
            elements = average.tile[entry] * width
            often = self._often(average, is_output, entry, direction, times)
            words = _words(elements, bits, port, often, average.nest.copies[level + 1])
            cost = memory.read_energy if direction in READS else memory.write_energy
            energy = energy + np.where(present, words * cost, 0.0)
            present, bits = _moved(whole, operand, is_output, entry, direction)
            width = whole.nest.widths[level] if direction in (TO_LOW, FROM_LOW) else 1
            held = whole.tile[entry] * _bits(whole, entry, operand, is_output)
            often = self._often(whole, is_output, entry, direction, times)
            first = prod(whole.nest.widths[1 : level + 1]) if self._corrected else 1
            moves.append(
                MoveTable(
                    operand=index,
                    entry=entry,
                    level=level,
                    direction=direction,
                    port=self._port_index[memory, port],
                    present=present & (often > 0),
                    busy=port.setup + np.ceil(whole.tile[entry] * width * bits / port.bits).astype(np.int64),
                    average=(held / period * width).astype(np.int64),
                    times=often,
                    least=whole.tile[1] * _bits(whole, 1, operand, is_output) * first,
                )
            )
        allowed = np.ones(self._lattice.size, dtype=bool)
        if not entry:
            allowed = self._lattice.within(self._layer.irrelevant(operand))
        return EntryTable(index, entry, allowed, energy, tuple(moves))

    def _often(self, side: _OperandSide, is_output: bool, entry: int, direction: str, times: Ints) -> Ints:
        """How often a move happens; sums that have not begun need not be read."""
        if not self._corrected or not is_output or direction not in (TO_LOW, FROM_HIGH):
            return times
        return np.rint(times * (1 - 1 / side.reuse(entry + 1))).astype(np.int64)


def _kind(dim: str, same: frozenset[str], mixed: frozenset[str]) -> int:
    return SAME if dim in same else MIXED if dim in mixed else NEW


def _flat(entries: tuple[tuple[Loop, ...], ...]) -> list[Loop]:
    return [loop for entry in entries for loop in entry]


def sum_values(axis: Sum, first: Floats | float, second: Floats | float) -> Floats:
    """`Sum.values` for many nodes at once."""
    a, b = np.trunc(first), np.trunc(second)
    common = gcd(axis.first_scale, axis.second_scale)
    apart = np.maximum(0.0, b - axis.first_scale // common) * (a - axis.second_scale // common)
    return np.minimum(float(axis.size), a * b - apart)


def _bits(side: _OperandSide, entry: int, operand: Operand, is_output: bool) -> Ints | int:
    """Of an element of a tile."""
    return np.where(side.open(entry + 1), operand.bits, operand.final_bits) if is_output else operand.bits


def _directions(is_output: bool, entry: int) -> list[tuple[int, str]]:
    """Levels and directions of the moves of a tile: out of the memory above, and into the one that holds it."""
    low = [TO_LOW, FROM_LOW] if is_output else [TO_LOW]
    high = [TO_HIGH, FROM_HIGH] if is_output else [FROM_HIGH]
    return [(entry, direction) for direction in low] + ([(entry - 1, direction) for direction in high] if entry else [])


def _moved(
    side: _OperandSide, operand: Operand, is_output: bool, entry: int, direction: str
) -> tuple[Flags, Ints | int]:
    """Whether a move happens at all, and bits of an element that it moves."""
    everywhere = np.ones_like(side.open(entry + 1))
    if not is_output:
        return everywhere, operand.bits
    reused = side.reused(entry + 1)
    if direction in (FROM_LOW, TO_HIGH):
        return everywhere, np.where(reused, operand.bits, operand.final_bits)
    return side.open(entry + 1), np.where(reused, operand.bits, 0)


def _words(elements: Ints, bits: Ints | int, port: Port, times: Ints, copies: int) -> Floats:
    narrow = np.ceil(elements * bits / port.granularity)
    return np.trunc(narrow * (port.granularity / port.bits) * times * copies)


def room(table: OperandTable, level: int, lower: Ints, node: Ints) -> Floats:
    """Bits that tiles take in a memory, if the order is cut at `node` for it and at `lower` for the memory below."""
    operand = table.operand
    if not table.is_output:
        return table.elements[level][node] * operand.bits
    return table.elements[level][node] * np.where(table.sums_open[level][lower], operand.bits, operand.final_bits)
