"""RV32IMF against vectors executed elsewhere: all but those in which the other simulator leaves the specification.

Each of these belongs to a listed class, and our result is the specification's.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sim import machines
from sim.encoder import Instruction, instructions
from sim.float32_reference import (
    DOWN,
    FROM_INTEGERS,
    INEXACT,
    INFINITY,
    INSTRUCTIONS,
    INVALID,
    LARGEST,
    OVERFLOW,
    REFERENCE,
    SIGN,
    TOWARD_ZERO,
    UNDERFLOW,
    UP,
    Outcome,
    is_infinite,
    is_nan,
    is_negative,
    signalling_flags,
)
from sim.random_code import DYNAMIC
from sim.single_instructions import Start, run_each

RD, RS1, RS2, RS3 = 10, 11, 12, 13
VECTOR_MEMORY = 0x10000000
"""Where the vectors have their memory; ours is elsewhere."""
CODE_BYTES = 0x10000
MEMORY = machines.BASE + CODE_BYTES


@dataclass(frozen=True)
class Vector:
    row: Instruction
    words: Sequence[int]
    rd: int
    rs1: int
    rs2: int
    rounding: int
    dynamic_rounding: int
    result: int
    address: int
    memory: bytes
    memory_after: bytes
    flags: int

    @property
    def mode(self) -> int:
        return self.dynamic_rounding if self.rounding == DYNAMIC else self.rounding


def memory_words(text: str) -> bytes:
    return b"".join(int(word, 16).to_bytes(4, "little") for word in text.split(":") if word)


def pairs_of(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(";") if "=" in pair)


def read_vector(row: Instruction, line: Mapping[str, str]) -> Vector:
    extra, modes = pairs_of(line["extra"]), pairs_of(line["imm"])
    before = memory_words(extra.get("mem_in", ""))
    return Vector(
        row,
        [int(word, 16) for word in line["encoding"].split(":")],
        *(int(line[column], 16) for column in ("rd_in", "rs1", "rs2")),
        rounding=int(modes.get("rm", "0")),
        dynamic_rounding=int(modes.get("frm", "0")),
        result=int(line["rd_out"], 16),
        address=int(extra.get("addr", "0"), 16),
        memory=before,
        memory_after=memory_words(extra["mem_out"]) if "mem_out" in extra else before,
        flags=int(extra.get("fflags", "0"), 16),
    )


def start_of(vector: Vector) -> Start:
    touches_memory = vector.address != 0
    shift = MEMORY - VECTOR_MEMORY if touches_memory else 0
    words, back = list(vector.words), 0x00008067
    if len(words) > 1 and words[-1] != back:
        words.append(back)
    return Start(
        words,
        x={RD: vector.rd, RS1: vector.rs1 + shift, RS2: vector.rs2},
        # An instruction with three operands has the third in what the others write.
        f={RD: vector.rd, RS1: vector.rs1, RS2: vector.rs2, RS3: vector.rd},
        fcsr=vector.dynamic_rounding << 5,
        memory=(vector.address + shift, vector.memory) if touches_memory else None,
    )


def specified(vector: Vector) -> Outcome:
    """What the specification says, for floating-point operations."""
    if vector.row.id not in INSTRUCTIONS:
        return vector.result, vector.flags
    return REFERENCE[INSTRUCTIONS[vector.row.id]](vector.rs1, vector.rs2, vector.rd, vector.mode)


FUSED = {"fmadd_s", "fmsub_s", "fnmadd_s", "fnmsub_s"}


def overflows_to_infinity(vector: Vector, right: Outcome) -> bool:
    """In a mode that rounds overflow to the largest number."""
    directed = vector.mode in (TOWARD_ZERO, UP if is_negative(right[0]) else DOWN)
    to_infinity = vector.result == right[0] & SIGN | INFINITY and right[0] & ~SIGN == LARGEST
    return vector.row.id in {"fmul_s", "fdiv_s", *FUSED} and directed and to_infinity


def rounds_before_negation(vector: Vector, _right: Outcome) -> bool:
    other_sign = REFERENCE["fmadd"](vector.rs1, vector.rs2, vector.rd, vector.mode)[0] ^ SIGN
    return vector.row.id == "fnmadd_s" and vector.mode in (DOWN, UP) and vector.result == other_sign


def loses_smallest_number(vector: Vector, right: Outcome) -> bool:
    rounds_away = vector.mode == (DOWN if is_negative(right[0]) else UP)
    lost = right[0] & ~SIGN == 1 and vector.result == right[0] & SIGN
    return vector.row.id in {"fmul_s", "fdiv_s"} and rounds_away and lost


def infinity_counts_as_overflow(vector: Vector, right: Outcome) -> bool:
    operands = {vector.rs1, vector.rs2, vector.rd if vector.row.id in FUSED else 0}
    exact = is_infinite(vector.result) and any(is_infinite(operand) for operand in operands)
    return exact and (vector.flags, right[1]) == (OVERFLOW | INEXACT, 0)


def exact_subnormal_counts_as_underflow(vector: Vector, right: Outcome) -> bool:
    subnormal = 0 < vector.result & ~SIGN < 0x00800000
    flags_differ = (vector.flags, right[1]) == (UNDERFLOW, 0)
    return vector.row.id in {"fadd_s", "fmul_s", "fmin_s", "fmax_s"} and subnormal and flags_differ


def underflow_to_zero_is_not_inexact(vector: Vector, right: Outcome) -> bool:
    flags_differ = (vector.flags, right[1]) == (UNDERFLOW, UNDERFLOW | INEXACT)
    return vector.row.id in {"fmul_s", "fdiv_s"} and vector.result & ~SIGN == 0 and flags_differ


def minimum_accepts_signalling_nan(vector: Vector, right: Outcome) -> bool:
    signalling = signalling_flags(vector.rs1, vector.rs2) == INVALID
    return vector.row.id == "fmin_s" and signalling and (vector.flags, right[1]) == (0, INVALID)


def invalid_conversion_is_inexact(vector: Vector, right: Outcome) -> bool:
    invalid = is_nan(vector.rs1) or (vector.row.id == "fcvt_wu_s" and is_negative(vector.rs1))
    flags_differ = (vector.flags, right[1]) == (INVALID | INEXACT, INVALID)
    return vector.row.id in {"fcvt_w_s", "fcvt_wu_s"} and invalid and flags_differ


def conversion_from_integer_is_exact(vector: Vector, right: Outcome) -> bool:
    return vector.row.id in FROM_INTEGERS and (vector.flags, right[1]) == (0, INEXACT)


Deviation = Callable[[Vector, Outcome], bool]
WRONG_RESULTS: Sequence[Deviation] = (overflows_to_infinity, rounds_before_negation, loses_smallest_number)
WRONG_FLAGS: Sequence[Deviation] = (
    infinity_counts_as_overflow,
    exact_subnormal_counts_as_underflow,
    underflow_to_zero_is_not_inexact,
    minimum_accepts_signalling_nan,
    invalid_conversion_is_inexact,
    conversion_from_integer_is_exact,
)


def read_vectors(path: Path) -> list[Vector]:
    rows = {row.name: row for row in instructions().values() if row.extension in {"rv32i", "rv32m", "rv32f"}}
    with gzip.open(path, "rt", newline="") as lines:
        return [read_vector(rows[line["name"]], line) for line in csv.DictReader(lines) if line["name"] in rows]


@pytest.mark.cases
def test_vectors_of_another_simulator(cases: Path) -> None:
    vectors = read_vectors(cases / "siracusa_calibration" / "isa" / "vectors.csv.gz")
    assert len({vector.row.id for vector in vectors}) > 60
    seen: set[Deviation] = set()
    for vector, machine in zip(vectors, run_each([start_of(vector) for vector in vectors]), strict=True):
        right = specified(vector)
        result = machine.float_register(0, RD) if "D" in vector.row.letters else machine.register(0, RD)
        assert (result, machine.fcsr(0) & 31) == right, vector
        if vector.address != 0:
            here = vector.address + MEMORY - VECTOR_MEMORY
            assert machine.read(here, len(vector.memory)) == vector.memory_after, vector
        for differs, classes in ((vector.result != right[0], WRONG_RESULTS), (vector.flags != right[1], WRONG_FLAGS)):
            if differs:
                found = [deviation for deviation in classes if deviation(vector, right)]
                assert len(found) == 1, (vector, right, found)
                seen.add(found[0])
    assert seen == {*WRONG_RESULTS, *WRONG_FLAGS}
