"""What crosses each memory in each direction: how much at a time, how often, and in how many cycles."""

from __future__ import annotations

from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from tilewright.machine.array import FROM_HIGH, FROM_LOW, READS, TO_HIGH, TO_LOW, MemoryLevel, Port
from tilewright.price.array_nest import OperandNest


class ArrayMove(Struct, frozen=True):
    """One operand crossing one memory in one direction."""

    operand: str
    level: int
    """Among the memories of the operand, from the inside."""
    memory: MemoryLevel
    direction: str
    port: Port | None
    elements: int
    """At a time, of one copy of the memory."""
    bits: int
    """Of an element."""
    period: int
    """Cycles from one time to the next."""
    window: int
    """Cycles of it in which the data may move without a second buffer."""
    times: int
    copies: int
    """Of the memory, in use."""
    average: int
    """Bits in a cycle on average."""

    @property
    def entry(self) -> int:
        """The entry of the nest whose tile it is."""
        return self.level if self.direction in (TO_LOW, FROM_LOW) else self.level + 1

    @property
    def busy(self) -> int:
        """Cycles of the port for one time."""
        return self.port.setup + ceil(self.elements * self.bits / self.port.bits) if self.port else 0

    @property
    def words(self) -> int:
        """Accesses of full words, over all copies; narrow ones count as their share of a word."""
        if not self.port or not self.elements or not self.bits:
            return 0
        narrow = ceil(self.elements * self.bits / self.port.granularity)
        return int(narrow * (self.port.granularity / self.port.bits) * self.times * self.copies)

    @property
    def energy(self) -> float:
        return self.words * (self.memory.read_energy if self.direction in READS else self.memory.write_energy)


def moves(nest: OperandNest, *, corrected: bool = False) -> tuple[ArrayMove, ...]:
    """All moves of an operand; nothing crosses the outermost memory on its far side.

    `corrected`: sums that have not begun are zero and need not be read.
    """
    found: list[ArrayMove] = []
    for level in range(nest.depth):
        found += _output(nest, level) if nest.is_output else _input(nest, level)
    if corrected and nest.is_output:
        found = [_begun(nest, move) if move.direction in (TO_LOW, FROM_HIGH) else move for move in found]
    return tuple(found)


def _begun(nest: OperandNest, move: ArrayMove) -> ArrayMove:
    """Without the first visit to each sum."""
    return replace(move, times=round(move.times * (1 - 1 / nest.reuse_above[move.entry + 1])))


def _input(nest: OperandNest, level: int) -> list[ArrayMove]:
    moved = [_move(nest, level, TO_LOW, nest.operand.bits)]
    if level + 1 < nest.depth:
        moved.append(_move(nest, level, FROM_HIGH, nest.operand.bits))
    return moved


def _output(nest: OperandNest, level: int) -> list[ArrayMove]:
    below, above = nest.reuse_above[level + 1] != 1, nest.reuse_above[level + 2] != 1
    partial, final = nest.operand.bits, nest.operand.final_bits
    moved: list[ArrayMove] = []
    if nest.partial[level]:
        moved.append(_move(nest, level, TO_LOW, partial if below else 0))
    moved.append(_move(nest, level, FROM_LOW, partial if below else final))
    if level + 1 < nest.depth:
        moved.append(_move(nest, level, TO_HIGH, partial if above else final))
        if nest.partial[level + 1]:
            moved.append(_move(nest, level, FROM_HIGH, partial if above else 0))
    return moved


def _move(nest: OperandNest, level: int, direction: str, bits: int) -> ArrayMove:
    low = direction in (TO_LOW, FROM_LOW)
    entry = level if low else level + 1
    width = nest.widths[level] if low else 1
    period = nest.periods[entry]
    return ArrayMove(
        operand=nest.operand.name,
        level=level,
        memory=nest.memories[level],
        direction=direction,
        port=nest.memories[level].port(nest.operand.slot, direction),
        elements=nest.elements[entry] * width,
        bits=bits,
        period=period,
        window=int(period / nest.reused_runs[entry]),
        times=nest.steps // period,
        copies=nest.copies[level + 1],
        average=int(nest.elements[entry] * nest.bits[entry] / period * width),
    )
