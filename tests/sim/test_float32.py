"""The simulator's binary32 arithmetic against exact rational numbers: results and flags, in all rounding modes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest

from sim.float32_reference import (
    DIVIDE_BY_ZERO,
    DOWN,
    INEXACT,
    NEAREST_AWAY,
    NEAREST_EVEN,
    REFERENCE,
    SIGN,
    TOWARD_ZERO,
    UNDERFLOW,
    UP,
    multiply,
    signed,
)
from tilewright import _native

EDGES = tuple(
    signed(negative, magnitude)
    for negative in (False, True)
    for magnitude in (
        *(0x00000000, 0x00000001, 0x00000003, 0x003FFFFF, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000),
        *(0x20000000, 0x33800000, 0x33800001, 0x34000000, 0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F7FFFFF, 0x3F800000),
        *(0x3F800001, 0x3FC00000, 0x40200000, 0x4B000000, 0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x4F800000),
        *(0x5F000000, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF),
    )
)
SPECIAL = (0x00000000, 0x80000000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001)
RANDOM_CASES = 500


@dataclass(frozen=True)
class Operands:
    a: list[int]
    b: list[int]
    c: list[int]


def random_bits(source: random.Random) -> int:
    bits = source.getrandbits(32)
    kind = source.randrange(6)
    if kind == 0:
        return source.choice(EDGES)
    if kind == 1:
        return bits & 0x80FFFFFF  # around the smallest normal number
    if kind == 2:
        return bits & 0x80780000 | source.randint(124, 132) << 23  # few digits: exact results and ties
    if kind == 3:
        return bits & 0x807FFFFF | source.randint(120, 160) << 23  # like integers
    if kind == 4:
        return bits & 0x807FF000 | source.randint(58, 70) << 23  # products around the smallest normal number
    return bits


def neighbour(source: random.Random, a: int) -> int:
    return (a + source.randint(-2, 2)) & 0xFFFFFFFF


@cache
def operands(name: str) -> Operands:
    """Special and edge values, then random ones; among them sums that cancel almost or altogether."""
    source = random.Random(f"float32 {name}")
    triples = list(product(SPECIAL, repeat=3))
    triples += [(a, b, source.choice(EDGES)) for a in EDGES for b in source.sample(EDGES, 8)]
    for index in range(RANDOM_CASES):
        a, b, c = (random_bits(source) for _ in range(3))
        if index % 4 == 0:
            b = neighbour(source, a ^ SIGN)
        elif index % 4 == 1:
            c = neighbour(source, multiply(a, b, 0, NEAREST_EVEN)[0] ^ SIGN)
        triples.append((a, b, c))
    return Operands(*(list(column) for column in zip(*triples, strict=True)))


def check(name: str, cases: Operands, mode: int, flags_in: int) -> None:
    a, b, c = (np.array(column, dtype=np.uint32) for column in (cases.a, cases.b, cases.c))
    results, flags = _native.float32_op(name, a, b, c, mode, flags_in)
    found = zip(results.tolist(), flags.tolist(), strict=True)
    for x, y, z, outcome in zip(cases.a, cases.b, cases.c, found, strict=True):
        bits, raised = REFERENCE[name](x, y, z, mode)
        assert outcome == (bits, raised | flags_in), f"{name} {x:08x} {y:08x} {z:08x}: {bits:08x}, flags {raised:02x}"


@pytest.mark.parametrize("mode", [NEAREST_EVEN, TOWARD_ZERO, DOWN, UP, NEAREST_AWAY])
@pytest.mark.parametrize("name", REFERENCE)
def test_operation(name: str, mode: int) -> None:
    check(name, operands(name), mode, 0)


@pytest.mark.parametrize("name", REFERENCE)
def test_flags_accrue(name: str) -> None:
    """Results do not depend on earlier flags, though with the inexact one set a shorter way leads to them."""
    check(name, operands(name), NEAREST_EVEN, INEXACT | DIVIDE_BY_ZERO)


@pytest.mark.parametrize(
    ("mode", "bits", "flags"),
    [
        (NEAREST_EVEN, 0x00800000, UNDERFLOW | INEXACT),
        (TOWARD_ZERO, 0x007FFFFF, UNDERFLOW | INEXACT),
        (UP, 0x00800000, UNDERFLOW | INEXACT),
    ],
)
def test_tiny_value_that_rounds_to_a_normal_number(mode: int, bits: int, flags: int) -> None:
    """(1 - 2^-24) * 2^-126 has 24 digits, so it is tiny after rounding, whatever it becomes."""
    cases = Operands([0x3F7FFFFF], [0x00800000], [0])
    assert REFERENCE["mul"](cases.a[0], cases.b[0], 0, mode) == (bits, flags)
    check("mul", cases, mode, INEXACT)


def test_unknown_names_and_modes_are_refused() -> None:
    one = np.array([0], dtype=np.uint32)
    with pytest.raises(ValueError, match="no such operation: hypot"):
        _native.float32_op("hypot", one, one, one, NEAREST_EVEN, 0)
    with pytest.raises(ValueError, match="no such rounding mode: 5"):
        _native.float32_op("add", one, one, one, 5, 0)
