"""XpulpV2 instructions: against a reference on random operands, against measured ones, and how they are decoded."""

from __future__ import annotations

import csv
import gzip
import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sim import machines, xpulp_reference
from sim.encoder import Instruction, encode, instructions, word_bytes
from support import cases_folder
from tilewright import _native

RUNS = 200
"""Random operands for each instruction."""
INTEGER_ROWS = 327
"""Rows of the extension's description without floating-point numbers."""
DESCRIBED = "12bfa0e017c5a91f01980cbd91f535541c52d9833799f14583787afb31ec5117"
"""Digest of their names, encodings and masks, as the description of the extension has them."""
EDGES = [
    *(0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000),
    *(0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFF8000, 0xFFFFFF80),
    *(0x80808080, 0x7F7F7F7F, 0x80008000, 0x7FFF7FFF, 0x00FF00FF, 0xFF00FF00, 0x01010101, 0x80007FFF),
]
BRANCH_NAMES = {"p.beqimm", "p.bneimm"}


def rows() -> list[Instruction]:
    return [row for row in instructions().values() if row.extension == "xpulpv2"]


def is_access(row: Instruction) -> bool:
    return row.timing in {"load", "store"}


def computing_rows() -> list[Instruction]:
    return [row for row in rows() if row.timing in {"alu", "simd"}]


def random_value(choice: random.Random) -> int:
    return choice.choice(EDGES) if choice.random() < 0.5 else choice.getrandbits(32)


def random_word(choice: random.Random, row: Instruction) -> int:
    """An encoding with all operands at random; now and then the same register twice, or x0."""
    word = row.match | choice.getrandbits(32) & ~row.mask
    if choice.random() < 0.2:
        register = choice.choice([0, 10, 11])
        for low in choice.sample([7, 15, 20], 2):
            field = 31 << low
            if field & row.mask == 0:
                word = word & ~field | register << low
    return word


@dataclass
class Registers:
    """The registers of a machine's hart and what they should be."""

    machine: _native.Machine
    expected: list[int]

    def set(self, number: int, value: int) -> None:
        if number:
            self.expected[number] = value
            self.machine.set_register(0, number, value)

    def compare(self, numbers: Sequence[int], what: str) -> None:
        found = [self.machine.register(0, number) for number in numbers]
        wanted = [self.expected[number] for number in numbers]
        assert found == wanted, f"{what}: x{list(numbers)} = {found}, not {wanted}"


def loaded(program: bytes) -> Registers:
    """A machine with a program at its start and all registers 0."""
    made = machines.machine(size=1 << 20)
    made.write(machines.CODE, program)
    made.start(0, machines.CODE, 0)
    return Registers(made, [0] * 32)


def fields(word: int) -> tuple[int, int, int]:
    """The registers at the places of rd, rs1 and rs2."""
    return word >> 7 & 31, word >> 15 & 31, word >> 20 & 31


def test_the_more_special_row_comes_first() -> None:
    # A hart has these tables, or those of another kind of core.
    table = [row for row in instructions().values() if row.extension in machines.EXTENSIONS]
    choice = random.Random(1)
    for row in rows():
        for _ in range(50):
            word = row.match | choice.getrandbits(32) & ~row.mask
            first = next(other for other in table if word & other.mask == other.match)
            special = first.extension == "xpulpv2" and first.mask & row.mask == row.mask
            assert first.id == row.id or special, f"{row.id} is hidden by {first.id}"


def test_rows_decode_to_themselves() -> None:
    made = machines.machine()
    choice = random.Random(2)
    for row in rows():
        names = Counter(
            made.disassemble(0, row.match | choice.getrandbits(32) & ~row.mask, machines.CODE).split()[0]
            for _ in range(50)
        )
        assert names.most_common(1)[0][0] == row.name


def test_computing_instructions() -> None:
    choice = random.Random(3)
    # What a more special row takes is the same: a shift by 0 that the other does not have.
    program = [(row, random_word(choice, row)) for row in computing_rows() for _ in range(RUNS)]
    registers = loaded(word_bytes(*(word for _, word in program)))
    for index, (row, word) in enumerate(program):
        for number in fields(word):
            registers.set(number, random_value(choice))
        before = [registers.expected[number] for number in fields(word)]
        xpulp_reference.execute(row.name, word, registers.expected)
        assert registers.machine.step(0) == "cycle-limit"
        registers.compare(fields(word)[:1], f"{row.name} {word:08x} with {before}")
        if index % RUNS == RUNS - 1:
            registers.compare(range(32), row.name)


def random_access(choice: random.Random, row: Instruction, data: range) -> tuple[int, dict[int, int]]:
    """A load or store of data, and what registers must be for that."""
    while True:
        word = random_word(choice, row)
        values = {number: random_value(choice) for number in fields(word)}
        values[word >> 15 & 31] = choice.randrange(data.start, data.stop - 4)
        if row.operands.endswith("(s)"):
            offset = 7 if row.timing == "store" else 20
            values[word >> offset & 31] = choice.randrange(-64, 64) & 0xFFFFFFFF
        registers = [0 if number == 0 else values.get(number, 0) for number in range(32)]
        address, _ = xpulp_reference.accessed(word, registers)
        if address in data and address + 4 in data:
            return word, values


def test_loads_and_stores() -> None:
    choice = random.Random(4)
    data = range(machines.BASE + 0x80000, machines.BASE + 0x80400)
    memory = bytearray(choice.randbytes(len(data)))
    program = [(row, *random_access(choice, row, data)) for row in rows() if is_access(row) for _ in range(RUNS)]
    registers = loaded(word_bytes(*(word for _, word, _ in program)))
    registers.machine.write(data.start, bytes(memory))
    for row, word, values in program:
        for number, value in values.items():
            registers.set(number, value)
        xpulp_reference.access(row.name, word, registers.expected, memory, data.start)
        assert registers.machine.step(0) == "cycle-limit"
        registers.compare(fields(word), f"{row.id} {word:08x}")
        assert registers.machine.read(data.start, len(data)) == memory, f"{row.id} {word:08x}"
    counters = registers.machine.counters(0)
    assert counters["loads"] == sum(row.timing == "load" for row, _, _ in program)
    assert counters["stores"] == sum(row.timing == "store" for row, _, _ in program)


def test_branches() -> None:
    choice = random.Random(5)
    distance = 8  # over one instruction
    program = [
        encode(row, s=choice.randrange(1, 32), bI=choice.randrange(-16, 16), p=distance)
        for row in rows()
        if row.name in BRANCH_NAMES
        for _ in range(RUNS)
    ]
    nop = encode("addi")
    registers = loaded(word_bytes(*(word for branch in program for word in (branch, nop))))
    taken = 0
    for index, word in enumerate(program):
        compared = xpulp_reference.signed(word >> 20, 5)
        near = [compared, compared + 1, compared + 32, -compared]
        registers.set(word >> 15 & 31, choice.choice(near) & 0xFFFFFFFF)
        name = "p.bneimm" if word >> 12 & 1 else "p.beqimm"
        registers.machine.step(0)
        begin = machines.CODE + index * distance
        if xpulp_reference.branches(name, word, registers.expected):
            taken += 1
        else:
            assert registers.machine.pc(0) == begin + 4
            registers.machine.step(0)
        assert registers.machine.pc(0) == begin + distance
    assert registers.machine.counters(0)["taken"] == taken
    assert registers.machine.counters(0)["branches"] == len(program)


@pytest.mark.parametrize(
    ("row", "operands", "text"),
    [
        ("p_lw_post", {"d": 10, "s": 11, "o": 4}, "p.lw a0,4(a1!)"),
        ("p_lbu_indexed", {"d": 10, "s": 11, "t": 12}, "p.lbu a0,a2(a1)"),
        ("p_sh_post", {"t": 10, "s": 11, "q": -2}, "p.sh a0,-2(a1!)"),
        ("p_sw_post_indexed", {"t": 10, "s": 11, "e": 12}, "p.sw a0,a2(a1!)"),
        ("p_extract", {"d": 10, "s": 11, "b5": 7, "bi": 8}, "p.extract a0,a1,7,8"),
        ("p_clipu", {"d": 10, "s": 11, "bi": 8}, "p.clipu a0,a1,8"),
        ("p_macsrn", {"d": 10, "s": 11, "t": 12, "b5": 5}, "p.macsrn a0,a1,a2,5"),
        ("p_addnr", {"d": 10, "s": 11, "t": 12}, "p.addnr a0,a1,a2"),
        ("lp_setup", {"L": 1, "s": 10, "b1": 8}, "lp.setup 1,a0,0x1c000108"),
        ("lp_setupi", {"L": 0, "j": 100, "b2": 12}, "lp.setupi 0,100,0x1c00010c"),
        ("lp_counti", {"L": 0, "j": 4095}, "lp.counti 0,4095"),
        ("pv_add_sci_b", {"d": 10, "s": 11, "bs": -3}, "pv.add.sci.b a0,a1,-3"),
        ("pv_sdotup_sci_h", {"d": 10, "s": 11, "bu": 63}, "pv.sdotup.sci.h a0,a1,63"),
        ("pv_sdotsp_b", {"d": 10, "s": 11, "t": 12}, "pv.sdotsp.b a0,a1,a2"),
        ("pv_cplxconj_h", {"d": 10, "s": 11}, "pv.cplxconj.h a0,a1"),
        ("p_beqimm", {"s": 10, "bI": -1, "p": -16}, "p.beqimm a0,-1,0x1c0000f0"),
        ("p_elw", {"d": 10, "s": 11, "o": 32}, "p.elw a0,32(a1)"),
    ],
)
def test_disassembly(row: str, operands: Mapping[str, int], text: str) -> None:
    assert machines.machine().disassemble(0, encode(row, operands), machines.CODE + 0x100) == text


def test_rows_are_those_of_the_description() -> None:
    mine = sorted((row.name, row.match, row.mask) for row in rows())
    assert len(mine) == INTEGER_ROWS
    assert hashlib.sha256(repr(mine).encode()).hexdigest() == DESCRIBED
    top = cases_folder()
    facts = top.parent / "facts" / "xpulp_v2.csv" if top else None
    if facts and facts.is_file():
        with facts.open(newline="") as lines:
            described = [row for row in csv.DictReader(lines) if not row["class"].startswith("F")]
        assert mine == sorted((row["name"], int(row["match"], 16), int(row["mask"], 16)) for row in described)


# Measured instructions -----------------------------------------------------------------------------------------------

NOT_WRAPPED = "the measured model adds for rounding beyond 32 bits, where the hardware wraps"
DEVIATIONS = dict.fromkeys(["p.macsrn", "p.machhsrn", "p.macurn", "p.machhurn"], NOT_WRAPPED)
"""Instructions whose measured results are not always those of the description, and why."""
MEASURED_BASE = 0x10000000
A0, A1, A2, A3, RA = 10, 11, 12, 13, 1


@dataclass(frozen=True)
class Measured:
    """One line of the measured vectors: a few instructions, the last or only one of them the one that is meant."""

    form: str
    words: tuple[int, ...]
    rd_before: int
    rs1: int
    rs2: int
    rd_after: int
    extra: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.form.split()[0]


def hexadecimal_words(text: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in text.split(":"))


def measured(cases: Path) -> Iterator[Measured]:
    with gzip.open(cases / "siracusa_calibration" / "isa" / "vectors.csv.gz", "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["name"].startswith(("p.", "pv.", "lp.")):
                yield Measured(
                    form=row["name"],
                    words=hexadecimal_words(row["encoding"]),
                    rd_before=int(row["rd_in"], 16),
                    rs1=int(row["rs1"], 16),
                    rs2=int(row["rs2"], 16),
                    rd_after=int(row["rd_out"], 16),
                    extra=dict(item.split("=") for item in row["extra"].split(";") if item),
                )


def not_wrapped(vector: Measured) -> int:
    """A product-accumulate with a rounding shift whose addition for rounding does not wrap."""
    (word,) = vector.words
    amount, with_sign = word >> 25 & 31, vector.name.endswith("srn")
    unshifted = vector.name.replace("rn", "")
    operands = xpulp_reference.Operands(rd=vector.rd_before, rs1=vector.rs1, rs2=vector.rs2, word=word)
    total = xpulp_reference.result(unshifted, operands)
    total = xpulp_reference.signed(total) if with_sign else total
    return total + (1 << amount >> 1) >> amount & 0xFFFFFFFF


def run_measured(made: _native.Machine, vector: Measured, end: int) -> list[str]:
    """What came out otherwise than measured."""
    for number, value in ((A0, vector.rd_before), (A1, vector.rs1), (A2, vector.rs2), (RA, end)):
        made.set_register(0, number, value)
    made.set_register(0, A3, int(vector.extra.get("rs3", "0"), 16))
    if "mem_in" in vector.extra:
        made.write(int(vector.extra["addr"], 16), word_data(vector.extra["mem_in"]))
    while made.pc(0) != end:
        assert made.step(0) == "cycle-limit", vector
    wrong: list[str] = []
    if made.register(0, A0) != vector.rd_after:
        wrong.append("rd")
    if "rs1_out" in vector.extra and made.register(0, A1) != int(vector.extra["rs1_out"], 16):
        wrong.append("rs1")
    if "mem_out" in vector.extra:
        wanted = word_data(vector.extra["mem_out"])
        if made.read(int(vector.extra["addr"], 16), len(wanted)) != wanted:
            wrong.append("memory")
    return wrong


def word_data(text: str) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in hexadecimal_words(text))


@pytest.mark.cases
def test_measured_instructions(cases: Path) -> None:
    vectors = list(measured(cases))
    code = MEASURED_BASE + 0x10000
    made = machines.machine(base=MEASURED_BASE, size=1 << 20)
    made.write(code, b"".join(word_bytes(*vector.words) for vector in vectors))
    made.start(0, code, 0)
    deviating: list[Measured] = []
    for vector in vectors:
        code += 4 * len(vector.words)
        if wrong := run_measured(made, vector, code):
            assert wrong == ["rd"], f"{vector}: {wrong}"
            assert vector.name in DEVIATIONS, f"{vector}: {made.register(0, A0):#x}"
            assert not_wrapped(vector) == vector.rd_after, vector
            deviating.append(vector)
    assert {vector.name for vector in deviating} == set(DEVIATIONS)
    described = {row.name for row in rows()}
    assert {name for vector in vectors for name in measured_names(vector)} <= described
    assert len(vectors) > 20_000


def measured_names(vector: Measured) -> list[str]:
    """The names in a form: `lp.starti+endi+count body=1` has three."""
    first, *others = vector.name.split("+")
    return [first, *(f"lp.{other}" for other in others)]
