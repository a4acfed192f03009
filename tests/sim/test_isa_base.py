"""RV32IMF instruction by instruction, against their definitions in Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import product

import pytest

from sim.encoder import encode, instructions
from sim.float32_reference import FROM_INTEGERS, INSTRUCTIONS, REFERENCE
from sim.random_code import DYNAMIC, FLOAT_EDGES, INTEGER_EDGES, ROUNDING_MODES, random_float
from sim.single_instructions import Start, data_address, run_each

MASK = 0xFFFFFFFF
RD, RS1, RS2, RS3 = 10, 11, 12, 13


def signed(value: int) -> int:
    return value - 2**32 if value >> 31 else value


def quotient(a: int, b: int) -> int:
    """Towards zero; -1 where b is 0."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a if b == 0 else a - quotient(a, b) * b


def on_signed(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: function(signed(a), signed(b))


TWO_OPERANDS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "sll": lambda a, b: a << b % 32,
    "srl": lambda a, b: a >> b % 32,
    "sra": lambda a, b: signed(a) >> b % 32,
    "slt": on_signed(lambda a, b: a < b),
    "sltu": lambda a, b: a < b,
    "xor_": lambda a, b: a ^ b,
    "or_": lambda a, b: a | b,
    "and_": lambda a, b: a & b,
    "mul": lambda a, b: a * b,
    "mulh": on_signed(lambda a, b: a * b >> 32),
    "mulhsu": lambda a, b: signed(a) * b >> 32,
    "mulhu": lambda a, b: a * b >> 32,
    "div": on_signed(quotient),
    "divu": quotient,
    "rem": on_signed(remainder),
    "remu": remainder,
}
WITH_IMMEDIATE = {"addi": "add", "slti": "slt", "sltiu": "sltu", "xori": "xor_", "ori": "or_", "andi": "and_"}
WITH_SHIFT_AMOUNT = {"slli": "sll", "srli": "srl", "srai": "sra"}
BRANCHES: Mapping[str, Callable[[int, int], int]] = {
    "beq": lambda a, b: a == b,
    "bne": lambda a, b: a != b,
    "blt": on_signed(lambda a, b: a < b),
    "bge": on_signed(lambda a, b: a >= b),
    "bltu": lambda a, b: a < b,
    "bgeu": lambda a, b: a >= b,
}
PAIRS = list(product(INTEGER_EDGES, repeat=2))


@pytest.mark.parametrize("name", TWO_OPERANDS)
def test_two_operands(name: str) -> None:
    word = encode(name, d=RD, s=RS1, t=RS2)
    starts = [Start([word], x={RS1: a, RS2: b}) for a, b in PAIRS]
    for (a, b), machine in zip(PAIRS, run_each(starts), strict=True):
        assert machine.register(0, RD) == TWO_OPERANDS[name](a, b) & MASK, (hex(a), hex(b))


@pytest.mark.parametrize("name", WITH_IMMEDIATE)
def test_immediates(name: str) -> None:
    cases = list(product(INTEGER_EDGES, (0, 1, -1, 2047, -2048, 1234)))
    starts = [Start([encode(name, d=RD, s=RS1, o=immediate)], x={RS1: a}) for a, immediate in cases]
    for (a, immediate), machine in zip(cases, run_each(starts), strict=True):
        expected = TWO_OPERANDS[WITH_IMMEDIATE[name]](a, immediate & MASK) & MASK
        assert machine.register(0, RD) == expected, (hex(a), immediate)


@pytest.mark.parametrize("name", WITH_SHIFT_AMOUNT)
def test_shift_amounts(name: str) -> None:
    cases = list(product(INTEGER_EDGES, (0, 1, 16, 31)))
    starts = [Start([encode(name, {">": amount}, d=RD, s=RS1)], x={RS1: a}) for a, amount in cases]
    for (a, amount), machine in zip(cases, run_each(starts), strict=True):
        assert machine.register(0, RD) == TWO_OPERANDS[WITH_SHIFT_AMOUNT[name]](a, amount) & MASK


@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str) -> None:
    """The branch goes over `li rd, 1` and a return to `li rd, 2`."""
    taken, back = encode(name, s=RS1, t=RS2, p=12), encode("jalr", s=1)
    words = [taken, encode("addi", d=RD, o=1), back, encode("addi", d=RD, o=2)]
    starts = [Start(words, x={RS1: a, RS2: b}) for a, b in PAIRS]
    for (a, b), machine in zip(PAIRS, run_each(starts), strict=True):
        assert machine.register(0, RD) == (2 if BRANCHES[name](a, b) else 1), (hex(a), hex(b))


DATA = bytes(range(0x7C, 0x84))
LOADS: Mapping[str, tuple[int, bool]] = {
    "lb": (1, True),
    "lbu": (1, False),
    "lh": (2, True),
    "lhu": (2, False),
    "lw": (4, True),
    "flw": (4, False),
}
STORES = {"sb": 1, "sh": 2, "sw": 4, "fsw": 4}


@pytest.mark.parametrize("name", LOADS)
def test_loads(name: str) -> None:
    """At all alignments, with offsets of both signs."""
    size, is_signed = LOADS[name]
    places = range(len(DATA) - size + 1)
    words = [encode(name, d=RD, s=RS1, o=offset) for offset in (0, 2047, -2048)]
    address = data_address([Start([word]) for word in words for _ in places]) + 0x1000
    cases = [(word, offset, at) for word, offset in zip(words, (0, 2047, -2048), strict=True) for at in places]
    starts = [Start([word], x={RS1: address + at - offset}, memory=(address, DATA)) for word, offset, at in cases]
    for (_, _, at), machine in zip(cases, run_each(starts), strict=True):
        found = machine.float_register(0, RD) if name == "flw" else machine.register(0, RD)
        assert found == int.from_bytes(DATA[at : at + size], "little", signed=is_signed) & MASK


@pytest.mark.parametrize("name", STORES)
def test_stores(name: str) -> None:
    """At all alignments; neighbouring bytes stay."""
    size, value = STORES[name], 0xA1B2C3D4
    places = range(len(DATA) - size + 1)
    word = encode(name, t=RS2, s=RS1, q=-3)
    address = data_address([Start([word]) for _ in places])
    registers = {RS2: value}
    starts = [Start([word], {RS1: address + at + 3, **registers}, registers, 0, (address, DATA)) for at in places]
    for at, machine in zip(places, run_each(starts), strict=True):
        stored = value.to_bytes(4, "little")[:size]
        assert machine.read(address, len(DATA)) == DATA[:at] + stored + DATA[at + size :]


def test_upper_immediates_and_links() -> None:
    starts = [
        Start([encode("lui", d=RD, u=0xFFFFF000)]),
        Start([encode("auipc", d=RD, u=0x7FFFF000)]),
        Start([encode("jal", d=RD, a=4)]),
        Start([encode("auipc", d=RD), encode("jalr", d=RD, s=RD, o=9)]),
        Start([encode("addi", d=0, s=RS1, o=1)], x={RS1: 5}),
    ]
    found = [machine.register(0, RD) for machine in run_each(starts)]
    base = data_address(starts) - 0x1000
    assert found[:4] == [0xFFFFF000, (base + 4 + 0x7FFFF000) & MASK, base + 12, base + 20]


def rounding_of(case: int) -> tuple[int, int, int]:
    """A mode in the instruction, one in frm, and the one that counts."""
    in_instruction, dynamic = [*ROUNDING_MODES, DYNAMIC, DYNAMIC][case % 7], ROUNDING_MODES[case // 7 % 5]
    return in_instruction, dynamic, dynamic if in_instruction == DYNAMIC else in_instruction


@pytest.mark.parametrize("name", sorted(INSTRUCTIONS.keys() - FROM_INTEGERS))
def test_float_operations(name: str) -> None:
    """Edges and random numbers in all modes of rounding, in the instruction and in frm; flags add up."""
    chance = random.Random(name)
    row = instructions()[name]
    starts: list[Start] = []
    expected: list[tuple[int, int]] = []
    for case in range(280):
        fixed, dynamic, mode = rounding_of(case)
        a, b, c = (
            chance.choice(FLOAT_EDGES) if chance.random() < 0.5 else random_float(chance) for _ in ("rs1", "rs2", "rs3")
        )
        operands = {"d": RD, "s": RS1, "t": RS2, "r": RS3, "m": fixed}
        used = {letter.lower() for letter in row.letters}
        word = encode(row, {letter: value for letter, value in operands.items() if letter in used})
        flags = chance.getrandbits(5) if case % 4 == 0 else 0
        starts.append(Start([word], f={RS1: a, RS2: b, RS3: c}, fcsr=dynamic << 5 | flags))
        result, raised = REFERENCE[INSTRUCTIONS[name]](a, b, c, mode)
        expected.append((result, dynamic << 5 | flags | raised))
    for start, outcome, machine in zip(starts, expected, run_each(starts), strict=True):
        result = machine.float_register(0, RD) if "D" in row.letters else machine.register(0, RD)
        assert (result, machine.fcsr(0)) == outcome, start


@pytest.mark.parametrize("name", sorted(FROM_INTEGERS))
def test_floats_from_integers(name: str) -> None:
    values = [*INTEGER_EDGES, 0x01000001, 0x01000003, 0x7FFFFFBF, 0x7FFFFFC0, 0xFFFFFF7F, 0xFFFFFF80]
    cases = list(product(values, ROUNDING_MODES))
    starts = [Start([encode(name, d=RD, s=RS1, m=mode)], x={RS1: value}) for value, mode in cases]
    for (value, mode), machine in zip(cases, run_each(starts), strict=True):
        expected = REFERENCE[INSTRUCTIONS[name]](value, 0, 0, mode)
        assert (machine.float_register(0, RD), machine.fcsr(0)) == expected, (hex(value), mode)


def test_moves_keep_all_bits() -> None:
    starts = [Start([encode("fmv_x_w", d=RD, s=RS1)], f={RS1: value}) for value in FLOAT_EDGES]
    assert [machine.register(0, RD) for machine in run_each(starts)] == FLOAT_EDGES
    starts = [Start([encode("fmv_w_x", d=RD, s=RS1)], x={RS1: value}) for value in FLOAT_EDGES]
    assert [machine.float_register(0, RD) for machine in run_each(starts)] == FLOAT_EDGES
