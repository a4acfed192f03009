"""What memories cost that nobody has measured: energies and areas of SRAM, register files and DRAM by size and width.

- SRAM: figures of CACTI 7 for 22 nm (`sram_22nm.csv`, powers of two), between them interpolated on logarithms, which
  is within 18 % of CACTI for sizes in between (reads 5 %, writes 3 %, areas 2 % in the middle). Other
  processes and numbers of ports follow power laws fitted to CACTI: energies grow with the 1.75th power of the feature
  size and areas with its 1.93rd (32, 45, 65 and 90 nm), with the 0.8th and 1.2nd power of the number of ports.
- Register files: flip-flops of 2.1 fF at 0.9 V and six gates of 0.614 square micrometres in 28 nm for a single word,
  from there on logarithms to the smallest SRAM.
- DRAM: 700 pJ to read and 750 pJ to write 64 bits, whatever its size, as in the example machines of ZigZag; no area
  on the chip.
"""

from __future__ import annotations

from functools import cache
from math import log2
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tilewright.machine.array import ArrayEngine, MemoryLevel

TABLE = Path(__file__).parent / "sram_22nm.csv"
TABLE_NM = 22.0
ENERGY_BY_SIZE, AREA_BY_SIZE = 1.75, 1.93
"""Powers of the feature size."""
ENERGY_BY_PORTS, AREA_BY_PORTS = 0.8, 1.2
TABLE_PORTS = 2
FLIP_FLOP_ENERGY, FLIP_FLOP_AREA = 2.1e-3 * 0.9**2, 6 * 0.614e-6
"""Of a bit in 28 nm."""
FLIP_FLOP_NM = 28.0
DRAM_READ, DRAM_WRITE = 700 / 64, 750 / 64
"""Picojoules of a bit."""


class MemoryCost(Struct, frozen=True):
    """Picojoules of a word, and square millimetres."""

    read: float
    write: float
    area: float

    def between(self, other: MemoryCost, part: float) -> MemoryCost:
        """On logarithms: this one at 0, the other at 1."""
        return MemoryCost(
            self.read ** (1 - part) * other.read**part,
            self.write ** (1 - part) * other.write**part,
            self.area ** (1 - part) * other.area**part,
        )

    def scaled(self, energy: float, area: float) -> MemoryCost:
        return MemoryCost(self.read * energy, self.write * energy, self.area * area)


@cache
def _table() -> dict[tuple[int, int], MemoryCost]:
    """By binary logarithms of the bits of a memory and of its words."""
    found: dict[tuple[int, int], MemoryCost] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line[0].isdigit():
            bits, word, read, write, area = line.split(",")
            found[int(bits).bit_length() - 1, int(word).bit_length() - 1] = MemoryCost(
                float(read), float(write), float(area)
            )
    return found


def _row(size: int, word: float) -> MemoryCost:
    """A size of the table with any word; outside of its words, energies go with the word."""
    table = _table()
    known = sorted(w for s, w in table if s == size)
    if word <= known[0] or word >= known[-1]:
        edge = known[0] if word <= known[0] else known[-1]
        return table[size, edge].scaled(2.0 ** (word - edge), 1.0)
    low = max(w for w in known if w <= word)
    high = min(w for w in known if w > low)
    return table[size, low].between(table[size, high], (word - low) / (high - low))


def sram(bits: int, word: int) -> MemoryCost:
    """An SRAM with one read and one write port in 22 nm; beyond the table, energies go with the square root of size."""
    size, width = log2(bits), log2(word)
    sizes = sorted({s for s, _ in _table()})
    if size <= sizes[0] or size >= sizes[-1]:
        edge = sizes[0] if size <= sizes[0] else sizes[-1]
        return _row(edge, width).scaled(2.0 ** ((size - edge) / 2), 2.0 ** (size - edge))
    low = int(size)
    return _row(low, width).between(_row(low + 1, width), size - low)


def registers(bits: int, word: int) -> MemoryCost:
    """A register file in 22 nm."""
    energy = FLIP_FLOP_ENERGY * (TABLE_NM / FLIP_FLOP_NM) ** ENERGY_BY_SIZE
    area = FLIP_FLOP_AREA * (TABLE_NM / FLIP_FLOP_NM) ** AREA_BY_SIZE
    one = MemoryCost(energy * word, energy * word, area * word)
    if bits <= word:
        return one
    smallest = 2 ** min(s for s, _ in _table())
    if bits >= smallest or word >= smallest:
        return sram(bits, word)
    return one.between(sram(smallest, word), log2(bits / word) / log2(smallest / word))


def memory_cost(memory: MemoryLevel, nanometres: float = TABLE_NM) -> MemoryCost:
    """What a memory costs with its first port that reads."""
    reading = [port for port in memory.ports if port.kind != "write"] or list(memory.ports)
    word = reading[0].bits
    if memory.kind == "dram":
        return MemoryCost(DRAM_READ * word, DRAM_WRITE * word, 0.0)
    found = registers(memory.bits, word) if memory.kind == "rf" else sram(memory.bits, word)
    ports, size = len(memory.ports) / TABLE_PORTS, nanometres / TABLE_NM
    return found.scaled(ports**ENERGY_BY_PORTS * size**ENERGY_BY_SIZE, ports**AREA_BY_PORTS * size**AREA_BY_SIZE)


def with_costs(engine: ArrayEngine, nanometres: float = TABLE_NM) -> ArrayEngine:
    """The machine with energies and areas of those memories whose description leaves them to the model."""
    memories: list[MemoryLevel] = []
    for memory in engine.memories:
        if memory.extracted:
            cost = memory_cost(memory, nanometres)
            memory = replace(memory, read_energy=cost.read, write_energy=cost.write, area=cost.area, extracted=False)
        memories.append(memory)
    return replace(engine, memories=tuple(memories))
