"""Encodings of instructions, made from the simulator's own tables and values for their operands.

The letters of operands are those of the tables: `d` and `D` are destinations, `o` a load's offset, and so on. Values
keep their meaning: offsets and distances are in bytes, signed ones may be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from tilewright import _native


@dataclass(frozen=True)
class Instruction:
    """A row of the tables."""

    id: str
    name: str
    match: int
    mask: int
    operands: str
    timing: str
    extension: str

    @cached_property
    def letters(self) -> tuple[str, ...]:
        return tuple(operand_letters(self.operands))


def operand_letters(operands: str) -> Iterator[str]:
    """The letters of operands without commas, brackets and marks; those after `b` are two characters long."""
    characters = iter(operands)
    for character in characters:
        if character == "b":
            yield character + next(characters)
        elif character.isalpha() or character == ">":
            yield character


@cache
def instructions() -> Mapping[str, Instruction]:
    """All rows by their ids."""
    return {row[0]: Instruction(*row) for row in _native.instruction_table()}


def bits(value: int, high: int, low: int) -> int:
    return value >> low & (2 << (high - low)) - 1


def placed(low: int, width: int) -> Callable[[int], int]:
    return lambda value: bits(value, width - 1, 0) << low


def upper_bits(value: int) -> int:
    return value & 0xFFFFF000


def store_offset(value: int) -> int:
    return bits(value, 11, 5) << 25 | bits(value, 4, 0) << 7


def branch_distance(value: int) -> int:
    return bits(value, 12, 12) << 31 | bits(value, 10, 5) << 25 | bits(value, 4, 1) << 8 | bits(value, 11, 11) << 7


def jump_distance(value: int) -> int:
    return bits(value, 20, 20) << 31 | bits(value, 10, 1) << 21 | bits(value, 11, 11) << 20 | bits(value, 19, 12) << 12


def six_bits(value: int) -> int:
    return bits(value, 5, 1) << 20 | bits(value, 0, 0) << 25


def halfwords(low: int, width: int) -> Callable[[int], int]:
    return lambda value: bits(value, width, 1) << low


PLACES: Mapping[str, Callable[[int], int]] = {
    **dict.fromkeys("dDe", placed(7, 5)),
    **dict.fromkeys("sSZ", placed(15, 5)),
    **dict.fromkeys(("t", "T", ">", "bi", "bI"), placed(20, 5)),
    **dict.fromkeys("rR", placed(27, 5)),
    **dict.fromkeys("ojE", placed(20, 12)),
    "u": upper_bits,
    "q": store_offset,
    "p": branch_distance,
    "a": jump_distance,
    "m": placed(12, 3),
    "bg": placed(8, 7),
    "L": placed(7, 1),
    "b5": placed(25, 5),
    **dict.fromkeys(("bs", "bu"), six_bits),
    "b1": halfwords(20, 12),
    "b2": halfwords(15, 5),
}
"""Where each operand goes in an encoding."""


PLAIN_LETTERS = {"e": "d", "D": "d", "S": "s", "T": "t", "R": "r"}


def encode(instruction: str | Instruction, values: Mapping[str, int] | None = None, /, **by_letter: int) -> int:
    """The encoding with these operands; one that is left out is 0.

    Registers may go by the letters d, s, t and r, whether they are integer or floating-point ones.
    """
    row = instructions()[instruction] if isinstance(instruction, str) else instruction
    given = dict(values or {}) | by_letter
    word = row.match
    for letter in row.letters:
        plain = PLAIN_LETTERS.get(letter, letter)
        placed_bits = PLACES[letter](given.pop(letter, 0) | given.pop(plain, 0))
        assert placed_bits & row.mask == 0, f"{row.name}: operand {letter} lies in the opcode"
        word |= placed_bits
    assert not given, f"{row.name} has no operands {', '.join(given)}"
    return word


def word_bytes(*words: int) -> bytes:
    """Encodings in memory: four bytes each, two for compressed ones."""
    return b"".join(word.to_bytes(4 if word & 3 == 3 else 2, "little") for word in words)


@dataclass(frozen=True)
class Compressed:
    """A row of the table of compressed instructions."""

    name: str
    match: int
    mask: int


@cache
def compressed() -> Mapping[str, Compressed]:
    """All rows by their names."""
    return {row[0]: Compressed(*row) for row in _native.compressed_table()}


def compressed_branch_distance(value: int) -> int:
    return (
        bits(value, 8, 8) << 12
        | bits(value, 4, 3) << 10
        | bits(value, 7, 6) << 5
        | bits(value, 2, 1) << 3
        | bits(value, 5, 5) << 2
    )


def compressed_jump_distance(value: int) -> int:
    low = bits(value, 7, 7) << 6 | bits(value, 3, 1) << 3 | bits(value, 5, 5) << 2
    high = bits(value, 9, 8) << 9 | bits(value, 10, 10) << 8 | bits(value, 6, 6) << 7
    return bits(value, 11, 11) << 12 | bits(value, 4, 4) << 11 | high | low
