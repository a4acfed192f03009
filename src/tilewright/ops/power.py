"""Pow and Mod: binary arithmetic whose operands may differ in type or whose signs matter."""

from __future__ import annotations

import numpy as np

from tilewright.base.dtype import FLOAT64
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, example
from tilewright.ops.rules import broadcast, broadcast_type, elementwise, truncate, truncated

_FEW_FACTORS = 4
"""Up to this exponent a product is cheaper, and closer, than the power function."""


def _power_type(call: Call) -> tuple[TensorType, ...]:
    base, exponent = call.type("X"), call.type("Y")
    if "bool" in (base.dtype.kind, exponent.dtype.kind):
        raise call.error("type-mismatch", f"powers of {base.dtype} to {exponent.dtype} are not numbers")
    return (TensorType(base.dtype, broadcast(call, base.shape, exponent.shape)),)


def _factors(call: Call) -> int:
    """How many equal factors a power has; zero where that is many, no whole number or only known at run time."""
    known = call.known("Y")
    exponent = float(known.reshape(()).item()) if known is not None and known.size == 1 else 0.0
    return int(exponent) if exponent in range(1, _FEW_FACTORS + 1) else 0


def _power(call: Call, X: Array, Y: Array) -> Array:
    kind, count = call.type("X").dtype, _factors(call)
    if count and not kind.is_float:
        # A float64 does not hold every int64; like products, powers are modulo the width.
        return np.multiply.reduce([np.broadcast_to(X, call.outputs[0].shape)] * count)
    result = np.power(X.astype(np.float64), Y.astype(np.float64))
    return result if kind.is_float else truncate(result, kind)


def _power_c(call: Call) -> str:
    kind, count = call.type("X").dtype, _factors(call)
    if not kind.is_float:
        factor = f"(uint{max(kind.bits, 32)}_t)X"
        return " * ".join([factor] * count) if count else truncated("pow((double)X, (double)Y)", FLOAT64, kind)
    known = call.known("Y")
    if known is not None and known.size == 1 and known.reshape(()).item() == 0.5:
        return "sqrt{f}(X)"
    if count:
        return " * ".join(["X"] * count)
    return "pow{f}(X, ({T})Y)"


_POSITIVE = np.linspace(0.25, 4, 12).reshape(3, 4)
elementwise(
    "Pow",
    "X Y",
    _power,
    _power_c,
    infer=_power_type,
    examples=(
        example(_POSITIVE.astype(np.float32), "float32[4]"),
        example(_POSITIVE.astype(np.float64), "float64[]"),
        example(_POSITIVE.astype(np.float16), "float16[4]"),
        *(example("float32[2,5]", np.array(exponent, np.float32)) for exponent in (1, 2, 3, 4, 5, -1)),
        example(_POSITIVE.astype(np.float32), np.array([0.5], np.float32)),
        example("float32[4]", np.array([0, 1, 2, 3], np.int64)),
        example("float32[4]", np.array([0, 1, 2, 3], np.uint8)),
        example(np.array([-3, 2, 7, 0], np.int32), np.array([3, 10, 2, 0], np.int32)),
        example(np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.float32)),
        example(np.array([1, 2, 3], np.int64), np.array([4, 5, 6], np.int64)),
        example(np.array([2**30 + 1, -(2**31) + 1, 3], np.int64), np.array(2)),
        example(np.array([[-7, 11, 100]], np.int8), np.array([3], np.int8)),
        example(np.array([2, 3, -9], np.int32), np.array([40, 30, 31], np.int32)),
    ),
    output="Z",
)


def _modulo_type(call: Call) -> tuple[TensorType, ...]:
    (kind,) = broadcast_type(call)
    if kind.dtype.is_float and not call.int("fmod"):
        raise call.error("bad-attribute", "fmod must be 1 for floating-point numbers", help="set fmod=1")
    return (kind,)


def _modulo(call: Call, A: Array, B: Array) -> Array:
    if call.type("A").dtype.is_float:
        return np.fmod(A.astype(np.float64), B.astype(np.float64))
    # A zero divisor gives zero instead of a trap.
    safe = np.where(B == 0, 1, B).astype(B.dtype)
    return np.where(B == 0, 0, np.fmod(A, safe) if call.int("fmod") else np.mod(A, safe))


def _modulo_c(call: Call) -> str:
    kind = call.type("A").dtype
    if kind.is_float:
        return "fmod{f}(A, B)"
    if kind.kind == "uint":
        return "B == 0 ? 0 : A % B"
    # By -1 the remainder is zero, and the division behind it would overflow on the smallest value.
    if call.int("fmod"):
        return "B == 0 || B == -1 ? 0 : A % B"
    return "B == 0 || B == -1 ? 0 : A % B != 0 && (A % B < 0) != (B < 0) ? A % B + B : A % B"


_SIGNED = (np.array([-4, 7, 5, 4, -7, 8, -128]), np.array([2, -3, 8, -2, 3, 5, -1]))
elementwise(
    "Mod",
    "A B",
    _modulo,
    _modulo_c,
    infer=_modulo_type,
    attrs={"fmod": 0},
    examples=(
        *(
            example(_SIGNED[0].astype(kind), _SIGNED[1].astype(kind), fmod=fmod)
            for kind in (np.int8, np.int16, np.int32, np.int64)
            for fmod in (0, 1)
        ),
        *(example(f"{kind}[2,9]", f"{kind}[9]") for kind in ("uint8", "uint16", "uint32", "uint64")),
        example(np.array([-(2**31), 9], np.int32), np.array([-1, 4], np.int32)),
        example(np.array([5, 9], np.int32), np.array([0, 4], np.int32)),
        example(np.array([2**60 + 1, -(2**62) - 3]), np.array([2**61, 2**40 + 1]), fmod=1),
        example("float32[2,3,4]", "float32[4]", fmod=1),
        example("float64[3,4]", "float64[]", fmod=1),
        example("float16[4]", "float16[4]", fmod=1),
    ),
    output="C",
)
