"""Random sequences of RV32IMAFC instructions that any hart can execute on its own.

A sequence is made of units, the last one first, so that a forward branch knows how far it may go. Three registers are
read but never written: x2 and x9, which point into a buffer of the sequence's own, and x31, which is the caller's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from sim.encoder import (
    Compressed,
    Instruction,
    bits,
    compressed,
    compressed_branch_distance,
    compressed_jump_distance,
    encode,
    instructions,
    word_bytes,
)
from tilewright import _native

BUFFER_BYTES = 64
STACK, MIDDLE, CALLER = 2, 9, 31
"""Registers that hold the buffer's start, its middle, and whatever the caller keeps there."""
WRITABLE = [number for number in range(32) if number not in (STACK, MIDDLE, CALLER)]
BASES = {STACK: 0, MIDDLE: BUFFER_BYTES // 2}
"""Registers to load and store with, and what they point at."""

INTEGER_EDGES = [0, 1, 2, 31, 32, 0x7FF, 0x800, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF]
FLOAT_EDGES = [
    *(0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x33800000, 0x34000000),
    *(0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40000000, 0x4B000000),
    *(0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0x7F000000, 0x7F7FFFFF),
    *(0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FC01234, 0x7FFFFFFF),
]
STANDARD = {"rv32i", "rv32m", "zicsr", "rv32a", "rv32f"}
"""Extensions that any hart may have."""
ROUNDING_MODES = range(5)
DYNAMIC = 7
FFLAGS, FRM, FCSR = 1, 2, 3

Unit = bytes
Maker = Callable[[random.Random, Sequence[Unit]], Unit]
"""Makes a unit that is followed by others."""


@dataclass(frozen=True)
class State:
    """Registers x1 to x30, f0 to f31, fcsr and the buffer, before a sequence."""

    integers: list[int]
    floats: list[int]
    fcsr: int
    buffer: bytes


def random_integer(chance: random.Random) -> int:
    if chance.random() < 0.4:
        return chance.choice(INTEGER_EDGES)
    return chance.getrandbits(32) >> chance.choice((0, 0, 0, 8, 16, 24))


def random_float(chance: random.Random) -> int:
    """Bits of a number; most are of a size and a precision at which sums and products are sometimes exact."""
    sign = chance.getrandbits(1) << 31
    kind = chance.random()
    if kind < 0.3:
        return sign | chance.choice(FLOAT_EDGES)
    if kind < 0.65:
        return sign | chance.randint(120, 134) << 23 | chance.getrandbits(23) & -1 << chance.randrange(23)
    if kind < 0.8:
        return sign | chance.choice((0, 1, 2, 62, 63, 64, 65, 189, 190, 191, 253, 254)) << 23 | chance.getrandbits(23)
    return chance.getrandbits(32)


def random_state(chance: random.Random, buffer_address: int) -> State:
    integers = [random_integer(chance) for _ in range(30)]
    for register, offset in BASES.items():
        integers[register - 1] = buffer_address + offset
    flags = chance.getrandbits(5) if chance.random() < 0.2 else 0
    floats = [random_float(chance) for _ in range(32)]
    words = [random_float(chance) for _ in range(BUFFER_BYTES // 4)]
    buffer = b"".join(word.to_bytes(4, "little") for word in words)
    return State(integers, floats, chance.choice(ROUNDING_MODES) << 5 | flags, buffer)


def random_operand(chance: random.Random, letter: str) -> int:
    match letter:
        case "d":
            return chance.choice(WRITABLE)
        case "o":
            return chance.choice((0, 1, -1, 2047, -2048, chance.randint(-2048, 2047)))
        case "u":
            return chance.getrandbits(20) << 12
        case "m":
            return chance.choice((*ROUNDING_MODES, DYNAMIC, DYNAMIC, DYNAMIC))
        case _:
            return chance.randrange(32)


@cache
def rows(*timings: str) -> list[Instruction]:
    standard = (row for row in instructions().values() if row.extension in STANDARD)
    return [row for row in standard if row.timing in timings and row.id != "fence"]


def computing(*timings: str) -> Maker:
    def make(chance: random.Random, _behind: Sequence[Unit]) -> Unit:
        row = chance.choice(rows(*timings))
        return word_bytes(encode(row, {letter: random_operand(chance, letter) for letter in row.letters}))

    return make


SIZES = {"lb": 1, "lbu": 1, "sb": 1, "lh": 2, "lhu": 2, "sh": 2, "lw": 4, "sw": 4, "flw": 4, "fsw": 4}


def access(chance: random.Random, _behind: Sequence[Unit]) -> Unit:
    """A load or store in the buffer, misaligned or not, at times with an address just computed."""
    name = chance.choice(list(SIZES))
    base = chance.choice(list(BASES))
    offset = chance.randint(0, BUFFER_BYTES - SIZES[name]) - BASES[base]
    before = b""
    if chance.random() < 0.3:
        near = chance.randint(-2000, 2000)
        scratch = chance.choice(WRITABLE[1:])
        before = word_bytes(encode("addi", d=scratch, s=base, o=offset - near))
        base, offset = scratch, near
    values = {letter: random_operand(chance, letter) for letter in instructions()[name].letters}
    values["q" if "q" in values else "o"] = offset
    return before + word_bytes(encode(name, values | {"s": base}))


def atomic(chance: random.Random, _behind: Sequence[Unit]) -> Unit:
    """An atomic operation on a word of the buffer, or a reservation with a conditional store there or elsewhere."""
    address, other = chance.sample(WRITABLE[1:], 2)
    offset = chance.randrange(0, BUFFER_BYTES, 4)
    words = [encode("addi", d=address, s=STACK, o=offset)]
    if chance.random() < 0.3:
        words.append(encode("addi", d=other, s=STACK, o=(offset + chance.choice((0, 0, 4))) % BUFFER_BYTES))
        result = chance.choice([register for register in WRITABLE if register != other])
        words.append(encode("lr_w", d=result, s=address))
        words.append(encode("sc_w", d=chance.choice(WRITABLE), s=other, t=chance.randrange(32)))
    else:
        row = chance.choice([row for row in rows("atomic") if row.id.startswith("amo")])
        words.append(encode(row, d=chance.choice(WRITABLE), s=address, t=chance.randrange(32)))
    return word_bytes(*words)


def flag_access(chance: random.Random, _behind: Sequence[Unit]) -> Unit:
    """Reads and changes fcsr or a part of it, in ways that leave a rounding mode that exists."""
    d, s, small = chance.choice(WRITABLE), chance.randrange(32), chance.randrange(32)
    choices = [
        encode("csrrs", d=d, E=chance.choice((FFLAGS, FRM, FCSR))),
        encode("csrrw", d=d, E=FFLAGS, s=s),
        encode("csrrs", d=d, E=FFLAGS, s=s),
        encode("csrrc", d=d, E=chance.choice((FFLAGS, FRM, FCSR)), s=s),
        encode("csrrwi", d=d, E=FRM, Z=chance.choice(ROUNDING_MODES)),
        encode("csrrwi", d=d, E=chance.choice((FFLAGS, FCSR)), Z=small),
        encode("csrrsi", d=d, E=chance.choice((FFLAGS, FCSR)), Z=small),
        encode("csrrci", d=d, E=chance.choice((FFLAGS, FRM, FCSR)), Z=small),
    ]
    return word_bytes(chance.choice(choices))


def forward(chance: random.Random, behind: Sequence[Unit]) -> Unit:
    """A branch or jump over some of the units behind."""
    skipped = sum(len(unit) for unit in behind[: chance.randint(0, 4)])
    small = chance.randrange(8)
    name = chance.choice(["jal", "jalr", "c.j", "c.jal", "c.jr", "c.jalr", "c.beqz", "c.bnez", *["branch"] * 8])
    match name:
        case "branch":
            row = chance.choice(rows("branch"))
            return word_bytes(encode(row, s=chance.randrange(32), t=chance.randrange(32), p=4 + skipped))
        case "jal":
            return word_bytes(encode("jal", d=chance.choice(WRITABLE), a=4 + skipped))
        case "jalr":
            base = chance.choice(WRITABLE[1:])
            # An odd target loses its last bit.
            offset = 8 + skipped + chance.getrandbits(1)
            return word_bytes(encode("auipc", d=base), encode("jalr", d=chance.choice(WRITABLE), s=base, o=offset))
        case "c.jr" | "c.jalr":
            base = chance.choice(WRITABLE[1:])
            target = encode("addi", d=base, s=base, o=10 + skipped)
            return word_bytes(encode("auipc", d=base), target, compressed()[name].match | base << 7)
        case "c.beqz" | "c.bnez":
            return word_bytes(compressed()[name].match | small << 7 | compressed_branch_distance(2 + skipped))
        case _:
            return word_bytes(compressed()[name].match | compressed_jump_distance(2 + skipped))


def backward(chance: random.Random, _behind: Sequence[Unit]) -> Unit:
    """To the end of the unit, back into its middle, and on."""
    register = chance.choice(WRITABLE)
    middle = [encode("addi", d=register, s=register, o=1)]
    small = chance.randrange(8) << 7
    back = -len(word_bytes(*middle)) - 4
    ways_back = [
        [encode("jal", a=back)],
        [encode("beq", s=register, t=register, p=back)],
        [compressed()["c.j"].match | compressed_jump_distance(back)],
        [
            compressed()["c.beqz"].match | small | compressed_branch_distance(back),
            compressed()["c.bnez"].match | small | compressed_branch_distance(back - 2),
        ],
    ]
    way_back = word_bytes(*chance.choice(ways_back))
    on = encode("jal", a=4 + len(way_back))
    return word_bytes(encode("jal", a=8 - back - 4), *middle, on) + way_back


def stack_move(chance: random.Random, _behind: Sequence[Unit]) -> Unit:
    """c.addi16sp, and back."""
    adjustment = 16 * chance.choice([*range(-31, 0), *range(1, 32)])

    def adjusting(value: int) -> int:
        placed = bits(value, 9, 9) << 12 | bits(value, 4, 4) << 6 | bits(value, 6, 6) << 5
        return compressed()["c.addi16sp"].match | placed | bits(value, 8, 7) << 3 | bits(value, 5, 5) << 2

    copied = compressed()["c.mv"].match | chance.choice(WRITABLE) << 7 | STACK << 2
    return word_bytes(adjusting(adjustment), copied, adjusting(-adjustment))


@cache
def short_rows() -> list[Compressed]:
    """Compressed instructions that do not jump."""
    others = {"c.j", "c.jal", "c.jr", "c.jalr", "c.beqz", "c.bnez", "c.ebreak", "c.addi16sp"}
    return [row for row in compressed().values() if row.name not in others]


def short(chance: random.Random, _behind: Sequence[Unit]) -> Unit:
    row = chance.choice(short_rows())
    while True:
        word = row.match | chance.getrandbits(16) & ~row.mask
        whole = _native.expand_compressed(word)
        if whole != 0 and stays_inside(whole):
            return word_bytes(word)


def stays_inside(word: int) -> bool:
    """Whether an instruction writes no register that is kept and touches no memory but the buffer."""
    load, store = word & 0x7B == 0x03, word & 0x7B == 0x23
    if load or store:
        offset = bits(word, 31, 20) if load else bits(word, 31, 25) << 5 | bits(word, 11, 7)
        base = bits(word, 19, 15)
        if base not in BASES or BASES[base] + offset > BUFFER_BYTES - 4:
            return False
    is_integer_destination = not store and word & 0x7F != 0x07
    jumps = word & 0x7F in (0x63, 0x67, 0x6F, 0x73)
    return not jumps and not (is_integer_destination and bits(word, 11, 7) not in WRITABLE)


MAKERS: dict[Maker, int] = {
    computing("alu"): 20,
    computing("multiply", "multiply_high", "divide"): 10,
    computing("fp", "fp_move", "fp_divide", "fp_sqrt"): 30,
    access: 15,
    atomic: 3,
    flag_access: 5,
    forward: 6,
    backward: 1,
    stack_move: 1,
    short: 20,
}


def random_sequence(chance: random.Random) -> bytes:
    """5 to 20 units of code."""
    units: list[Unit] = []
    for maker in chance.choices(list(MAKERS), list(MAKERS.values()), k=chance.randint(5, 20)):
        units.insert(0, maker(chance, units))
    return b"".join(units)
