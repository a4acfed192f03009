"""Cast, CastLike and BitCast: other element types for the same numbers, or for the same bits.

From floating point to an integer a number is truncated toward zero; the standard leaves numbers outside the integer
type open, here they saturate and NaN gives zero. From one integer to another it is modulo the width.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import BOOL, DType
from tilewright.core import domain as dom
from tilewright.core.domain import Domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.rules import element_type, elementwise, truncate, truncated


def converted(array: Array, target: DType) -> Array:
    """Numbers in another element type."""
    if target.is_integer and array.dtype.kind not in "iub":
        return truncate(array, target)
    return array.astype(target.numpy)


def conversion(name: str, source: DType, target: DType) -> str:
    """The C expression of a scalar in another element type; the loop nest adds the cast itself."""
    if target == BOOL:
        return name if source == BOOL else f"{name} != 0"
    if target.is_integer and source.is_float:
        return truncated(name, source, target)
    return f"({target.compute}){name}"


def _cast(call: Call, input: Array, _target: Array | None = None) -> Array:
    return converted(input, call.outputs[0].dtype)


def _cast_type(call: Call) -> tuple[TensorType, ...]:
    return (call.type("input").with_dtype(element_type(call, "to")),)


_CODES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16,
}  # fmt: skip
_HARD = np.array(
    [0.0, -0.0, 0.6, -0.6, 3.99, -3.99, 200.0, -200.0, 3e9, -3e9, 1e19, -1e19, np.inf, -np.inf], np.float32
)

elementwise(
    "Cast",
    "input",
    _cast,
    lambda call: conversion("input", call.type("input").dtype, call.outputs[0].dtype),
    infer=_cast_type,
    attrs={"to": REQUIRED, "saturate": 1, "round_mode": "up"},
    examples=(
        *(example("float32[3,5]", to=code) for code in _CODES.values()),
        *(example(f"{source}[7]", to=1) for source in _CODES),
        *(example("int32[7]", to=code) for code in (3, 4, 7, 9, 10)),
        *(example("bool[7]", to=code) for code in (2, 7, 11, 16)),
        *(example(f"{source}[7]", to=3) for source in ("float16", "bfloat16", "uint64")),
        *(example(_HARD, to=code) for code in (2, 3, 5, 6, 7, 9, 12, 13)),
        example(np.array([np.nan, 1.0], np.float64), to=6),
        example(np.array([np.nan, 0.0], np.float64), to=9),
        example(np.array([300, -300, 70000], np.int64), to=2),
        example(np.array([300, -300, 70000], np.int64), to=3),
        example(np.array([1e30, -7.25, 1 / 3, 70000.0, 1e-7], np.float64), to=10),
        example(np.array([1e30, -7.25, 1 / 3, 70000.0, 1e-42], np.float64), to=16),
    ),
    output="output",
)


def _like_domain(call: Call) -> Domain:
    """Nothing of `target_type` but its type is read; an access map must say something, so it says the first element."""
    plain = dom.elementwise(call.outputs[0].shape, {"input": call.shape("input")}, "output")
    shape = call.shape("target_type")
    return replace(
        plain,
        access=MappingProxyType({**plain.access, "target_type": tuple(dom.at(0) for _ in shape)}),
        shapes=MappingProxyType({**plain.shapes, "target_type": shape}),
    )


declare(
    Operator(
        "CastLike",
        "input target_type",
        "output",
        lambda call: (call.type("input").with_dtype(call.type("target_type").dtype),),
        _like_domain,
        _cast,
        (
            example("float32[3,4]", "int8[2]"),
            example("int64[5]", "float16[1]"),
            example("float32[5]", "float32[]"),
            example("bfloat16[5]", "float64[1]"),
        ),
        MappingProxyType({"saturate": 1, "round_mode": "up"}),
        "elementwise",
        lambda call: Body({"output": conversion("input", call.type("input").dtype, call.outputs[0].dtype)}),
    )
)


def _bitcast_type(call: Call) -> tuple[TensorType, ...]:
    source, target = call.type("input"), element_type(call, "to")
    if source.dtype.bits != target.bits:
        raise call.error("type-mismatch", f"{source.dtype} and {target} differ in width")
    return (source.with_dtype(target),)


def _bitcast_c(call: Call) -> str:
    source, target = call.type("input").dtype, call.outputs[0].dtype
    # float16 and bfloat16 are stored as the bits that are wanted, and computed as float.
    if source == target:
        return "input"
    if source.load and target.load:
        return f"{target.load}({source.store}(input))"
    if source.load:
        return f"{source.store}(input)"
    if target.load:
        return f"{target.load}((uint16_t)input)"
    if source.is_float == target.is_float:
        return "input"
    return f"((union {{ {source.ctype} from; {target.ctype} to; }}){{.from = input}}).to"


def _bitcast(call: Call, input: Array) -> Array:
    return np.ascontiguousarray(input).view(call.outputs[0].dtype.numpy)


elementwise(
    "BitCast",
    "input",
    _bitcast,
    _bitcast_c,
    infer=_bitcast_type,
    attrs={"to": REQUIRED},
    examples=(
        example("float32[3,4]", to=6),
        example("int32[5]", to=1),
        example("float64[5]", to=7),
        example("int64[5]", to=11),
        example("int8[5]", to=2),
        example("uint16[5]", to=5),
        example("uint32[]", to=6),
        example("bool[5]", to=2),
        example("float16[5]", to=4),
        example("float16[5]", to=16),
        example(np.array([0x3C00, 0xC100, 0x0001], np.uint16), to=10),
        example("bfloat16[5]", to=5),
        example("float32[5]", to=1),
    ),
    output="output",
)
