"""Floating-point instructions that Snitch's sequencer repeats, computed by shorter ways, against definitions."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from sim.encoder import Instruction, encode, instructions, word_bytes
from sim.small_float_instructions import Call, Operands, outcome
from sim.small_float_reference import FORMATS, Format
from sim.test_small_floats import letters_of, random_register
from sim.test_snitch_core import CODE, FT0, FT1, FT3, L1, OFF, ON, STOP, T0, configured, finished, immediate
from tilewright import _native
from tilewright.machine.target import load_platform
from tilewright.sim.simulator import built, timing_of

NAMES = [
    *("fmadd.d", "fmul.d", "fadd.d", "fmadd.s", "vfmul.s", "vfadd.s", "vfsub.s", "vfmac.s", "vfmre.s", "vfmac.r.s"),
    *("vfmul.h", "vfadd.h", "vfsub.h", "vfmac.h", "vfmre.h", "vfadd.r.h", "vfdotpex.s.h", "vfdotpex.s.r.h"),
    *("vfndotpex.s.h", "vfmax.s"),
]
ROUNDS = 60
NONE, INEXACT = 0, 1
SECOND = L1 + 4096 + 8
"""Of the second operands, which are not all in the banks of the first."""


@dataclass(frozen=True)
class Loop:
    """What an instruction is repeated with: its two operands from streams, and what its destination holds before."""

    row: Instruction
    pairs: list[tuple[int, int]]
    begin: int
    flags: int

    def expected(self) -> tuple[int, int]:
        """The last result and all flags, one call after the other."""
        held, flags = self.begin, self.flags
        for a, b in self.pairs:
            held, new = outcome(Call(self.row.name, Operands(a, b, held), 0, 0))
            flags |= new
        return held, flags

    def words(self) -> list[int]:
        count = len(self.pairs)
        places = [(stream, place) for stream in (0, 1) for place in ((2, count - 1), (6, 8))]
        job = [word for stream, (place, value) in places for word in configured(stream, place, value)]
        starts = [*configured(0, 24, L1), *configured(1, 24, SECOND)]
        values = {"D": FT3, "S": FT0, "T": FT1} | {letter: FT3 for letter in self.row.letters if letter == "R"}
        values |= {"m": 0} if "m" in self.row.letters else {}
        frep = [*immediate(T0, count - 1), encode("frep_o", s=T0), encode(self.row, values)]
        return [*job, *starts, ON, *frep, OFF, STOP]


def ordinary(chance: random.Random, format: Format) -> int:
    """Lanes near one, so that sums of products stay numbers; with few bits, so that some are exact."""
    bias = 2 ** (format.exponent - 1) - 1
    kept = chance.choice((1, 3, format.fraction // 2, format.fraction))
    found = 0
    for at in range(0, 64, format.width):
        fraction = chance.getrandbits(kept) << format.fraction - kept
        exponent = chance.choice((0, *range(bias - 3, bias + 4)))
        lane = chance.getrandbits(1) << format.width - 1 | exponent << format.fraction | (fraction if exponent else 0)
        found |= lane << at
    return found


def random_loop(row: Instruction, chance: random.Random) -> Loop:
    """Half of them have numbers at the edges as well, of which the most become infinite or none soon."""
    target, source = letters_of(row)
    vector, edges = row.name.startswith("v"), chance.random() < 0.5

    def operand(letter: str) -> int:
        if edges and chance.random() < 0.5:
            return random_register(chance, letter, 0, vector)
        format = FORMATS[letter][0]
        found, width = ordinary(chance, format), format.width
        return found if vector else found | (1 << 64) - (1 << width)

    pairs = [(operand(source), operand(source)) for _ in range(chance.randrange(2, 12))]
    return Loop(row, pairs, operand(target), chance.choice((NONE, INEXACT)))


def machine_with(loop: Loop) -> _native.Machine:
    platform = load_platform("snitch")
    machine = built(platform, timing_of(platform, "rtl"))
    machine.write(CODE, word_bytes(*loop.words()))
    for address, operands in zip((L1, SECOND), zip(*loop.pairs, strict=True), strict=True):
        machine.write(address, b"".join(value.to_bytes(8, "little") for value in operands))
    machine.start(0, CODE, 0)
    machine.set_float_register(0, FT3, loop.begin)
    machine.set_fcsr(0, loop.flags)
    return machine


@pytest.mark.parametrize("name", NAMES)
def test_repeated(name: str) -> None:
    row = next(row for row in instructions().values() if row.name == name)
    chance = random.Random(name)
    for _ in range(ROUNDS):
        loop = random_loop(row, chance)
        machine = finished(machine_with(loop))
        found = machine.float_register(0, FT3), machine.fcsr(0) & 31
        assert found == loop.expected(), loop


@pytest.mark.parametrize("exponent", range(62), ids=hex)
def test_products_of_all_halves(exponent: int) -> None:
    """Every half that is a number, those of one exponent and sign in a loop, so that none is lost in the sum."""
    row = next(row for row in instructions().values() if row.name == "vfdotpex.s.h")
    ones = 0x3C003C003C003C00
    first = exponent << 10 if exponent < 31 else exponent + 1 << 10
    quads = [sum(first + at + lane << 16 * lane for lane in range(4)) for at in range(0, 1024, 4)]
    for flags in (NONE, INEXACT):
        loop = Loop(row, [(quad, ones) for quad in quads], 0, flags)
        machine = finished(machine_with(loop))
        assert (machine.float_register(0, FT3), machine.fcsr(0) & 31) == loop.expected()
