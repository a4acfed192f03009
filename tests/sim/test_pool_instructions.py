"""Xpulpimg and Zfinx: every instruction of small cores against a reference, with edge and random operands.

Which instructions there are is said by pulp-platform/mempool (904336a): 175 rows, all of them encoded as in XpulpV2.
"""

from __future__ import annotations

import csv
import hashlib
import random

from sim import float32_reference, pools, xpulp_reference
from sim.encoder import Instruction, encode, instructions
from sim.test_float32 import EDGES as FLOATS
from sim.test_float32 import random_bits
from sim.test_xpulp import BRANCH_NAMES, fields, is_access, random_access, random_value, random_word
from support import cases_folder
from tilewright import _native

RUNS = 24
DATA = range(0x80000, 0x80400)
DESCRIBED = "b68d5b061641e63a400ba5863b7ceac20c332b4880076eaec8f9516a620eb537"
"""Digest of the names, encodings and masks of all rows."""


def decodes(machine: _native.Machine, row: Instruction) -> bool:
    return machine.disassemble(0, row.match, pools.CODE).split()[0] == row.name


def rows() -> list[Instruction]:
    machine = pools.pool()
    return [row for row in instructions().values() if row.extension == "xpulpv2" and decodes(machine, row)]


def started(words: list[int]) -> _native.Machine:
    machine = pools.pool()
    machine.start(0, pools.write_program(machine, words), 0)
    return machine


def set_registers(machine: _native.Machine, expected: list[int], values: dict[int, int]) -> None:
    for number, value in values.items():
        machine.set_register(0, number, value)
        if number:
            expected[number] = value


def test_rows_are_those_of_the_description() -> None:
    mine = sorted((row.name, row.match, row.mask) for row in rows())
    assert len(mine) == 175
    assert hashlib.sha256(repr(mine).encode()).hexdigest() == DESCRIBED
    top = cases_folder()
    facts = top.parent / "facts" / "snitch_mempool.csv" if top else None
    if facts and facts.is_file():
        with facts.open(newline="") as lines:
            described = [row for row in csv.DictReader(lines) if row["class"].startswith("Xpulpimg")]
        assert [(match, mask) for _, match, mask in sorted(mine, key=lambda row: row[1:])] == sorted(
            (int(row["match_or_index"], 16), int(row["mask"], 16)) for row in described
        )


def test_computing_instructions() -> None:
    choice = random.Random(6)
    program = [(row, random_word(choice, row)) for row in rows() if row.timing == "simd" for _ in range(RUNS)]
    machine, expected = started([word for _, word in program]), [0] * 32
    for row, word in program:
        set_registers(machine, expected, {number: random_value(choice) for number in fields(word)})
        before = [expected[number] for number in fields(word)]
        xpulp_reference.execute(row.name, word, expected)
        assert machine.step(0) == "cycle-limit"
        target = fields(word)[0]
        assert machine.register(0, target) == expected[target], f"{row.name} {word:08x} with {before}"


def test_loads_and_stores() -> None:
    choice = random.Random(7)
    memory = bytearray(choice.randbytes(len(DATA)))
    program: list[tuple[Instruction, int, dict[int, int]]] = []
    for row in rows():
        while is_access(row) and sum(row is other for other, _, _ in program) < RUNS:
            word, values = random_access(choice, row, DATA)
            registers = [values.get(number, 0) if number else 0 for number in range(32)]
            address, size = xpulp_reference.accessed(word, registers)[0], access_bytes(row)
            if address % size == 0:
                program.append((row, word, values))
    machine, expected = started([word for _, word, _ in program]), [0] * 32
    machine.write(DATA.start, bytes(memory))
    for row, word, values in program:
        set_registers(machine, expected, values)
        xpulp_reference.access(row.name, word, expected, memory, DATA.start)
        assert machine.step(0) == "cycle-limit", machine.fault()
        for number in fields(word):
            assert machine.register(0, number) == expected[number], f"{row.id} {word:08x}"
    assert machine.read(DATA.start, len(DATA)) == memory


def access_bytes(row: Instruction) -> int:
    return {"b": 1, "h": 2, "w": 4}[row.name.split(".")[1][1]]


def test_branches() -> None:
    choice = random.Random(8)
    named = [row for row in rows() if row.name in BRANCH_NAMES]
    assert len(named) == 2
    for row in named:
        for _ in range(RUNS):
            word = encode(row, s=10, bI=choice.randrange(-16, 16), p=8)
            machine = pools.pool()
            machine.start(0, pools.write_program(machine, [word, encode("addi"), encode("addi")]), 0)
            expected = [0] * 32
            compared = xpulp_reference.signed(word >> 20, 5)
            set_registers(machine, expected, {10: choice.choice([compared, compared + 1, -compared]) & 0xFFFFFFFF})
            machine.step(0)
            taken = xpulp_reference.branches(row.name, word, expected)
            assert machine.pc(0) == pools.CODE + (8 if taken else 4)


def test_misaligned_accesses_are_faults() -> None:
    machine = pools.pool()
    machine.start(0, pools.write_program(machine, [encode("lw", d=10, s=11, o=0)]), 0)
    machine.set_register(0, 11, DATA.start + 2)
    assert machine.run(100) == "fault"
    fault = machine.fault()
    assert fault is not None
    assert fault["kind"] == "misaligned-access"


def test_floats_in_integer_registers() -> None:
    choice = random.Random(9)
    cases: list[tuple[str, int, list[int]]] = []
    for name in float32_reference.INSTRUCTIONS:
        for _ in range(RUNS):
            values = [choice.choice(FLOATS) if choice.random() < 0.5 else random_bits(choice) for _ in range(3)]
            cases.append((name, choice.randrange(5), values))
    words: list[int] = []
    for name, mode, _ in cases:
        row = instructions()[f"zfinx_{name}"]
        operands = {"d": 10, "s": 11, "t": 12, "r": 13, "m": mode}
        words.append(encode(row, **{key: value for key, value in operands.items() if key in row.letters}))
    machine = started(words)
    for name, mode, values in cases:
        for number, value in zip((11, 12, 13), values, strict=True):
            machine.set_register(0, number, value)
        machine.set_fcsr(0, 0)
        assert machine.step(0) == "cycle-limit", machine.fault()
        first, second, third = values
        reference = float32_reference.REFERENCE[float32_reference.INSTRUCTIONS[name]]
        result, flags = reference(first, second, third, mode)
        assert machine.register(0, 10) == result & 0xFFFFFFFF, (name, [hex(value) for value in values], mode)
        assert machine.fcsr(0) & 31 == flags, name


def test_moves_of_floats() -> None:
    for name in ("zfinx_fmv_x_w", "zfinx_fmv_w_x"):
        machine = started([encode(name, d=10, s=11)])
        machine.set_register(0, 11, 0x3F800000)
        machine.step(0)
        assert machine.register(0, 10) == 0x3F800000
