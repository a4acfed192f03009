"""Array accelerators: an array of units, the memories around it, and the ports that data cross; plain frozen data.

Sizes are in bits, energies in picojoules, times in cycles. Memories hold operands by *slot* (`I1`, `I2`, `O`, or other
names); a layer says which of its operands goes to which slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from msgspec import Struct, field

TO_LOW, FROM_LOW, TO_HIGH, FROM_HIGH = "to low", "from low", "to high", "from high"
DIRECTIONS = (TO_LOW, FROM_LOW, TO_HIGH, FROM_HIGH)
"""What a memory does: read for the level below, written by it, read for the level above, written by it."""
READS = (TO_LOW, TO_HIGH)
"""The directions that read the memory; the others write it."""


class Port(Struct, frozen=True):
    """A port of a memory, and which operands it moves which way."""

    name: str
    kind: str
    """read, write or read_write."""
    bits: int
    """Bits that cross it in a cycle."""
    granularity: int
    """Bits of the smallest access; an access costs its share of a full one."""
    moves: tuple[tuple[str, str], ...]
    """Slots with directions."""
    setup: int = 0
    """Cycles of each transfer before its first bit."""
    exclusive: bool = False
    """Whether the array waits while something crosses it."""


class MemoryLevel(Struct, frozen=True):
    """A memory of the machine; there is one copy of it for each unit along the dimensions that it does not serve."""

    name: str
    bits: int
    slots: tuple[str, ...]
    """The operands that it holds."""
    ports: tuple[Port, ...]
    serves: tuple[str, ...]
    """Array dimensions along which one copy serves all units."""
    read_energy: float = 0.0
    """Of a full word of the port."""
    write_energy: float = 0.0
    area: float = 0.0
    kind: str = "sram"
    """sram, rf or dram."""
    double_buffered: bool = False
    """Whether it keeps two halves, so that a tile may use half of it."""
    extracted: bool = False
    """Whether energies and area are to be worked out by the memory model."""

    def port(self, slot: str, direction: str) -> Port | None:
        """The port that moves an operand in a direction."""
        return next((port for port in self.ports if (slot, direction) in port.moves), None)


class InMemoryCompute(Struct, frozen=True):
    """What an array is that computes inside of its memory cells."""

    analog: bool
    activation_bits: int
    weight_bits: int
    serial_bits: int
    """Bits of an activation that enter at a time."""
    adc_bits: int = 0
    """Of the converters of an analog array."""


class ArrayEngine(Struct, frozen=True):
    """An array of units that multiply and add, with its memories."""

    name: str
    dims: Mapping[str, int]
    memories: tuple[MemoryLevel, ...]
    """From the array outwards: of two that hold the same operand, the inner one comes first."""
    unit_energy: float = 0.0
    """Of one multiply-accumulate."""
    unit_area: float = 0.0
    cycles: int = 1
    """Cycles of one operation of the array (bit-serial arrays need several)."""
    setup: int = 0
    """Cycles before each operation of the array in which it does nothing else."""
    serial: tuple[str, ...] = ()
    """Dimensions whose units take turns: an operation takes its cycles for each of those in use."""
    compute_in_memory: InMemoryCompute | None = None
    wiring: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By array dimension: which dimensions of a layer may be unrolled along it, by the operands (slots) that they
    index; any where nothing is said."""
    precision: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """By slot: bits that the units take at most; `final` of outputs that are summed up."""
    dataflow: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By array dimension: dimensions of a layer, by name, that are unrolled along it, and over how many units at most.
    It is for layers that have some of them; others are unrolled as the wires allow."""
    shares: str = ""
    """Another engine with the same outermost memories: there is one of each for both."""

    @property
    def units(self) -> int:
        return prod(self.dims.values())

    @property
    def slots(self) -> tuple[str, ...]:
        """Every operand that some memory holds."""
        return tuple(dict.fromkeys(slot for memory in self.memories for slot in memory.slots))

    def levels(self, slot: str) -> tuple[MemoryLevel, ...]:
        """The memories of an operand, innermost first."""
        return tuple(memory for memory in self.memories if slot in memory.slots)

    def copies(self, memory: MemoryLevel) -> int:
        """How often a memory is there."""
        return prod(size for name, size in self.dims.items() if name not in memory.serves)


class Arrays(Struct, frozen=True):
    """What a machine has to map layers onto. A layer takes the array, and the mode of it, that is best for it."""

    name: str
    engines: tuple[tuple[ArrayEngine, ...], ...]
    """For each engine its modes: the arrays that the same hardware can be."""

    @property
    def modes(self) -> tuple[ArrayEngine, ...]:
        return tuple(mode for modes in self.engines for mode in modes)

    @property
    def units(self) -> int:
        return sum(max(mode.units for mode in modes) for modes in self.engines)

    @property
    def memories(self) -> tuple[MemoryLevel, ...]:
        """One of each name, from the arrays outwards."""
        return tuple({memory.name: memory for mode in self.modes for memory in mode.memories}.values())

    @property
    def precision(self) -> Mapping[str, int]:
        """By slot: bits that units take at most."""
        slots = dict.fromkeys(slot for mode in self.modes for slot in mode.precision)
        return {slot: max(mode.precision.get(slot, 0) for mode in self.modes) for slot in slots}
