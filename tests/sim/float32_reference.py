"""Binary32 arithmetic as RISC-V defines it, from exact rational numbers: results and flags, in all rounding modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from math import isqrt

NEAREST_EVEN, TOWARD_ZERO, DOWN, UP, NEAREST_AWAY = range(5)
INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO, INVALID = 1, 2, 4, 8, 16

SIGN, INFINITY, QUIET, NAN = 0x80000000, 0x7F800000, 0x00400000, 0x7FC00000
LARGEST = 0x7F7FFFFF
SMALLEST_NORMAL = Fraction(1, 2**126)

Outcome = tuple[int, int]
"""A result's bits and the flags that getting it raises."""


def is_nan(a: int) -> bool:
    return a & ~SIGN > INFINITY


def is_infinite(a: int) -> bool:
    return a & ~SIGN == INFINITY


def is_negative(a: int) -> bool:
    return a & SIGN != 0


def signed(negative: bool, magnitude: int) -> int:
    return magnitude | (SIGN if negative else 0)


def signalling_flags(*operands: int) -> int:
    return INVALID if any(is_nan(a) and not a & QUIET for a in operands) else 0


@cache
def number(a: int) -> Fraction:
    """The value of finite bits."""
    exponent, fraction = (a >> 23) & 0xFF, a & 0x7FFFFF
    magnitude = (fraction if exponent == 0 else fraction + 2**23) * Fraction(2) ** (max(exponent, 1) - 150)
    return -magnitude if is_negative(a) else magnitude


def whole(magnitude: Fraction, negative: bool, mode: int) -> int:
    """The integer that `magnitude` (with its sign left out) rounds to."""
    floor, rest = divmod(magnitude.numerator, magnitude.denominator)
    half = Fraction(rest, magnitude.denominator) - Fraction(1, 2)
    up = {
        NEAREST_EVEN: half > 0 or (half == 0 and floor % 2 == 1),
        TOWARD_ZERO: False,
        DOWN: negative and rest > 0,
        UP: not negative and rest > 0,
        NEAREST_AWAY: half >= 0,
    }[mode]
    return floor + int(up)


def leading_exponent(magnitude: Fraction) -> int:
    """The largest e with 2^e <= magnitude."""
    estimate = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return estimate if magnitude >= Fraction(2) ** estimate else estimate - 1


def rounded(value: Fraction, mode: int) -> Outcome:
    """Any value but zero as binary32."""
    negative, magnitude = value < 0, abs(value)
    exponent = leading_exponent(magnitude)
    unbounded = whole(magnitude / Fraction(2) ** (exponent - 23), negative, mode) * Fraction(2) ** (exponent - 23)
    if unbounded >= 2**128:
        finite = mode == TOWARD_ZERO or mode == (UP if negative else DOWN)
        return signed(negative, LARGEST if finite else INFINITY), OVERFLOW | INEXACT
    quantum_exponent = max(exponent - 23, -149)
    quanta = whole(magnitude / Fraction(2) ** quantum_exponent, negative, mode)
    inexact = quanta * Fraction(2) ** quantum_exponent != magnitude
    flags = (INEXACT if inexact else 0) | (UNDERFLOW if inexact and unbounded < SMALLEST_NORMAL else 0)
    # Successive bit patterns are successive numbers, so a carry out of the fraction needs no care.
    return signed(negative, ((quantum_exponent + 149) << 23) + quanta), flags


def total(value: Fraction, zero_signs: set[bool], mode: int) -> Outcome:
    """A sum; a zero has the terms' sign if they agree on it."""
    if value != 0:
        return rounded(value, mode)
    return signed(mode == DOWN if len(zero_signs) == 2 else zero_signs == {True}, 0), 0


def add(a: int, b: int, _c: int, mode: int) -> Outcome:
    if is_nan(a) or is_nan(b):
        return NAN, signalling_flags(a, b)
    if is_infinite(a) or is_infinite(b):
        if is_infinite(a) and is_infinite(b) and a != b:
            return NAN, INVALID
        return (a if is_infinite(a) else b), 0
    return total(number(a) + number(b), {is_negative(a), is_negative(b)}, mode)


def multiply(a: int, b: int, _c: int, mode: int) -> Outcome:
    negative = is_negative(a) != is_negative(b)
    if is_nan(a) or is_nan(b):
        return NAN, signalling_flags(a, b)
    if is_infinite(a) or is_infinite(b):
        zero = a & ~SIGN == 0 or b & ~SIGN == 0
        return (NAN, INVALID) if zero else (signed(negative, INFINITY), 0)
    return total(number(a) * number(b), {negative}, mode)


def divide(a: int, b: int, _c: int, mode: int) -> Outcome:
    negative = is_negative(a) != is_negative(b)
    if is_nan(a) or is_nan(b):
        return NAN, signalling_flags(a, b)
    if is_infinite(a):
        return (NAN, INVALID) if is_infinite(b) else (signed(negative, INFINITY), 0)
    if is_infinite(b):
        return signed(negative, 0), 0
    if number(b) == 0:
        return (NAN, INVALID) if number(a) == 0 else (signed(negative, INFINITY), DIVIDE_BY_ZERO)
    return total(number(a) / number(b), {negative}, mode)


def square_root(a: int, _b: int, _c: int, mode: int) -> Outcome:
    if is_nan(a):
        return NAN, signalling_flags(a)
    if a in (0, SIGN, INFINITY):
        return a, 0
    if is_negative(a):
        return NAN, INVALID
    # Scaled by 2^150, the integer root has more than 70 bits; half a unit stands for all that it lacks.
    scaled = number(a) * 4**150
    assert scaled.denominator == 1
    root = isqrt(scaled.numerator)
    rest = Fraction(0) if root * root == scaled else Fraction(1, 2)
    return rounded((root + rest) / 2**150, mode)


def multiply_add(a: int, b: int, c: int, mode: int) -> Outcome:
    flags = signalling_flags(a, b, c)
    negative = is_negative(a) != is_negative(b)
    if not is_nan(a) and not is_nan(b):
        if is_infinite(a) or is_infinite(b):
            if a & ~SIGN == 0 or b & ~SIGN == 0:
                return NAN, INVALID
            return add(signed(negative, INFINITY), c, 0, mode)
        if is_infinite(c):
            return c, 0
    if is_nan(a) or is_nan(b) or is_nan(c):
        return NAN, flags
    return total(number(a) * number(b) + number(c), {negative, is_negative(c)}, mode)


def order(a: int) -> tuple[Fraction, bool]:
    """A key that puts -0 below +0."""
    value = number(a & ~SIGN) if not is_infinite(a) else Fraction(2**200)
    return (-value if is_negative(a) else value), not is_negative(a)


def select(a: int, b: int, chosen: Callable[..., int]) -> Outcome:
    numbers = [operand for operand in (a, b) if not is_nan(operand)]
    return (chosen(numbers, key=order) if numbers else NAN), signalling_flags(a, b)


def compare(a: int, b: int, holds: Callable[[Fraction, Fraction], bool], nan_flags: int) -> Outcome:
    if is_nan(a) or is_nan(b):
        return 0, nan_flags | signalling_flags(a, b)
    return int(holds(order(a)[0], order(b)[0])), 0


def classify(a: int) -> int:
    if is_nan(a):
        return 1 << (9 if a & QUIET else 8)
    if is_infinite(a):
        return 1 << (0 if is_negative(a) else 7)
    kind = 0 if number(a) == 0 else 1 if abs(number(a)) < SMALLEST_NORMAL else 2
    return 1 << (3 - kind if is_negative(a) else 4 + kind)


def to_integer(a: int, mode: int, lowest: int, highest: int) -> Outcome:
    if is_nan(a) or a == INFINITY:
        return highest, INVALID
    if is_infinite(a):
        return lowest & 0xFFFFFFFF, INVALID
    magnitude = whole(abs(number(a)), is_negative(a), mode)
    value = -magnitude if is_negative(a) else magnitude
    if not lowest <= value <= highest:
        return min(max(value, lowest), highest) & 0xFFFFFFFF, INVALID
    return value & 0xFFFFFFFF, 0 if value == number(a) else INEXACT


def from_integer(value: int, mode: int) -> Outcome:
    return total(Fraction(value), {False}, mode)


REFERENCE: Mapping[str, Callable[[int, int, int, int], Outcome]] = {
    "add": add,
    "sub": lambda a, b, c, mode: add(a, b ^ SIGN, c, mode),
    "mul": multiply,
    "div": divide,
    "sqrt": square_root,
    "fmadd": multiply_add,
    "fmsub": lambda a, b, c, mode: multiply_add(a, b, c ^ SIGN, mode),
    "fnmsub": lambda a, b, c, mode: multiply_add(a ^ SIGN, b, c, mode),
    "fnmadd": lambda a, b, c, mode: multiply_add(a ^ SIGN, b, c ^ SIGN, mode),
    "min": lambda a, b, _c, _mode: select(a, b, min),
    "max": lambda a, b, _c, _mode: select(a, b, max),
    "eq": lambda a, b, _c, _mode: compare(a, b, lambda x, y: x == y, 0),
    "lt": lambda a, b, _c, _mode: compare(a, b, lambda x, y: x < y, INVALID),
    "le": lambda a, b, _c, _mode: compare(a, b, lambda x, y: x <= y, INVALID),
    "classify": lambda a, _b, _c, _mode: (classify(a), 0),
    "sgnj": lambda a, b, _c, _mode: (signed(is_negative(b), a & ~SIGN), 0),
    "sgnjn": lambda a, b, _c, _mode: (signed(not is_negative(b), a & ~SIGN), 0),
    "sgnjx": lambda a, b, _c, _mode: (signed(is_negative(a) != is_negative(b), a & ~SIGN), 0),
    "to_i32": lambda a, _b, _c, mode: to_integer(a, mode, -(2**31), 2**31 - 1),
    "to_u32": lambda a, _b, _c, mode: to_integer(a, mode, 0, 2**32 - 1),
    "from_i32": lambda a, _b, _c, mode: from_integer(a - 2**32 if a >= 2**31 else a, mode),
    "from_u32": lambda a, _b, _c, mode: from_integer(a, mode),
}

INSTRUCTIONS = {
    **{f"f{name}_s": name for name in ("add", "sub", "mul", "div", "sqrt", "min", "max", "eq", "lt", "le")},
    **{f"f{name}_s": name for name in ("sgnj", "sgnjn", "sgnjx")},
    **{f"{name}_s": name for name in ("fmadd", "fmsub", "fnmadd", "fnmsub")},
    "fclass_s": "classify",
    "fcvt_w_s": "to_i32",
    "fcvt_wu_s": "to_u32",
    "fcvt_s_w": "from_i32",
    "fcvt_s_wu": "from_u32",
}
"""Instructions, by their ids, and what they compute."""
FROM_INTEGERS = {"fcvt_s_w", "fcvt_s_wu"}
