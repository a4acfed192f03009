"""What a layer costs on an array with a given mapping: energy, latency, use of units and memories.

The model is the one of ZigZag 3.8.5, which counts what crosses each memory in each direction from the loops kept at it.
Energies follow from units that are in use on average, latencies from whole units.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod
from types import MappingProxyType

from msgspec import Struct

from tilewright.core.mapping import SpatialMapping, TemporalMapping, Unrolled
from tilewright.core.workload import Layer
from tilewright.machine.array import ArrayEngine
from tilewright.price import array_imc as imc
from tilewright.price.array_latency import (
    PortKey,
    by_port,
    double_buffers,
    held,
    loading,
    loading_times,
    stall,
    storing,
)
from tilewright.price.array_moves import ArrayMove, moves
from tilewright.price.array_nest import OperandNest, build
from tilewright.price.sparsity import working

LoadKey = tuple[str, int, str]
"""Operand, level among its memories, direction."""


class Latency(Struct, frozen=True):
    """Cycles, and what they are made of."""

    ideal: int
    """With every unit in use."""
    computing: float
    """With the units that the mapping uses."""
    stall: int
    loading: float
    """Before the first operation."""
    storing: float
    """After the last one."""
    stalls: Mapping[PortKey, int]
    """By memory and port; negative where there is slack."""
    loads: Mapping[LoadKey, float]
    """Cycles of the first load or last store of each move."""
    moves: tuple[ArrayMove, ...]
    """What crosses memories, in whole units."""

    @property
    def total(self) -> float:
        return self.computing + self.stall + self.loading + self.storing


class ArrayCost(Struct, frozen=True):
    """The cost of one layer."""

    layer: Layer
    engine: ArrayEngine
    spatial: SpatialMapping
    temporal: TemporalMapping
    unit_energies: Mapping[str, float]
    """Of all operations of the array, by part."""
    moves: tuple[ArrayMove, ...]
    """What crosses memories, in units that are in use on average."""
    nests: Mapping[str, OperandNest]
    """The loops as each operand sees them."""
    latency: Latency
    double_buffered: Mapping[tuple[str, int], bool]
    """By operand and level (from 1; 0 is the array): whether tiles change while the array works."""

    @property
    def unit_energy(self) -> float:
        return sum(self.unit_energies.values())

    @property
    def memory_energy(self) -> float:
        return sum(move.energy for move in self.moves)

    @property
    def energy(self) -> float:
        return self.unit_energy + self.memory_energy

    @property
    def cycles(self) -> float:
        return self.latency.total

    @property
    def product(self) -> float:
        """Energy times delay."""
        return self.energy * self.cycles

    @property
    def utilisation(self) -> float:
        """Units in use, on average over all cycles."""
        return self.latency.ideal / self.cycles

    @property
    def spatial_utilisation(self) -> float:
        """Units in use while the array works."""
        return self.latency.ideal / self.latency.computing

    def occupied(self, operand: str) -> tuple[float, ...]:
        """The part of each of its memories that an operand takes."""
        nest = self.nests[operand]
        return tuple(nest.tile_bits(level + 1) / memory.bits for level, memory in enumerate(nest.memories))


def evaluate(
    layer: Layer,
    engine: ArrayEngine,
    spatial: SpatialMapping,
    temporal: TemporalMapping,
    *,
    corrected: bool = False,
) -> ArrayCost:
    """The cost of a layer, as ZigZag computes it or `corrected` where that is known to be wrong."""
    nests = _nests(layer, engine, spatial.fractional(layer), temporal)
    crossing = tuple(move for nest in nests.values() for move in moves(nest, corrected=corrected))
    flags = double_buffers(layer, nests, corrected=corrected)
    whole = _nests(layer, engine, spatial.integral(layer, up=corrected), temporal)
    return ArrayCost(
        layer=layer,
        engine=engine,
        spatial=spatial,
        temporal=temporal,
        unit_energies=unit_energies(layer, engine, spatial),
        moves=crossing,
        nests=nests,
        latency=_latency(layer, engine, whole, flags, temporal, operation_cycles(layer, engine, spatial), corrected),
        double_buffered=flags,
    )


def unit_energies(layer: Layer, engine: ArrayEngine, spatial: SpatialMapping) -> Mapping[str, float]:
    """What all operations of the array take, by part; where an input is zero, nothing."""
    if engine.compute_in_memory:
        return imc.energies(engine, engine.compute_in_memory, layer, spatial)
    return MappingProxyType({"multiply-accumulates": engine.unit_energy * layer.operations * working(layer)})


def operation_cycles(layer: Layer, engine: ArrayEngine, spatial: SpatialMapping) -> float:
    """Cycles of one operation of all units, on average where units take turns."""
    unrolled = spatial.fractional(layer)
    turns = prod(steps for name in engine.serial for _, steps in unrolled.get(name, ()))
    return engine.setup + engine.cycles * turns if engine.serial else engine.setup + engine.cycles


def _beside(engine: ArrayEngine) -> int:
    """Units that work at the same time."""
    return prod(size for name, size in engine.dims.items() if name not in engine.serial)


def areas(engine: ArrayEngine) -> Mapping[str, float]:
    """The area of a machine by part, in whatever unit its description has."""
    memories = {memory.name: memory.area * engine.copies(memory) for memory in engine.memories}
    if engine.compute_in_memory:
        return MappingProxyType({**imc.areas(engine, engine.compute_in_memory), **memories})
    return MappingProxyType({"units": engine.unit_area * engine.units, **memories})


def clock_period(engine: ArrayEngine) -> float | None:
    """Nanoseconds of a cycle, where the model knows them."""
    return sum(imc.delays(engine, engine.compute_in_memory).values()) if engine.compute_in_memory else None


def _nests(
    layer: Layer, engine: ArrayEngine, unrolled: Unrolled, temporal: TemporalMapping
) -> Mapping[str, OperandNest]:
    return MappingProxyType(
        {operand.name: build(layer, engine, operand, unrolled, temporal) for operand in layer.operands}
    )


def _latency(
    layer: Layer,
    engine: ArrayEngine,
    nests: Mapping[str, OperandNest],
    flags: Mapping[tuple[str, int], bool],
    temporal: TemporalMapping,
    cycles: float,
    corrected: bool,
) -> Latency:
    crossing = tuple(move for nest in nests.values() for move in moves(nest, corrected=corrected))
    ports = by_port(move for move in crossing if move.times)
    stalls = {key: stall(found, flags, cycles) for key, found in ports.items()}
    waiting = held(stalls, ports)
    busy = ceil(temporal.steps * cycles) + waiting
    loads: dict[LoadKey, float] = {}
    for found in ports.values():
        loads |= loading_times(found, nests, busy, cycles, corrected=corrected)
    return Latency(
        ideal=ceil(ceil(layer.operations / _beside(engine)) * engine.cycles),
        computing=temporal.steps * cycles,
        stall=waiting,
        loading=loading(layer, nests, loads, corrected=corrected),
        storing=storing(nests[layer.output.name], loads),
        stalls=MappingProxyType(stalls),
        loads=MappingProxyType(loads),
        moves=crossing,
    )
