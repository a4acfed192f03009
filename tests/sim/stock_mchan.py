"""The DMA of GVSoC as it is published: what it understands of commands, and what they copy there.

A command has three words, or five with lines outside (bit 19). Lines on the side of the near memory (bit 23) are not
known: their two words would begin the next command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tilewright.sim.simulator import Simulator

LENGTH = (1 << 17) - 1
INWARD, INCREMENT, LINES_OUTSIDE, EVENT = 1 << 17, 1 << 18, 1 << 19, 1 << 20
KNOWN = LENGTH | INWARD | INCREMENT | LINES_OUTSIDE | EVENT
PORT = 0x10204400
Form = Literal["run", "lines outside"]


@dataclass(frozen=True)
class Command:
    """What a core has asked for."""

    near: int
    far: int
    bytes: int
    inward: bool
    line: int
    """Bytes of a line outside; all of them where there are no lines."""
    stride: int

    @property
    def form(self) -> Form:
        return "run" if self.line == self.bytes else "lines outside"

    def places(self) -> Iterator[tuple[int, int]]:
        """Near and far address of each byte."""
        for byte in range(self.bytes):
            yield self.near + byte, self.far + byte // self.line * self.stride + byte % self.line


@dataclass
class StockMchan:
    """Takes words of cores; `unknown` are those that begin a command which it does not understand."""

    words: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    commands: list[Command] = field(default_factory=list[Command])
    unknown: list[int] = field(default_factory=list[int])

    def take(self, core: int, word: int) -> None:
        words = self.words.setdefault(core, [])
        words.append(word)
        first = words[0]
        if len(words) == 1 and (first & ~KNOWN or not first & INCREMENT or not first & LENGTH):
            self.unknown.append(first)
        if len(words) < (5 if first & LINES_OUTSIDE else 3):
            return
        size = first & LENGTH
        line, stride = (words[3], words[4]) if first & LINES_OUTSIDE else (size, 0)
        self.commands.append(Command(words[1], words[2], size, bool(first & INWARD), line, stride))
        words.clear()

    @property
    def complete(self) -> bool:
        """Whether no core is in the middle of a command."""
        return not any(self.words.values())

    def copy(self, memory: dict[int, int]) -> None:
        """Does all that was asked for, in a memory of bytes by their addresses."""
        for command in self.commands:
            for near, far in command.places():
                if command.inward:
                    memory[near] = memory[far]
                else:
                    memory[far] = memory[near]


STORE = re.compile(r"sw (\w+),(-?\d+)\((\w+)\)")
REGISTERS = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{i}" for i in range(8))),
    *(f"s{i}" for i in range(2, 12)),
    *("t3", "t4", "t5", "t6"),
)


@dataclass(frozen=True)
class Store:
    """An instruction that stores a word."""

    value: int
    base: int
    offset: int


def stores(simulator: Simulator, source: str) -> dict[int, Store]:
    """The instructions of a source file that store words, by their addresses."""
    assert simulator.program is not None
    found: dict[int, Store] = {}
    for function in simulator.program.functions:
        if not simulator.program.line_at(function.address).startswith(source):
            continue
        code, at = simulator.read(function.address, function.size), 0
        while at < len(code):
            word = int.from_bytes(code[at : at + 4], "little")
            text = simulator.native.disassemble(0, word, function.address + at)
            if store := STORE.fullmatch(text.replace(" ", "").replace("sw", "sw ", 1)):
                value, offset, base = store.groups()
                found[function.address + at] = Store(REGISTERS.index(value), REGISTERS.index(base), int(offset))
            at += 4 if word & 3 == 3 else 2
    return found


def given_commands(simulator: Simulator, most_cycles: int) -> StockMchan:
    """Runs a program with the runtime of compiled networks to its end; the stock DMA with all its words."""
    dma = StockMchan()
    places = stores(simulator, "tilewright_machine.c")
    simulator.native.break_at([*places])
    while (stop := simulator.run(most_cycles)) == "breakpoint":
        hart = simulator.stopped_hart
        store = places[simulator.pc(hart)]
        if simulator.register(hart, store.base) + store.offset == PORT:
            dma.take(hart, simulator.register(hart, store.value))
    assert stop == "exited", [*map(str, simulator.findings()), *simulator.whereabouts()]
    return dma
