"""What a layer costs on an array with a given mapping: energy, latency, use of units and memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.core.accelerator import ArrayEngine
from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer


@dataclass(frozen=True)
class Traffic:
    """One operand crossing one memory in one direction."""

    operand: str
    level: int
    """Among the memories of the operand, from the inside."""
    memory: str
    direction: str
    elements: float
    """At a time, of one copy of the memory."""
    bits: int
    """Of an element."""
    period: int
    """Cycles from one time to the next."""
    window: int
    """Cycles of it in which the data may move without a second buffer."""
    times: int
    words: int
    """Accesses of a full word, over all copies of the memory."""
    energy: float


@dataclass(frozen=True)
class Latency:
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
    stalls: Mapping[tuple[str, str], int]
    """By memory and port; negative where there is slack."""

    @property
    def total(self) -> float:
        return self.computing + self.stall + self.loading + self.storing


@dataclass(frozen=True)
class ArrayCost:
    """The cost of one layer."""

    layer: str
    engine: str
    unit_energy: float
    """Of all multiply-accumulates."""
    traffic: tuple[Traffic, ...]
    latency: Latency
    occupied: Mapping[tuple[str, str], float]
    """By operand and memory: the part of the memory that it takes."""
    double_buffered: Mapping[tuple[str, str], bool]

    @property
    def energy(self) -> float:
        return self.unit_energy + sum(traffic.energy for traffic in self.traffic)


def evaluate(
    layer: Layer,
    engine: ArrayEngine,
    spatial: SpatialMapping,
    temporal: TemporalMapping,
    *,
    corrected: bool = False,
) -> ArrayCost:
    """The cost of a layer; `corrected` leaves out what the original model is known to get wrong."""
    raise NotImplementedError(f"{layer.name} on {engine.name}: {spatial}, {temporal}, {corrected}")
