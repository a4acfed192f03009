"""Every floating-point instruction of Snitch against its definition, with operands at and between the edges."""

from __future__ import annotations

import random

import pytest

from sim import machines, snitch_machines
from sim.encoder import Instruction, encode, instructions, word_bytes
from sim.random_code import DYNAMIC, INTEGER_EDGES, ROUNDING_MODES
from sim.small_float_instructions import ONES, Call, Operands, outcome
from sim.small_float_reference import FORMATS, Format

RD, RS1, RS2, RS3 = 10, 11, 12, 13
FMODE = 0x800
TIMES = 8
ROWS = [
    row for row in instructions().values() if row.extension == "xfloat" and row.timing not in ("fp_load", "fp_store")
]


def test_there_are_as_many_as_the_decoder_of_snitch_knows() -> None:
    assert len(ROWS) == 280


def random_lane(chance: random.Random, format: Format) -> int:
    sign = chance.getrandbits(1) << format.width - 1
    fraction = chance.getrandbits(format.fraction)
    edges = [0, 1, (1 << format.fraction) - 1, 1 << format.fraction, format.infinity - 1, format.infinity, format.nan]
    edges.append(format.infinity + 1)
    kind = chance.random()
    if kind < 0.35:
        return sign | chance.choice(edges)
    if kind < 0.85:  # near one, and of few bits, so that sums and products are sometimes exact
        bias = 2 ** (format.exponent - 1) - 1
        exponent = min(max(bias + chance.randint(-4, 4), 0), 2 * bias)
        return sign | exponent << format.fraction | fraction & -1 << chance.randrange(format.fraction)
    return chance.getrandbits(format.width)


def random_register(chance: random.Random, letter: str, formats: int, vector: bool) -> int:
    """Lanes of a format, or a scalar in its box; at times another one."""
    format = FORMATS[letter][chance.choice((0, formats & 1, formats >> 1))]
    if vector or chance.random() < 0.1:
        return sum(random_lane(chance, format) << format.width * i for i in range(64 // format.width))
    return random_lane(chance, format) | ONES >> format.width << format.width


def letters_of(row: Instruction) -> tuple[str, str]:
    """Formats of the result and of the operands; of moves and integers any."""
    found = [part for part in row.name.split(".")[1:] if part in FORMATS]
    return (found[0], found[-1]) if found else ("s", "s")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_instruction(row: Instruction) -> None:
    chance = random.Random(row.name)
    target, source = letters_of(row)
    vector = row.name.startswith("v")
    choices = range(4) if {target, source} & {"b", "h"} else range(1)
    calls: list[tuple[Call, int]] = []
    words: list[int] = []
    for formats in choices:
        words.append(encode("csrrwi", E=FMODE, Z=formats))
        for _ in range(TIMES):
            mode = chance.choice(ROUNDING_MODES)
            static = "m" in row.letters and chance.random() < 0.5
            values = {"d": RD, "s": RS1} | {letter: RS2 for letter in row.letters if letter == "T"}
            values |= {letter: RS3 for letter in row.letters if letter == "R"}
            values |= {"m": mode if static else DYNAMIC} if "m" in row.letters else {}
            words.append(encode(row, values))
            a = random_register(chance, source, formats, vector)
            if "s" in row.letters:
                word = chance.choice((chance.getrandbits(32), chance.choice(INTEGER_EDGES)))
                a = word | (ONES ^ 0xFFFFFFFF if word >> 31 else 0)
            b = random_register(chance, source, formats, vector)
            c = random_register(chance, target, formats, vector)
            # A static mode counts, whatever fcsr says.
            calls.append((Call(row.name, Operands(a, b, c), mode, formats), 0 if static else mode))
    machine = snitch_machines.machine()
    machine.write(machines.CODE, word_bytes(*words))
    machine.start(0, machines.CODE, 0)
    for index, (call, fcsr_mode) in enumerate(calls):
        if index % TIMES == 0:
            assert machine.step(0) == "cycle-limit", machine.fault()
        operands = call.operands
        machine.set_register(0, RS1, operands.a & 0xFFFFFFFF)
        for register, value in ((RS1, operands.a), (RS2, operands.b), (RS3, operands.c), (RD, operands.c)):
            machine.set_float_register(0, register, value)
        machine.set_fcsr(0, fcsr_mode << 5)
        assert machine.step(0) == "cycle-limit", machine.fault()
        expected, flags = outcome(call)
        shown = f"{call} gives {expected:#x} with {flags:#x}"
        if "d" in row.letters:
            assert machine.register(0, RD) == expected & 0xFFFFFFFF, shown
        else:
            assert machine.float_register(0, RD) == expected, shown
        assert machine.fcsr(0) & 31 == flags, shown


@pytest.mark.parametrize("name", ["flb", "flh", "flw", "fld"])
def test_loads_are_boxed_and_stores_take_the_low_bytes(name: str) -> None:
    size = {"b": 1, "h": 2, "w": 4, "d": 8}[name[2]]
    machine = snitch_machines.machine()
    load = encode(f"x_{name}", D=RD, s=RS1, o=16)
    store = encode(f"x_fs{name[2]}", T=RD, s=RS1, q=32)
    machine.write(machines.CODE, word_bytes(load, store))
    machine.write(machines.DATA, bytes(range(1, 65)))
    machine.start(0, machines.CODE, 0)
    machine.set_register(0, RS1, machines.DATA)
    for _ in range(2):
        assert machine.step(0) == "cycle-limit", machine.fault()
    loaded = int.from_bytes(bytes(range(17, 17 + size)), "little")
    assert machine.float_register(0, RD) == loaded | ONES >> 8 * size << 8 * size
    written = machine.read(machines.DATA + 32, 8)
    assert written == bytes(range(17, 17 + size)) + bytes(range(33 + size, 41))
