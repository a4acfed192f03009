"""Element-wise operators of one input: rounding, roots, exponentials, trigonometry, signs, tests and bits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilewright.base.dtype import BOOL
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, Example, example
from tilewright.ops.rules import (
    elementwise,
    float_type,
    integer_type,
    logical_type,
    plain,
    real,
    same_type,
    signed_type,
)

erf: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])
FLOATS = (
    example("float32[2,3,5]"),
    example("float32[]"),
    example("float64[7]"),
    example("float16[9]"),
    example("bfloat16[3,4]"),
)


def within(lo: float, hi: float) -> tuple[Example, ...]:
    """Examples with numbers from `lo` to `hi`, for functions that are not defined everywhere."""
    return tuple(
        example(np.linspace(lo, hi, 12).reshape(3, 4).astype(kind)) for kind in (np.float32, np.float64, np.float16)
    )


def _function(name: str, c: str, function: Callable[[Array], Array], examples: tuple[Example, ...] = FLOATS) -> None:
    elementwise(name, "X", real(function), c, infer=float_type, examples=examples)


_function("Ceil", "ceil{f}(X)", np.ceil)
_function("Floor", "floor{f}(X)", np.floor)
_function(
    "Round",
    "rint{f}(X)",
    np.rint,
    (*FLOATS, example(np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.4, -2.6], np.float32))),
)
_function("Sqrt", "sqrt{f}(X)", np.sqrt, within(0.0, 9.0))
_function("Exp", "tw_exp{f}(X)", np.exp)
_function("Log", "tw_log{f}(X)", np.log, within(0.1, 9.0))
_function("Sin", "sin{f}(X)", np.sin)
_function("Cos", "cos{f}(X)", np.cos)
_function("Tan", "tan{f}(X)", np.tan)
_function("Asin", "asin{f}(X)", np.arcsin, within(-1.0, 1.0))
_function("Acos", "acos{f}(X)", np.arccos, within(-1.0, 1.0))
_function("Atan", "atan{f}(X)", np.arctan)
_function("Sinh", "sinh{f}(X)", np.sinh)
_function("Cosh", "cosh{f}(X)", np.cosh)
_function("Tanh", "tw_tanh{f}(X)", np.tanh)
_function("Asinh", "asinh{f}(X)", np.arcsinh)
_function("Acosh", "acosh{f}(X)", np.arccosh, within(1.0, 9.0))
_function("Atanh", "atanh{f}(X)", np.arctanh, within(-0.9, 0.9))
_function("Erf", "tw_erf{f}(X)", erf)
_function("Reciprocal", "1 / X", np.reciprocal, within(-3.0, 2.5))


def _negative(call: Call) -> str:
    kind = call.type("X").dtype
    # The smallest value has no counterpart: modulo the width it is its own negative.
    return f"0 - (uint{kind.bits}_t)X" if kind.is_integer and kind.bits >= 32 else "-X"


def _absolute(call: Call) -> str:
    kind = call.type("X").dtype
    if kind.is_float:
        return "fabs{f}(X)"
    return "X" if kind.kind == "uint" else f"X < 0 ? ({kind.ctype})({_negative(call)}) : X"


def _sign(call: Call) -> str:
    kind = call.type("X").dtype
    if kind.kind == "uint":
        return "X != 0"
    # Zero and NaN give themselves.
    return "X > 0 ? 1 : X < 0 ? -1 : X"


elementwise(
    "Abs",
    "X",
    plain(np.abs),
    _absolute,
    infer=same_type,
    examples=(
        *FLOATS,
        example("int8[3,5]"),
        example(np.array([np.iinfo(np.int32).min, -3, 0, 4], np.int32)),
        example("int64[4]"),
        example("uint8[4]"),
    ),
)
elementwise(
    "Neg",
    "X",
    plain(np.negative),
    _negative,
    infer=signed_type,
    examples=(
        *FLOATS,
        example("int8[3,5]"),
        example(np.array([np.iinfo(np.int32).min, -3, 0], np.int32)),
        example("int64[4]"),
    ),
)
elementwise(
    "Sign",
    "X",
    plain(np.sign),
    _sign,
    infer=same_type,
    examples=(
        *FLOATS,
        example(np.array([-2.5, 0.0, 3.0], np.float32)),
        example("int8[3,5]"),
        example("int64[4]"),
        example(np.array([3000000000, -3000000000, 2**32, -(2**32), 0])),
        example("uint8[4]"),
    ),
)
elementwise(
    "Not",
    "X",
    plain(np.logical_not),
    "!X",
    infer=logical_type,
    examples=(example("bool[3,4]"), example("bool[]")),
)
elementwise(
    "BitwiseNot",
    "X",
    plain(np.invert),
    "~X",
    infer=integer_type,
    examples=tuple(
        example(f"{kind}[3,4]") for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
    ),
)

_ODD = np.array([1.0, -np.inf, np.nan, np.inf, 0.0, -2.0], np.float32)


def _float_test(call: Call) -> tuple[TensorType, ...]:
    return (float_type(call)[0].with_dtype(BOOL),)


elementwise(
    "IsNaN",
    "X",
    plain(np.isnan),
    "X != X",
    infer=_float_test,
    examples=(example(_ODD), example(_ODD.astype(np.float64)), example(_ODD.astype(np.float16))),
)


def _is_infinite(call: Call, X: Array) -> Array:
    found = np.zeros(X.shape, np.bool_)
    if call.int("detect_positive"):
        found |= np.isposinf(X.astype(np.float64))
    if call.int("detect_negative"):
        found |= np.isneginf(X.astype(np.float64))
    return found


def _is_infinite_c(call: Call) -> str:
    signs = [
        text
        for name, text in (("detect_positive", "X == INFINITY"), ("detect_negative", "X == -INFINITY"))
        if call.int(name)
    ]
    return " || ".join(signs) or "false"


elementwise(
    "IsInf",
    "X",
    _is_infinite,
    _is_infinite_c,
    infer=_float_test,
    attrs={"detect_negative": 1, "detect_positive": 1},
    examples=(
        example(_ODD),
        example(_ODD, detect_negative=0),
        example(_ODD, detect_positive=0),
        example(_ODD, detect_positive=0, detect_negative=0),
        example(_ODD.astype(np.float64)),
        example(_ODD.astype(np.float16)),
    ),
)
