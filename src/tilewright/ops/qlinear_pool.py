"""QLinearAveragePool, QLinearGlobalAveragePool, QLinearConcat and QLinearSoftmax: quantised in, quantised out."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32
from tilewright.core.domain import Domain
from tilewright.core.graph import Array, Attr, Attrs, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Example, Operator, declare, example
from tilewright.ops.quantized_rules import (
    centred_c,
    dequantised,
    f32,
    inner_attrs,
    inner_call,
    need_narrow,
    need_own_zero,
    need_scalar,
    optional,
    quantised,
    quantised_c,
    renamed,
    s8,
    scalar_access,
    u8,
    wrap_domain,
)
from tilewright.ops.rules import axis_domain

PARAMETERS = ("x_scale", "x_zero_point", "y_scale", "y_zero_point")


def _check(call: Call, value: str, parameters: tuple[str, ...]) -> None:
    need_narrow(call, value, parameters[-1])
    need_own_zero(call, (value, parameters[1]))
    need_scalar(call, *parameters)


def _scalar(array: Array | None) -> Array:
    return np.zeros((), np.int64) if array is None else array.reshape(())


# Pools


def _pool(call: Call, op: str) -> Call:
    """The same pool of real numbers."""
    return inner_call(call, op, ("X",), inner_attrs(call, op), FLOAT32)


def _declare_pool(name: str, op: str, attrs: Attrs, examples: tuple[Example, ...], doc: str) -> None:
    def infer(call: Call) -> tuple[TensorType, ...]:
        _check(call, "X", PARAMETERS)
        kind = call.type("y_zero_point" if call.has("y_zero_point") else "X").dtype
        return (_pool(call, op).outputs[0].with_dtype(kind),)

    def area(call: Call) -> Domain:
        return wrap_domain(call, _pool(call, op), {"X": "X", "Y": "Y"}, scalar_access(call, *PARAMETERS))

    def reference(call: Call, X: Array, *rest: Array | None) -> Array:
        x_scale, x_zero, y_scale, y_zero = (_scalar(array) for array in (*rest, None)[:4])
        inner = _pool(call, op)
        mean = np.asarray(inner.op.reference(inner, X.astype(np.float64) - x_zero)).astype(np.float32)
        scale = x_scale.astype(np.float32) / y_scale.astype(np.float32)
        return quantised(mean * scale, y_zero, call.type("Y").dtype)

    def body(call: Call) -> Body:
        plain = _pool(call, op).body
        assert plain is not None
        value = f"(float){centred_c(call, 'X', 'x_zero_point')}"
        scaled = f"({plain.result['Y']}) * (x_scale / y_scale)"
        result = quantised_c(scaled, optional(call, "y_zero_point"), call.type("Y").dtype)
        return Body(MappingProxyType({"Y": result}), plain.state, renamed(plain.update, {"X": value}), plain.constants)

    inputs = "X x_scale x_zero_point? y_scale y_zero_point?"
    declare(Operator(name, inputs, "Y", infer, area, reference, examples, attrs, "reduce", body, doc=doc))


def _pool_example(kind: str, zero: Array, **attrs: Attr) -> Example:
    return Example((kind, f32(0.05), zero, f32(0.0431), zero), MappingProxyType(attrs))


U8, S8 = u8(120), s8([-7])

_declare_pool(
    "QLinearAveragePool",
    "AveragePool",
    MappingProxyType(
        {
            "auto_pad": "NOTSET",
            "ceil_mode": 0,
            "channels_last": 0,
            "count_include_pad": 0,
            "kernel_shape": REQUIRED,
            "pads": None,
            "strides": None,
        }
    ),
    (
        _pool_example("uint8[1,2,6,6]", U8, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
        _pool_example("int8[1,2,6,6]", S8, kernel_shape=(2, 2), pads=(1, 1, 1, 1), count_include_pad=1),
        _pool_example("uint8[1,6,6,3]", U8, kernel_shape=(3, 2), channels_last=1),
    ),
    "The mean over windows of a quantised tensor.",
)
_declare_pool(
    "QLinearGlobalAveragePool",
    "GlobalAveragePool",
    MappingProxyType({"channels_last": 0}),
    (_pool_example("uint8[2,3,4,5]", U8), _pool_example("int8[1,4,4,3]", S8, channels_last=1)),
    "The mean over all pixels of a quantised tensor.",
)


# Concatenation: inputs come as triples of values, scale and zero point


def _tensors(call: Call) -> tuple[str, ...]:
    return call.operands[2::3]


def _concat(call: Call) -> Call:
    return inner_call(call, "Concat", _tensors(call), {"axis": call.int("axis")}, FLOAT32)


def _infer_concat(call: Call) -> tuple[TensorType, ...]:
    if len(call.operands) < 5 or len(call.operands) % 3 != 2:
        raise call.error("missing-input", "inputs must come as triples of values, scale and zero point")
    need_narrow(call, *_tensors(call), "Y_zero_point")
    need_own_zero(call, *zip(_tensors(call), call.operands[4::3], strict=True))
    need_scalar(call, "Y_scale", "Y_zero_point", *call.operands[3::3], *call.operands[4::3])
    return (_concat(call).outputs[0].with_dtype(call.type("Y_zero_point").dtype),)


def _concat_domain(call: Call) -> Domain:
    inner = _concat(call)
    names = dict(zip(inner.operands, _tensors(call), strict=True))
    scalars = scalar_access(call, "Y_scale", "Y_zero_point", *call.operands[3::3], *call.operands[4::3])
    return wrap_domain(call, inner, {**names, inner.op.output_names(1)[0]: "Y"}, scalars)


def _concat_reference(call: Call, Y_scale: Array, Y_zero_point: Array, *rest: Array) -> Array:
    parts = [
        dequantised(values, _scalar(scale), _scalar(zero)) / Y_scale.reshape(()).astype(np.float32)
        for values, scale, zero in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    ]
    return quantised(np.concatenate(parts, axis=call.int("axis")), _scalar(Y_zero_point), call.type("Y").dtype)


def _concat_body(call: Call) -> Body:
    parts: dict[str, str] = {}
    for values, scale, zero in zip(call.operands[2::3], call.operands[3::3], call.operands[4::3], strict=True):
        real = f"((float)({values} - {zero}) * {scale}) / Y_scale"
        parts[values] = quantised_c(real, "Y_zero_point", call.type("Y").dtype)
    return Body(MappingProxyType({"Y": "0"}), inside=MappingProxyType(parts))


declare(
    Operator(
        "QLinearConcat",
        "Y_scale Y_zero_point inputs*",
        "Y",
        _infer_concat,
        _concat_domain,
        _concat_reference,
        (
            example(
                f32(0.05), u8(120), "uint8[2,3]", f32(0.04), u8(100), "uint8[2,5]",
                f32(0.06), u8(130), axis=1,
            ),
            example(
                f32([0.05]), s8([1]), "int8[2,3]", f32([0.04]), s8([5]),
                "int8[1,3]", f32([0.06]), s8([-3]), axis=0,
            ),
        ),
        MappingProxyType({"axis": REQUIRED}),
        "other",
        _concat_body,
        doc="Quantised tensors one behind the other, rescaled to one scale.",
    )
)  # fmt: skip


# Softmax


def _infer_softmax(call: Call) -> tuple[TensorType, ...]:
    _check(call, "X", ("X_scale", "x_zero_point", "y_scale", "y_zero_point"))
    x = call.type("X")
    axis = call.axis("axis", x.rank)
    if call.int("opset") < 13 and axis != x.rank - 1:
        raise call.error("bad-attribute", "before opset 13 the axis must be the last one", help="set opset=13")
    return (x.with_dtype(call.type("y_zero_point").dtype),)


def _softmax_domain(call: Call) -> Domain:
    axis = call.axis("axis", call.type("X").rank)
    base = axis_domain(call, axis)
    access = {**base.access, **scalar_access(call, "X_scale", "x_zero_point", "y_scale", "y_zero_point")}
    shapes = {operand: call.shape(operand) for operand in access}
    return Domain(
        base.dims, MappingProxyType(access), MappingProxyType(shapes), base.outputs, base.whole, base.products
    )


def _softmax(call: Call, X: Array, X_scale: Array, _x_zero: Array | None, y_scale: Array, y_zero: Array) -> Array:
    axis = call.int("axis")
    # The zero point cancels out against the maximum.
    below = X.astype(np.float64) - X.max(axis=axis, keepdims=True)
    powers = np.exp(below * _scalar(X_scale))
    real = (powers / powers.sum(axis=axis, keepdims=True)).astype(np.float32)
    return quantised(real / _scalar(y_scale).astype(np.float32), _scalar(y_zero), call.type("Y").dtype)


declare(
    Operator(
        "QLinearSoftmax",
        "X X_scale x_zero_point? y_scale y_zero_point",
        "Y",
        _infer_softmax,
        _softmax_domain,
        _softmax,
        (
            example("uint8[3,9]", f32(0.05), u8(3), f32(1 / 256), u8(0), axis=-1, opset=13),
            example(
                "int8[2,5,3]", f32([0.02]), s8([3]), f32([1 / 256]),
                s8([-128]), axis=1, opset=13,
            ),
        ),
        MappingProxyType({"axis": -1, "opset": 13}),
        doc="Softmax of a quantised tensor over one axis.",
        numbers=lambda call: {"lowest": call.type("Y").dtype.lo},
    )
)  # fmt: skip
