"""Floating-point formats of 8 to 64 bits as RISC-V and FPnew compute with them, from exact rational numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import isqrt

from sim.float32_reference import DIVIDE_BY_ZERO, DOWN, INEXACT, INVALID, OVERFLOW, TOWARD_ZERO, UNDERFLOW, UP, whole

Outcome = tuple[int, int]
"""Bits of a result, and the flags that getting it raises."""


@dataclass(frozen=True)
class Format:
    """Bits of exponent and fraction."""

    exponent: int
    fraction: int

    @cached_property
    def width(self) -> int:
        return 1 + self.exponent + self.fraction

    @cached_property
    def sign(self) -> int:
        return 1 << self.width - 1

    @cached_property
    def infinity(self) -> int:
        return (2**self.exponent - 1) << self.fraction

    @cached_property
    def nan(self) -> int:
        return self.infinity | 1 << self.fraction - 1

    @cached_property
    def least(self) -> int:
        """Exponent of the smallest step."""
        return 2 - 2 ** (self.exponent - 1) - self.fraction

    def is_nan(self, a: int) -> bool:
        return a & self.sign - 1 > self.infinity

    def signalling(self, *operands: int) -> int:
        return INVALID if any(self.is_nan(a) and not a >> self.fraction - 1 & 1 for a in operands) else 0

    def is_infinite(self, a: int) -> bool:
        return a & self.sign - 1 == self.infinity

    def is_negative(self, a: int) -> bool:
        return a & self.sign != 0

    def signed(self, negative: bool, magnitude: int) -> int:
        return magnitude | (self.sign if negative else 0)

    def number(self, a: int) -> Fraction:
        exponent, fraction = (a & self.sign - 1) >> self.fraction, a & 2**self.fraction - 1
        quanta = fraction + (2**self.fraction if exponent else 0)
        magnitude = quanta * Fraction(2) ** (max(exponent, 1) - 1 + self.least)
        return -magnitude if self.is_negative(a) else magnitude

    def rounded(self, value: Fraction, mode: int) -> Outcome:
        """Any value but zero."""
        negative, magnitude = value < 0, abs(value)
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        exponent -= magnitude < Fraction(2) ** exponent
        step = Fraction(2) ** (exponent - self.fraction)
        unbounded = whole(magnitude / step, negative, mode) * step
        if unbounded >= Fraction(2) ** (2 ** (self.exponent - 1)):
            finite = mode == TOWARD_ZERO or mode == (UP if negative else DOWN)
            return self.signed(negative, self.infinity - finite), OVERFLOW | INEXACT
        quantum = max(exponent - self.fraction, self.least)
        quanta = whole(magnitude / Fraction(2) ** quantum, negative, mode)
        inexact = quanta * Fraction(2) ** quantum != magnitude
        tiny = unbounded < Fraction(2) ** (self.least + self.fraction)
        bits = ((quantum - self.least) << self.fraction) + quanta
        return self.signed(negative, bits), (INEXACT if inexact else 0) | (UNDERFLOW if inexact and tiny else 0)

    def total(self, value: Fraction, zero_signs: set[bool], mode: int) -> Outcome:
        if value != 0:
            return self.rounded(value, mode)
        return self.signed(mode == DOWN if len(zero_signs) == 2 else zero_signs == {True}, 0), 0


FORMATS: Mapping[str, tuple[Format, Format]] = {
    "b": (Format(5, 2), Format(4, 3)),
    "h": (Format(5, 10), Format(8, 7)),
    "s": (Format(8, 23), Format(8, 23)),
    "d": (Format(11, 52), Format(11, 52)),
}
"""By the letter in names of instructions: the usual and the alternate one."""


def sum_of_products(
    source: Format, target: Format, pairs: Sequence[tuple[int, int]], addend: int | None, mode: int
) -> Outcome:
    """Products of one format and an addend of another, rounded once."""
    operands = [operand for pair in pairs for operand in pair]
    flags = source.signalling(*operands) | (target.signalling(addend) if addend is not None else 0)
    nan = any(map(source.is_nan, operands)) or (addend is not None and target.is_nan(addend))
    infinities: set[bool] = set()
    for a, b in pairs:
        if source.is_nan(a) or source.is_nan(b):
            continue
        if source.is_infinite(a) or source.is_infinite(b):
            if not a & source.sign - 1 or not b & source.sign - 1:
                return target.nan, INVALID
            infinities.add(source.is_negative(a) != source.is_negative(b))
    if nan:
        return target.nan, flags
    if addend is not None and target.is_infinite(addend):
        infinities.add(target.is_negative(addend))
    if infinities:
        return (target.nan, INVALID) if len(infinities) == 2 else (target.signed(infinities.pop(), target.infinity), 0)
    value = sum((source.number(a) * source.number(b) for a, b in pairs), Fraction(0))
    signs = {source.is_negative(a) != source.is_negative(b) for a, b in pairs}
    if addend is not None:
        value += target.number(addend)
        signs.add(target.is_negative(addend))
    return target.total(value, signs, mode)


def one(format: Format) -> int:
    return (2 ** (format.exponent - 1) - 1) << format.fraction


def divide(format: Format, a: int, b: int, mode: int) -> Outcome:
    negative = format.is_negative(a) != format.is_negative(b)
    if format.is_nan(a) or format.is_nan(b):
        return format.nan, format.signalling(a, b)
    if format.is_infinite(a):
        return (format.nan, INVALID) if format.is_infinite(b) else (format.signed(negative, format.infinity), 0)
    if format.is_infinite(b):
        return format.signed(negative, 0), 0
    if not format.number(b):
        return (
            (format.nan, INVALID)
            if not format.number(a)
            else (format.signed(negative, format.infinity), DIVIDE_BY_ZERO)
        )
    return format.total(format.number(a) / format.number(b), {negative}, mode)


def square_root(format: Format, a: int, mode: int) -> Outcome:
    if format.is_nan(a):
        return format.nan, format.signalling(a)
    if not a & format.sign - 1 or a == format.infinity:
        return a, 0
    if format.is_negative(a):
        return format.nan, INVALID
    # Scaled by 4^1200 the root has bits enough; half a unit stands for all that it lacks.
    scaled = format.number(a) * 4**1200
    root = isqrt(scaled.numerator)
    rest = Fraction(0) if root * root == scaled else Fraction(1, 2)
    return format.rounded((root + rest) / 2**1200, mode)


def order(format: Format, a: int) -> tuple[Fraction, bool]:
    value = Fraction(2) ** 3000 if format.is_infinite(a) else abs(format.number(a))
    return (-value if format.is_negative(a) else value), not format.is_negative(a)


def select(format: Format, a: int, b: int, chosen: Callable[..., int]) -> Outcome:
    numbers = [operand for operand in (a, b) if not format.is_nan(operand)]
    picked = chosen(numbers, key=partial(order, format)) if numbers else format.nan
    return picked, format.signalling(a, b)


COMPARISONS: Mapping[str, tuple[Callable[[Fraction, Fraction], bool], bool]] = {
    "feq": (lambda a, b: a == b, True),
    "fne": (lambda a, b: a != b, True),
    "flt": (lambda a, b: a < b, False),
    "fle": (lambda a, b: a <= b, False),
    "fgt": (lambda a, b: a > b, False),
    "fge": (lambda a, b: a >= b, False),
}
"""What holds, and whether a quiet NaN is no mistake there; NaNs are unlike everything."""


def compare(format: Format, name: str, a: int, b: int) -> Outcome:
    holds, quietly = COMPARISONS[name]
    if format.is_nan(a) or format.is_nan(b):
        return int(name == "fne"), format.signalling(a, b) if quietly else INVALID
    return int(holds(order(format, a)[0], order(format, b)[0])), 0


def classify(format: Format, a: int) -> int:
    if format.is_nan(a):
        return 1 << (8 if format.signalling(a) else 9)
    if format.is_infinite(a):
        return 1 << (0 if format.is_negative(a) else 7)
    magnitude = a & format.sign - 1
    kind = 0 if not magnitude else 1 if magnitude < 1 << format.fraction else 2
    return 1 << (3 - kind if format.is_negative(a) else 4 + kind)


def classify_lane(format: Format, a: int) -> int:
    """Eight bits: negative, positive, quiet NaN, signalling NaN, zero, subnormal, normal, infinite."""
    mask = classify(format, a)
    pairs = {3: (3, 4), 2: (2, 5), 1: (1, 6), 0: (0, 7)}
    block = 0x80 if mask & 0xF else 0x40
    block |= (mask >> 9 & 1) << 5 | (mask >> 8 & 1) << 4
    return block | sum(bool(mask >> low & 1 or mask >> high & 1) << bit for bit, (low, high) in pairs.items())


def convert(source: Format, target: Format, a: int, mode: int) -> Outcome:
    if source.is_nan(a):
        return target.nan, source.signalling(a)
    if source.is_infinite(a):
        return target.signed(source.is_negative(a), target.infinity), 0
    return target.total(source.number(a), {source.is_negative(a)}, mode)


def to_integer(format: Format, a: int, bits: int, is_signed: bool, mode: int) -> Outcome:
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    ones = 2**bits - 1
    if format.is_nan(a) or format.is_infinite(a):
        return (lowest if format.is_infinite(a) and format.is_negative(a) else highest) & ones, INVALID
    exact = format.number(a)
    magnitude = whole(abs(exact), exact < 0, mode)
    value = -magnitude if exact < 0 else magnitude
    if not lowest <= value <= highest:
        return min(max(value, lowest), highest) & ones, INVALID
    return value & ones, 0 if value == exact else INEXACT


def from_integer(format: Format, value: int, mode: int) -> Outcome:
    return format.total(Fraction(value), {False}, mode)
