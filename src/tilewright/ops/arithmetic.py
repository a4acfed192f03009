"""Add, Sub, Mul, Div: binary arithmetic with broadcasting.

On integers the standard meaning is modulo the type's width. The integer dialect computes in 32 bits instead: there the
importer sets `widen`, and the result is int32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32, INT32
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, example
from tilewright.ops.rules import broadcast, broadcast_type, elementwise, wrapping

EXAMPLES = (
    example("float32[2,3,4]", "float32[2,3,4]"),
    example("float32[2,1,4]", "float32[3,1]"),
    example("float32[5]", "float32[]"),
    example("int32[3,4]", "int32[4]"),
    example("int64[6]", "int64[1]"),
    example("uint8[7]", "uint8[7]"),
    example("float16[3,5]", "float16[5]"),
)
WIDENING = (
    example("int8[2,9]", "int8[9]", widen=1),
    example("uint8[2,9]", "int8[9]", widen=1),
    example("int8[3,6]", "int8[3,6]", widen=1),
)


def _infer(call: Call) -> tuple[TensorType, ...]:
    if call.int("widen"):
        return (TensorType(INT32, broadcast(call, call.shape("A"), call.shape("B"))),)
    return broadcast_type(call)


def _sum_limit(call: Call, limits: Mapping[str, int]) -> int:
    del call
    return limits["A"] + limits["B"]


def _product_limit(call: Call, limits: Mapping[str, int]) -> int:
    del call
    return limits["A"] * limits["B"]


def _binary(
    name: str,
    symbol: str,
    function: Callable[[Array, Array], Array],
    limit: Callable[[Call, Mapping[str, int]], int] = _sum_limit,
) -> None:
    def reference(call: Call, A: Array, B: Array) -> Array:
        if call.int("widen"):
            return function(A.astype(np.int32), B.astype(np.int32))
        return function(A, B)

    def body(call: Call) -> Body:
        sums = symbol == "+" and all(kind is not None and kind.dtype == INT32 for kind in call.inputs)
        whole = call.outputs[0].dtype in (INT32, FLOAT32)
        lanes = f"tw_lanes_{name.lower()}(A, B)" if whole else ""
        return Body(MappingProxyType({"Y": wrapping(call, symbol)}), adds=sums, lanes=lanes)

    elementwise(
        name,
        "A B",
        reference,
        body,
        infer=_infer,
        attrs={"widen": 0},
        examples=EXAMPLES + WIDENING,
        limit=limit,
    )


_binary("Add", "+", np.add)
_binary("Sub", "-", np.subtract)
_binary("Mul", "*", np.multiply, _product_limit)


def _divide(call: Call, A: Array, B: Array) -> Array:
    if call.outputs[0].dtype.is_float:
        return np.asarray(A / B)
    # Integer division truncates toward zero, as in C; a zero divisor gives zero instead of a trap.
    # Nor does the smallest number by -1 trap: its negation is itself.
    negated = (B < 0) & (B + 1 == 0)
    safe = np.where((B == 0) | negated, B.dtype.type(1), B)
    down = A // safe
    quotient = np.where((A % safe != 0) & ((A < 0) != (safe < 0)), down + A.dtype.type(1), down)
    return np.where(B == 0, A.dtype.type(0), np.where(negated, -A, quotient))


def _steady(call: Call) -> bool:
    """Whether the divisor is the same along the innermost loop: its reciprocal is then found before."""
    divisor, along = call.type("B").shape[-1:], call.outputs[0].shape[-1:]
    return along > (1,) and divisor in ((), (1,))


def _divide_c(call: Call) -> str:
    kind = call.outputs[0].dtype
    if kind.is_float:
        return "tw_divided(A, B)" if kind.compute == "float" and _steady(call) else "A / B"
    if kind.kind == "int" and kind.bits >= 32:
        # The one overflow of division, the smallest value by -1, is a negation modulo the width.
        unsigned = f"uint{kind.bits}_t"
        return f"B == 0 ? 0 : B == -1 ? ({kind.ctype})(0 - ({unsigned})A) : A / B"
    return "B == 0 ? 0 : A / B"


elementwise(
    "Div",
    "A B",
    _divide,
    _divide_c,
    examples=(
        example("float32[2,3,4]", "float32[4]"),
        example("int32[40]", "int32[40]"),
        example("uint8[9]", "uint8[9]"),
    ),
)
