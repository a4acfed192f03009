"""Convolutions and matrix products of quantised tensors: operands carry zero points, sums are 32 bits wide.

ConvInteger and MatMulInteger give the sums, the QLinear forms scale them back to few bits, MatMulIntegerToFloat gives
real numbers. Each is a Conv or MatMul of the operands without their zero points.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32, INT32
from tilewright.core.domain import Axis, Domain, at
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.quantized_rules import (
    centred,
    centred_c,
    f16,
    f32,
    inner_attrs,
    inner_call,
    lane_access,
    need_narrow,
    need_own_zero,
    need_scalar,
    optional,
    quantised,
    quantised_c,
    s8,
    scalar_access,
    u8,
    wrap_domain,
)

SUM = ("uint32_t", "acc", "0")
"""Sums wrap; signed overflow would be undefined."""

CONV_ATTRS: dict[str, Attr] = {
    "auto_pad": "NOTSET",
    "channels_last": 0,
    "dilations": None,
    "group": 1,
    "kernel_shape": None,
    "pads": None,
    "strides": None,
}


def _products(left: str, right: str) -> str:
    return f"acc += (uint32_t){left} * (uint32_t){right};"


# Convolutions


def _conv(call: Call) -> Call:
    return inner_call(call, "Conv", ("x", "w"), inner_attrs(call, "Conv"))


def _conv_domain(call: Call) -> Domain:
    inner = _conv(call)
    feature, features = inner.domain().access["W"][0], call.shape("w")[0]
    lanes = ("w_scale", "w_zero_point", "B")
    more = {name: lane_access(call, name, feature, features) for name in lanes if call.has(name)}
    more |= scalar_access(call, "x_scale", "x_zero_point", "y_scale", "y_zero_point")
    return wrap_domain(call, inner, {"X": "x", "W": "w", "Y": "y"}, more)


def _conv_sum(call: Call, x: Array, w: Array, x_zero: Array | None, w_zero: Array | None) -> Array:
    inner = _conv(call)
    weights = centred(w, w_zero if w_zero is None or w_zero.size == 1 else w_zero.reshape(-1, *(1,) * (w.ndim - 1)))
    return np.asarray(inner.op.reference(inner, centred(x, x_zero), weights))


def _conv_check(call: Call) -> tuple[int, ...]:
    need_narrow(call, "x", "w")
    need_own_zero(call, ("x", "x_zero_point"), ("w", "w_zero_point"))
    need_scalar(call, "x_zero_point", "x_scale", "y_scale", "y_zero_point")
    return _conv(call).outputs[0].shape


def _conv_integer(call: Call, x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None) -> Array:
    return _conv_sum(call, x, w, x_zero, w_zero)


def _conv_update(call: Call) -> str:
    return _products(centred_c(call, "x", "x_zero_point"), centred_c(call, "w", "w_zero_point"))


declare(
    Operator(
        "ConvInteger",
        "x w x_zero_point? w_zero_point?",
        "y",
        lambda call: (TensorType(INT32, _conv_check(call)),),
        _conv_domain,
        _conv_integer,
        (
            example("uint8[1,2,5,5]", "uint8[3,2,3,3]", u8(120), pads=(1, 1, 1, 1)),
            example("uint8[1,2,5,5]", "int8[3,2,3,3]", u8(120), s8([3, -4, 5]), strides=(2, 2)),
            example("int8[1,4,6]", "int8[4,2,3]", group=2, dilations=(2,)),
        ),
        MappingProxyType(CONV_ATTRS),
        "reduce",
        lambda call: Body(MappingProxyType({"y": "acc"}), (SUM,), _conv_update(call)),
        doc="A convolution of integers without their zero points; the result is int32.",
    )
)


def _infer_qlinear_conv(call: Call) -> tuple[TensorType, ...]:
    shape = _conv_check(call)
    if call.has("B") and call.type("B").dtype != INT32:
        raise call.error("type-mismatch", f"B must be int32, found {call.type('B').dtype}")
    need_narrow(call, "y_zero_point")
    return (TensorType(call.type("y_zero_point").dtype, shape),)


def _qlinear_conv(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    w: Array,
    w_scale: Array,
    w_zero: Array,
    y_scale: Array,
    y_zero: Array,
    B: Array | None = None,
) -> Array:
    total = _conv_sum(call, x, w, x_zero, w_zero)
    lanes = [1] * total.ndim
    lanes[-1 if call.int("channels_last") else 1] = -1
    total = total if B is None else total + B.reshape(lanes)
    scale = x_scale.astype(np.float32).reshape(()) * w_scale.astype(np.float32).reshape(lanes)
    scale = scale / y_scale.astype(np.float32).reshape(())
    return quantised(total.astype(np.int32).astype(np.float32) * scale, y_zero, call.type("y").dtype)


def _qlinear_conv_body(call: Call) -> Body:
    total = "(int32_t)(acc + (uint32_t)B)" if call.has("B") else "(int32_t)acc"
    scaled = f"(float){total} * (x_scale * w_scale / y_scale)"
    result = quantised_c(scaled, optional(call, "y_zero_point"), call.type("y").dtype)
    return Body(MappingProxyType({"y": result}), (SUM,), _conv_update(call))


declare(
    Operator(
        "QLinearConv",
        "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B?",
        "y",
        _infer_qlinear_conv,
        _conv_domain,
        _qlinear_conv,
        (
            example(
                "uint8[1,2,5,5]", f32(0.02), u8(120), "uint8[3,2,3,3]", f32(0.01), u8(99),
                f32(0.13), u8(128), pads=(1, 1, 1, 1),
            ),
            example(
                "int8[1,2,5,5]", f32([0.02]), s8([3]), "int8[3,2,3,3]",
                f32([0.01, 0.02, 0.03]), np.zeros(3, np.int8), f32(0.9), s8(-5), "int32[3]",
                strides=(2, 1),
            ),
            example(
                "uint8[1,6,4]", f32(0.02), u8(7), "int8[4,2,3]", f32(0.01), s8(0),
                f32(0.1), u8(128), group=2, channels_last=1,
            ),
        ),
        MappingProxyType(CONV_ATTRS),
        "reduce",
        _qlinear_conv_body,
        doc="A convolution of quantised tensors; x_zero_point pads, w_scale may have one value per output channel.",
    )
)  # fmt: skip


# Matrix products


def _zero_access(
    call: Call, operand: str, matrix: tuple[int, ...], axes: tuple[Axis, ...], lane: int
) -> tuple[Axis, ...]:
    """The access map of a matrix's scale or zero point: one value, a vector along axis `lane`, or a tensor."""
    shape = call.shape(operand)
    if call.type(operand).size == 1 or len(shape) == 1:
        lane = min(max(lane, -len(matrix)), -1)
        return lane_access(call, operand, axes[lane], matrix[lane])
    if len(shape) != len(matrix) or any(e not in (1, m) for e, m in zip(shape, matrix, strict=True)):
        raise call.error("shape-mismatch", f"{operand} {list(shape)} does not broadcast to {list(matrix)}")
    return tuple(axis if extent > 1 else at(0) for extent, axis in zip(shape, axes, strict=True))


def _row_values(values: Array | None, matrix: Array) -> Array | None:
    """A vector of the left matrix belongs to its rows."""
    if values is None or values.ndim != 1 or values.size == 1 or matrix.ndim < 2:
        return values
    return values.reshape(-1, 1)


def _matmul_domain(call: Call, left: str, right: str, output: str) -> Domain:
    inner = inner_call(call, "MatMul", (left, right), {})
    base = inner.domain()
    more: dict[str, tuple[Axis, ...]] = {}
    for side, lane, operand in ((left, -2, "A"), (right, -1, "B")):
        prefix = side.lower()
        for name in (f"{prefix}_scale", f"{prefix}_zero_point"):
            if call.has(name):
                more[name] = _zero_access(call, name, call.shape(side), base.access[operand], lane)
    if call.has("bias"):
        more["bias"] = lane_access(call, "bias", base.access["B"][-1], call.shape(right)[-1])
    more |= scalar_access(call, "y_scale", "y_zero_point")
    return wrap_domain(call, inner, {"A": left, "B": right, "Y": output}, more)


def _matmul_sum(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None) -> Array:
    return np.matmul(centred(a, _row_values(a_zero, a)), centred(b, b_zero)).astype(np.int32)


def _matmul_shape(call: Call, left: str, right: str) -> tuple[int, ...]:
    need_narrow(call, left, right, "y_zero_point")
    need_own_zero(call, (left, "a_zero_point"), (right, "b_zero_point"))
    need_scalar(call, "y_scale", "y_zero_point")
    return inner_call(call, "MatMul", (left, right), {}).outputs[0].shape


def _matmul_update(call: Call, left: str, right: str) -> str:
    return _products(centred_c(call, left, "a_zero_point"), centred_c(call, right, "b_zero_point"))


def _matmul_integer(_call: Call, A: Array, B: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
    return _matmul_sum(A, B, a_zero, b_zero)


declare(
    Operator(
        "MatMulInteger",
        "A B a_zero_point? b_zero_point?",
        "Y",
        lambda call: (TensorType(INT32, _matmul_shape(call, "A", "B")),),
        lambda call: _matmul_domain(call, "A", "B", "Y"),
        _matmul_integer,
        (
            example("uint8[4,3]", "uint8[3,2]", u8(12), u8(0)),
            example("uint8[2,4,3]", "int8[3,2]", u8(12), s8([3, -4])),
            example("int8[4,3]", "int8[3,2]", s8([3, -4, 5, 6])),
            example("int8[2,4,3]", "int8[2,3,2]", np.full((2, 4, 1), 3, np.int8), np.full((2, 1, 2), 5, np.int8)),
            example("int8[5]", "int8[5,3]"),
        ),
        kind="reduce",
        body=lambda call: Body(MappingProxyType({"Y": "acc"}), (SUM,), _matmul_update(call, "A", "B")),
        doc="A matrix product of integers without their zero points; the result is int32.",
    )
)


def _qlinear_matmul(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    y_scale: Array,
    y_zero: Array,
) -> Array:
    rows = _row_values(a_scale, a)
    assert rows is not None
    scale = rows.astype(np.float32) * b_scale.astype(np.float32) / y_scale.astype(np.float32)
    return quantised(_matmul_sum(a, b, a_zero, b_zero).astype(np.float32) * scale, y_zero, call.type("y").dtype)


def _qlinear_matmul_body(call: Call) -> Body:
    scaled = "(float)(int32_t)acc * (a_scale * b_scale / y_scale)"
    result = quantised_c(scaled, "y_zero_point", call.type("y").dtype)
    return Body(MappingProxyType({"y": result}), (SUM,), _matmul_update(call, "a", "b"))


declare(
    Operator(
        "QLinearMatMul",
        "a a_scale a_zero_point b b_scale b_zero_point y_scale y_zero_point",
        "y",
        lambda call: (TensorType(call.type("y_zero_point").dtype, _matmul_shape(call, "a", "b")),),
        lambda call: _matmul_domain(call, "a", "b", "y"),
        _qlinear_matmul,
        (
            example(
                "uint8[2,4]", f32(0.0066), u8(113), "uint8[4,3]", f32(0.00705), u8(114),
                f32(0.0107), u8(118),
            ),
            example(
                "int8[2,2,4]", f32([0.0066]), s8([11]), "int8[2,4,3]", f32([0.007]),
                s8([-14]), f32([0.0107]), s8([18]),
            ),
            example(
                "uint8[2,4]", f16(0.0066), u8(113), "int8[4,3]", f16([0.007, 0.005, 0.01]),
                s8([1, 2, 3]), f16(0.02), u8(118),
            ),
        ),
        kind="reduce",
        body=_qlinear_matmul_body,
        doc="A matrix product of quantised tensors, quantised again.",
    )
)  # fmt: skip


def _real_type(call: Call, left: str, right: str) -> tuple[TensorType, ...]:
    return (TensorType(FLOAT32, _matmul_shape(call, left, right)),)


def _to_float(
    _call: Call,
    A: Array,
    B: Array,
    a_scale: Array,
    b_scale: Array,
    a_zero: Array | None = None,
    b_zero: Array | None = None,
    bias: Array | None = None,
) -> Array:
    rows = _row_values(a_scale, A)
    assert rows is not None
    scaled = _matmul_sum(A, B, a_zero, b_zero).astype(np.float64) * (rows * b_scale)
    return scaled if bias is None else scaled + bias


def _to_float_body(call: Call) -> Body:
    result = "(float)(int32_t)acc * (a_scale * b_scale)" + (" + bias" if call.has("bias") else "")
    return Body(MappingProxyType({"Y": result}), (SUM,), _matmul_update(call, "A", "B"))


declare(
    Operator(
        "MatMulIntegerToFloat",
        "A B a_scale b_scale a_zero_point? b_zero_point? bias?",
        "Y",
        lambda call: _real_type(call, "A", "B"),
        lambda call: _matmul_domain(call, "A", "B", "Y"),
        _to_float,
        (
            example("uint8[4,3]", "int8[3,2]", f32(0.02), f32(0.03), u8(12), s8(3), "float32[2]"),
            example("int8[2,4,3]", "int8[3,2]", f32(0.02), f32([0.03, 0.05])),
        ),
        kind="reduce",
        body=_to_float_body,
        doc="A matrix product of quantised tensors as real numbers, plus a bias.",
    )
)
