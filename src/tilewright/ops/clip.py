"""Clip: limits numbers to a range whose ends are optional, constant or computed at run time."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, example
from tilewright.ops.rules import elementwise, number, one_dtype, present, same_type


def _infer(call: Call) -> tuple[TensorType, ...]:
    one_dtype(call, tuple(present(call)))
    for operand in ("min", "max"):
        if call.has(operand) and call.type(operand).size != 1:
            raise call.error("shape-mismatch", f"{operand} must be one number, found {call.type(operand)}")
    return same_type(call)


def _reference(_call: Call, input: Array, min: Array | None = None, max: Array | None = None) -> Array:
    result = input
    if min is not None:
        result = np.maximum(result, min.reshape(()))
    return result if max is None else np.minimum(result, max.reshape(()))


def _end(call: Call, operand: str) -> str:
    """A constant end is printed as a number, so that the compiler sees it."""
    known = call.known(operand)
    return operand if known is None else number(known.reshape(()).item(), call.type("input").dtype)


def _limits(call: Call, operand: str) -> bool:
    """Whether an end is there and excludes anything; compilers warn of comparisons that always come out the same."""
    known, kind = call.known(operand), call.type("input").dtype
    if known is not None and kind.is_integer:
        return int(known.reshape(()).item()) != (kind.lo if operand == "min" else kind.hi)
    return call.has(operand)


def _body(call: Call) -> Body:
    # Where the ends are the wrong way round the upper one wins, and NaN stays NaN.
    inner = f"(input < {_end(call, 'min')} ? {_end(call, 'min')} : input)" if _limits(call, "min") else "input"
    lanes = f"tw_lanes_at_least(input, {_end(call, 'min')})" if _limits(call, "min") else "input"
    if not _limits(call, "max"):
        return Body(MappingProxyType({"output": inner}), lanes=lanes)
    text = f"{inner} > {_end(call, 'max')} ? {_end(call, 'max')} : {inner}"
    return Body(MappingProxyType({"output": text}), lanes=f"tw_lanes_at_most({lanes}, {_end(call, 'max')})")


_WIDE = np.array([0, 3, -1, 5, -(2**31), 2**31, 2**32 + 7, -(2**62), 2**62 + 1])
"""Numbers that differ above their lower 32 bits."""

elementwise(
    "Clip",
    "input min? max?",
    _reference,
    _body,
    infer=_infer,
    examples=(
        example("float32[2,3,4]", np.array(-0.5, np.float32), np.array(0.75, np.float32)),
        example("float32[9]", "float32[]", "float32[1]"),
        example("float32[9]", "float32[]"),
        example("float32[9]", "", "float32[]"),
        example("float32[9]"),
        example("float32[9]", np.array(0.5, np.float32), np.array(-0.5, np.float32)),
        example("float32[]", np.array([-0.5], np.float32), "float32[1]"),
        example("float16[9]", np.array(-0.5, np.float16), np.array(np.inf, np.float16)),
        example("float64[9]", "float64[]", "float64[]"),
        example("int8[20]", np.array(-9, np.int8), np.array(50, np.int8)),
        example("int8[20]", np.array(-128, np.int8), np.array(127, np.int8)),
        example("uint8[20]", np.array(0, np.uint8), np.array(50, np.uint8)),
        example("uint8[20]", "uint8[]", "uint8[]"),
        example("int32[20]", np.array(-(2**31), np.int32), np.array(50, np.int32)),
        example("int64[20]", "int64[]", np.array(2**63 - 1, np.int64)),
        example(_WIDE, np.array(-6), np.array(2**32 - 6)),
        example(_WIDE, np.array(-(2**40)), np.array(2**31)),
        example("uint64[20]", np.array(5, np.uint64), np.array(2**63, np.uint64)),
    ),
    output="output",
)
