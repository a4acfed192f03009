"""What each floating-point instruction of Snitch does with 64-bit registers, by its name."""

from __future__ import annotations

from dataclasses import dataclass

from sim.small_float_reference import (
    COMPARISONS,
    FORMATS,
    Format,
    Outcome,
    classify,
    classify_lane,
    compare,
    convert,
    divide,
    from_integer,
    one,
    select,
    square_root,
    sum_of_products,
    to_integer,
)

ONES = 2**64 - 1
FUSED = {
    "fmadd": (False, False),
    "fmsub": (False, True),
    "fnmadd": (True, True),
    "fnmsub": (True, False),
    "fmac": (False, False),
    "fmre": (True, False),
}
"""Whether the product and the addend are negated."""
CHOSEN = {"fmin": min, "fmax": max}


@dataclass(frozen=True)
class Operands:
    """rs1 (an integer with its sign, where it is one), rs2, and rs3 or the old destination."""

    a: int
    b: int
    c: int


@dataclass(frozen=True)
class Call:
    """An instruction with its operands and modes."""

    name: str
    operands: Operands
    mode: int
    formats: int
    """fmode: bit 0, the result, and bit 1, operands are of the alternate format."""

    def source(self, letter: str) -> Format:
        return FORMATS[letter][self.formats >> 1]

    def target(self, letter: str) -> Format:
        return FORMATS[letter][self.formats & 1]


def unboxed(format: Format, value: int) -> int:
    upper = ONES >> format.width << format.width
    return value & ~upper if value & upper == upper else format.nan


def boxed(format: Format, outcome: Outcome) -> Outcome:
    return outcome[0] | ONES >> format.width << format.width, outcome[1]


def lane(value: int, width: int, index: int) -> int:
    return value >> width * index & 2**width - 1


def together(outcomes: list[Outcome], width: int, below: int = 0) -> Outcome:
    result, flags = below, 0
    for index, (value, raised) in enumerate(outcomes):
        result = result & ~((2**width - 1) << width * index) | value << width * index
        flags |= raised
    return result, flags


def arithmetic(call: Call, base: str, letter: str, a: int, b: int, c: int) -> Outcome:
    source, target, mode = call.source(letter), call.target(letter), call.mode
    match base:
        case "fadd" | "fsub":
            second = b ^ (target.sign if base == "fsub" else 0)
            return sum_of_products(source, target, [(a, one(source))], second, mode)
        case "fmul":
            return sum_of_products(source, target, [(a, b)], None, mode)
        case "fdiv":
            return divide(source, a, b, mode)
        case "fsqrt":
            return square_root(source, a, mode)
        case "fmin" | "fmax":
            return select(source, a, b, CHOSEN[base])
        case "fsgnj" | "fsgnjn" | "fsgnjx":
            bit = {"fsgnj": b, "fsgnjn": ~b, "fsgnjx": a ^ b}[base] & source.sign
            return a & source.sign - 1 | bit, 0
        case _:
            negated, taken_off = FUSED[base]
            product = (a ^ (source.sign if negated else 0), b)
            return sum_of_products(source, target, [product], c ^ (target.sign if taken_off else 0), mode)


def scalar(call: Call, base: str, letters: list[str]) -> Outcome:
    a, b, c = call.operands.a, call.operands.b, call.operands.c
    letter = letters[0]
    source, target, mode = call.source(letter), call.target(letter), call.mode
    if base in COMPARISONS:
        return compare(source, base, unboxed(source, a), unboxed(source, b))
    if base == "fclass":
        return classify(source, unboxed(source, a)), 0
    if base in ("fmulex", "fmacex"):
        narrow, wide = call.source(letters[1]), call.target(letter)
        addend = unboxed(wide, c) if base == "fmacex" else None
        pair = (unboxed(narrow, a), unboxed(narrow, b))
        return boxed(wide, sum_of_products(narrow, wide, [pair], addend, mode))
    second = target if base in ("fadd", "fsub") else source
    third = unboxed(target, c) if base in FUSED else 0
    return boxed(target, arithmetic(call, base, letter, unboxed(source, a), unboxed(second, b), third))


def converted(call: Call, parts: list[str]) -> Outcome:
    to, origin = parts
    a, mode = call.operands.a, call.mode
    if to in ("w", "wu"):
        source = call.source(origin)
        return to_integer(source, unboxed(source, a), 32, to == "w", mode)
    if origin in ("w", "wu"):
        word = a & 0xFFFFFFFF
        value = word - 2**32 if origin == "w" and word >> 31 else word
        return boxed(call.target(to), from_integer(call.target(to), value, mode))
    source = call.source(origin)
    return boxed(call.target(to), convert(source, call.target(to), unboxed(source, a), mode))


def lanes_converted(call: Call, parts: list[str], upper: bool) -> Outcome:
    to, origin = parts
    a, c, mode = call.operands.a, call.operands.c, call.mode
    if to in ("x", "xu"):
        source = call.source(origin)
        width = source.width
        each = [to_integer(source, lane(a, width, i), width, to == "x", mode) for i in range(64 // width)]
        return together(each, width)
    if origin in ("x", "xu"):
        target = call.target(to)
        width = target.width
        values = [lane(a, width, i) for i in range(64 // width)]
        if origin == "x":
            values = [value - 2**width if value >> width - 1 else value for value in values]
        return together([from_integer(target, value, mode) for value in values], width)
    source, target = call.source(origin), call.target(to)
    count = 64 // max(source.width, target.width)
    first_from = count if upper and 64 // source.width > count else 0
    first_to = count if upper and 64 // target.width > count else 0
    each = [convert(source, target, lane(a, source.width, first_from + i), mode) for i in range(count)]
    kept = [(lane(c, target.width, i), 0) for i in range(64 // target.width)]
    kept[first_to : first_to + count] = each
    return together(kept, target.width)


def vector(call: Call, base: str, letters: list[str], replicated: bool) -> Outcome:
    a, b, c = call.operands.a, call.operands.b, call.operands.c
    letter, mode = letters[0], call.mode
    width = FORMATS[letter][0].width
    count = 64 // width

    def second(index: int) -> int:
        return lane(b, width, 0 if replicated else index)

    if base in COMPARISONS:
        source = call.source(letter)
        return together([compare(source, base, lane(a, width, i), second(i)) for i in range(count)], 1)
    if base == "fclass":
        return together([(classify_lane(call.source(letter), lane(a, width, i)), 0) for i in range(count)], 8)
    if base.startswith("fcpk"):
        source, target = call.source(letters[1]), call.target(letter)
        packed = [convert(source, target, operand & 2**source.width - 1, mode) for operand in (a, b)]
        first = 2 * "abcd".index(base[-1])
        kept = [(lane(c, width, i), 0) for i in range(count)]
        kept[first : first + 2] = packed
        return together(kept, width)
    if base in ("fdotpex", "fndotpex"):
        source, target = call.source(letters[1]), call.target(letter)
        narrow, sign = source.width, source.sign if base == "fndotpex" else 0
        sums: list[Outcome] = []
        for j in range(count):
            at = [2 * j, 2 * j + 1]
            other = [0, 1] if replicated else at
            pairs = [(lane(a, narrow, x) ^ sign, lane(b, narrow, y)) for x, y in zip(at, other, strict=True)]
            sums.append(sum_of_products(source, target, pairs, lane(c, width, j), mode))
        return together(sums, width)
    if base in ("fsum", "fnsum", "fsumex", "fnsumex"):
        target = call.target(letter)
        source = target if len(letters) == 1 else call.source(letters[1])
        sign = source.sign if base.startswith("fnsum") else 0
        sums = []
        for j in range(64 // source.width // 2):
            pairs = [(lane(a, source.width, 2 * j + k) ^ sign, one(source)) for k in (0, 1)]
            sums.append(sum_of_products(source, target, pairs, lane(c, width, j), mode))
        return together(sums, width, below=ONES)
    return together(
        [arithmetic(call, base, letter, lane(a, width, i), second(i), lane(c, width, i)) for i in range(count)], width
    )


def outcome(call: Call) -> Outcome:
    """The result, of which an integer register takes the low 32 bits, and the flags."""
    base, *parts = call.name.split(".")
    if base in ("fmv", "vfmv"):
        bits = {"w": 32, "s": 32, "d": 64, "h": 16, "b": 8}[parts[1] if parts[0] == "x" else parts[0]]
        a = call.operands.a
        if base == "vfmv" or (parts[0] == "x" and bits >= 32):
            return a, 0
        low = a & 2**bits - 1
        if parts[0] == "x":
            return (low | ONES >> bits << bits if low >> bits - 1 else low), 0
        return low | ONES >> bits << bits, 0
    if base == "fcvt":
        return converted(call, parts)
    if base in ("vfcvt", "vfcvtu"):
        return lanes_converted(call, parts, base == "vfcvtu")
    letters = [part for part in parts if part in FORMATS]
    if base.startswith("v"):
        return vector(call, base[1:], letters, "r" in parts)
    return scalar(call, base, letters)
