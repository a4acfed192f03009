"""Comparisons, logical and bitwise operators of two inputs, and Where."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.base.dtype import BOOL
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Example, example
from tilewright.ops.rules import (
    broadcast,
    elementwise,
    integer_type,
    logical_type,
    one_dtype,
    plain,
    predicate_type,
)

_NEAR = np.array([1, 2, 3, 2, 1, 0], np.float32)
_COMPARED = (
    example("float32[2,3,4]", "float32[3,1]"),
    example(_NEAR, _NEAR[::-1].copy()),
    example("float64[5]", "float64[]"),
    example("float16[3,5]", "float16[5]"),
    example(_NEAR.astype(np.int8), _NEAR[::-1].astype(np.int8)),
    example(_NEAR.astype(np.uint8), _NEAR[::-1].astype(np.uint8)),
    example(_NEAR.astype(np.int64), _NEAR[::-1].astype(np.int64)),
    example("int32[4]", "int32[1]"),
    example("uint64[4]", "uint64[4]"),
)
_BOOLS = (example("bool[2,3,4]", "bool[2,3,4]"), example("bool[2,3,4]", "bool[3,1]"), example("bool[9]", "bool[]"))
_INTEGERS = tuple(
    example(f"{kind}[3,4]", f"{kind}[4]")
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
)


def _binary(
    name: str,
    symbol: str,
    function: Callable[[Array, Array], Array],
    infer: Callable[[Call], tuple[TensorType, ...]],
    examples: tuple[Example, ...],
) -> None:
    elementwise(name, "A B", plain(function), f"A {symbol} B", infer=infer, examples=examples, output="C")


_binary("Equal", "==", np.equal, predicate_type, (*_COMPARED, *_BOOLS))
_binary("Greater", ">", np.greater, predicate_type, _COMPARED)
_binary("GreaterOrEqual", ">=", np.greater_equal, predicate_type, _COMPARED)
_binary("Less", "<", np.less, predicate_type, _COMPARED)
_binary("LessOrEqual", "<=", np.less_equal, predicate_type, _COMPARED)
_binary("And", "&&", np.logical_and, logical_type, _BOOLS)
_binary("Or", "||", np.logical_or, logical_type, _BOOLS)
_binary("Xor", "!=", np.logical_xor, logical_type, _BOOLS)
_binary("BitwiseAnd", "&", np.bitwise_and, integer_type, _INTEGERS)
_binary("BitwiseOr", "|", np.bitwise_or, integer_type, _INTEGERS)
_binary("BitwiseXor", "^", np.bitwise_xor, integer_type, _INTEGERS)


def _shift_type(call: Call) -> tuple[TensorType, ...]:
    (kind,) = integer_type(call)
    if call.text("direction") not in ("LEFT", "RIGHT"):
        raise call.error(
            "bad-attribute", f"direction='{call.text('direction')}' is not known", help="use LEFT or RIGHT"
        )
    if kind.dtype.kind != "uint":
        raise call.error("type-mismatch", f"only unsigned integers are shifted, found {kind.dtype}")
    return (kind,)


def _shift(call: Call, X: Array, Y: Array) -> Array:
    # Shifting everything out gives zero; numpy leaves that case open.
    bits = call.type("X").dtype.bits
    inside = bits > Y
    amount = np.where(inside, Y, 0).astype(X.dtype)
    shifted = np.left_shift(X, amount) if call.text("direction") == "LEFT" else np.right_shift(X, amount)
    return np.where(inside, shifted, 0)


elementwise(
    "BitShift",
    "X Y",
    _shift,
    lambda call: f"Y < {call.type('X').dtype.bits} ? X {'<<' if call.text('direction') == 'LEFT' else '>>'} Y : 0",
    infer=_shift_type,
    attrs={"direction": REQUIRED},
    examples=tuple(
        example(np.array([255, 16, 4, 1, 1], kind), np.array([1, 2, 3, 31, 200], kind), direction=direction)
        for kind in (np.uint8, np.uint16, np.uint32, np.uint64)
        for direction in ("LEFT", "RIGHT")
    ),
    output="Z",
)


def _where_type(call: Call) -> tuple[TensorType, ...]:
    if call.type("condition").dtype != BOOL:
        raise call.error("type-mismatch", f"condition must be bool, found {call.type('condition').dtype}")
    shape = broadcast(call, *(call.shape(name) for name in ("condition", "X", "Y")))
    return (TensorType(one_dtype(call, ("X", "Y")), shape),)


elementwise(
    "Where",
    "condition X Y",
    plain(np.where),
    "condition ? X : Y",
    infer=_where_type,
    examples=(
        example("bool[2,3,4]", "float32[2,3,4]", "float32[2,3,4]"),
        example("bool[3,1]", "float32[2,1,4]", "float32[]"),
        example("bool[5]", "int64[5]", "int64[1]"),
        example("bool[5]", "bool[5]", "bool[5]"),
        example("bool[5]", "uint8[5]", "uint8[1]"),
        example("bool[5]", "float16[5]", "float16[5]"),
        example("bool[5]", "float64[5]", "float64[5]"),
    ),
    output="output",
)
