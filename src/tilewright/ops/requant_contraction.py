"""RequantConv and RequantMatMul: sums of products scaled back to 8 bits, as accelerators do it.

`Y = clip((sum * mul + add) >> shift)` with one `mul` and `add` for each channel of the result, in 32 bits that wrap,
without rounding: what rounds is part of `add`. Y is int8, or uint8 where `signed` is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT8, INT32, UINT8
from tilewright.core.domain import Domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.conv import ATTRS as CONV_ATTRS
from tilewright.ops.conv import conv_window
from tilewright.ops.matmul import WEIGHT_BITS
from tilewright.ops.quantized_rules import inner_attrs, inner_call, lane_access, wrap_domain
from tilewright.ops.windows import padding

SCALING: dict[str, Attr] = {"shift": REQUIRED, "signed": 1}


def _inner(call: Call) -> Call:
    """The contraction without scaling."""
    op = call.op.name.removeprefix("Requant")
    return inner_call(call, op, call.operands[:2], inner_attrs(call, op))


def _infer(call: Call) -> tuple[TensorType, ...]:
    sums = _inner(call).outputs[0]
    if sums.dtype != INT32 or not 0 <= call.int("shift") < 32:
        raise call.error("type-mismatch", f"sums are {sums.dtype}, shifted by {call.int('shift')}")
    return (sums.with_dtype(INT8 if call.int("signed") else UINT8),)


def _domain(call: Call) -> Domain:
    inner = _inner(call)
    domain = inner.domain()
    # Both have the channels of the result last, or along the first axis of the weights.
    operand, place = ("W", 0) if "W" in domain.access else ("Y", -1)
    channel, channels = domain.access[operand][place], domain.shapes[operand][place]
    lanes = {name: lane_access(call, name, channel, channels) for name in ("mul", "add")}
    return wrap_domain(call, inner, {name: name for name in domain.access}, lanes)


def _reference(call: Call, left: Array, right: Array, mul: Array, add: Array) -> Array:
    inner, kind = _inner(call), call.type("Y").dtype
    sums = np.asarray(inner.op.reference(inner, left, right)).astype(np.int64)
    channels_first = call.attrs.get("channels_last") == 0
    shape = (-1, *(1,) * (sums.ndim - 2)) if channels_first else (-1,)
    scaled = sums * mul.astype(np.int64).reshape(shape) + add.astype(np.int64).reshape(shape)
    return np.clip(scaled.astype(np.int32) >> call.int("shift"), kind.lo, kind.hi)


def _body(call: Call) -> Body:
    inner, kind = _inner(call), call.type("Y").dtype
    plain = inner.body or Body(MappingProxyType({}))
    total = f"(int32_t)(acc * (uint32_t)mul + (uint32_t)add) >> {call.int('shift')}"
    result = f"tw_clamp({total}, {kind.lo}, {kind.hi})"
    return Body(MappingProxyType({"Y": result}), plain.state, plain.update, fill=plain.fill)


def _limit(call: Call, limits: Mapping[str, int]) -> int:
    del limits
    return max(-call.type("Y").dtype.lo, call.type("Y").dtype.hi)


declare(
    Operator(
        "RequantConv",
        "X W mul add",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example(
                "int8[1,5,6,4]", "int8[6,4,3,3]", "int32[6]", "int32[6]", pads=(1, 1, 1, 1), channels_last=1, shift=9
            ),
            example(
                "uint8[1,5,6,4]", "int8[4,1,3,3]", "int32[4]", "int32[4]", group=4, channels_last=1, shift=12, signed=0
            ),
            example("int8[1,2,5,5]", "int8[3,2,1,1]", "int32[1]", "int32[3]", strides=(2, 2), shift=3),
        ),
        MappingProxyType({**CONV_ATTRS, **SCALING}),
        "reduce",
        _body,
        numbers=lambda call: conv_window(call).numbers(),
        padding=padding,
        limit=_limit,
    )
)

declare(
    Operator(
        "RequantMatMul",
        "A B mul add",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int8[2,3,5]", "int8[5,4]", "int32[4]", "int32[4]", shift=7),
            example("uint8[3,5]", "int8[5,4]", "int32[]", "int32[4]", shift=0, signed=0),
        ),
        MappingProxyType({**WEIGHT_BITS, **SCALING}),
        "reduce",
        _body,
        doc="A product of matrices whose sums are scaled back to 8 bits, for each column of the result.",
        limit=_limit,
    )
)
