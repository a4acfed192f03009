"""Element-wise operators on quantised tensors: QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32
from tilewright.core.domain import Axis, Domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Example, Operator, declare, example
from tilewright.ops.integer_rules import broadcast_access, point_domain
from tilewright.ops.quantized_rules import (
    centred,
    centred_c,
    dequantised,
    f32,
    need_narrow,
    need_own_zero,
    need_scalar,
    optional,
    quantised,
    quantised_c,
    s8,
    scalar_access,
    u8,
)
from tilewright.ops.rules import broadcast, number

BINARY = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point?"
UNARY = "X X_scale X_zero_point? Y_scale Y_zero_point?"


def _values(call: Call) -> tuple[str, ...]:
    """The operands that hold values; the others are scales and zero points."""
    return ("A", "B") if "B" in call.operands else ("X",)


def _infer(call: Call) -> tuple[TensorType, ...]:
    values = _values(call)
    zero = "C_zero_point" if "B" in values else "Y_zero_point"
    need_narrow(call, *values, zero)
    need_own_zero(call, *((name, f"{name}_zero_point") for name in values))
    need_scalar(call, *(name for name in call.operands if name not in values))
    kind = call.type(zero if call.has(zero) else values[0]).dtype
    return (TensorType(kind, broadcast(call, *(call.shape(name) for name in values))),)


def _domain(call: Call) -> Domain:
    values, shape = _values(call), call.outputs[0].shape
    access: dict[str, tuple[Axis, ...]] = {name: broadcast_access(call.shape(name), shape) for name in values}
    return point_domain(call, access | scalar_access(call, *(name for name in call.operands if name not in values)))


def _arguments(call: Call, arrays: tuple[Array | None, ...]) -> dict[str, Array]:
    """The arrays of a call by operand name; scales and zero points as scalars, absent zero points as 0."""
    found = dict(zip(call.operands, arrays, strict=False))
    result: dict[str, Array] = {}
    for name in call.op.operand_names(len(call.op.inputs.split())):
        array = found.get(name)
        scalar = (
            np.zeros((), np.int64) if array is None else array.reshape(() if name not in _values(call) else array.shape)
        )
        result[name] = scalar.astype(np.float32) if name.endswith("_scale") else scalar
    return result


def _add(call: Call, *arrays: Array | None) -> Array:
    a = _arguments(call, arrays)
    total = dequantised(a["A"], a["A_scale"], a["A_zero_point"]) + dequantised(a["B"], a["B_scale"], a["B_zero_point"])
    return quantised(total / a["C_scale"], a["C_zero_point"], call.outputs[0].dtype)


def _multiply(call: Call, *arrays: Array | None) -> Array:
    a = _arguments(call, arrays)
    product = centred(a["A"], a["A_zero_point"]) * centred(a["B"], a["B_zero_point"])
    scaled = product.astype(np.float32) * (a["A_scale"] * a["B_scale"] / a["C_scale"])
    return quantised(scaled, a["C_zero_point"], call.outputs[0].dtype)


def _binary(name: str, reference: Callable[..., Array], c: Callable[[str, str], str], doc: str) -> None:
    def body(call: Call) -> Body:
        text = c(centred_c(call, "A", "A_zero_point"), centred_c(call, "B", "B_zero_point"))
        result = quantised_c(text, optional(call, "C_zero_point"), call.outputs[0].dtype)
        return Body(MappingProxyType({"C": result}))

    a, b, out = f32(0.02), f32([0.03]), f32(0.045)
    examples = (
        example("uint8[2,3,4]", a, u8(120), "uint8[3,4]", b, u8([100]), out, u8(128)),
        example("int8[2,3,4]", a, s8(-12), "int8[1]", b, s8([10]), out, s8(5)),
        example("int8[7]", a, "", "int8[7]", b, "", out),
    )
    _declare(name, BINARY, "C", reference, body, examples, {}, doc)


def _declare(
    name: str,
    inputs: str,
    output: str,
    reference: Callable[..., Array],
    body: Callable[[Call], Body],
    examples: tuple[Example, ...],
    attrs: dict[str, Attr],
    doc: str,
) -> None:
    declare(
        Operator(
            name,
            inputs,
            output,
            _infer,
            _domain,
            reference,
            examples,
            MappingProxyType(attrs),
            "elementwise",
            body,
            doc=doc,
        )
    )


_binary(
    "QLinearAdd",
    _add,
    lambda a, b: f"((float){a} * A_scale + (float){b} * B_scale) / C_scale",
    "The sum of quantised tensors, quantised again.",
)
_binary(
    "QLinearMul",
    _multiply,
    lambda a, b: f"(float)({a} * {b}) * (A_scale * B_scale / C_scale)",
    "The product of quantised tensors, quantised again.",
)


def _unary(name: str, function: Callable[..., Array], c: str, attrs: dict[str, Attr], doc: str) -> None:
    def reference(call: Call, *arrays: Array | None) -> Array:
        a = _arguments(call, arrays)
        real = dequantised(a["X"], a["X_scale"], a["X_zero_point"])
        result = function(real, *(np.float32(call.float(key)) for key in attrs)).astype(np.float32)
        return quantised(result / a["Y_scale"], a["Y_zero_point"], call.outputs[0].dtype)

    def body(call: Call) -> Body:
        value = f"(float){centred_c(call, 'X', 'X_zero_point')} * X_scale"
        constants = tuple(("float", key, number(call.float(key), FLOAT32)) for key in attrs)
        result = quantised_c(f"{c} / Y_scale", optional(call, "Y_zero_point"), call.outputs[0].dtype)
        return Body(MappingProxyType({"Y": result}), (("float", "real", value),), constants=constants)

    examples = (
        example("uint8[3,9]", f32(0.05), u8(120), f32(1 / 256), u8(0)),
        example("int8[3,9]", f32([0.05]), s8([-12]), f32([0.03]), s8([-5])),
        example("int8[9]", f32(0.05), "", f32(0.03)),
    )
    _declare(name, UNARY, "Y", reference, body, examples, attrs, doc)


def _sigmoid(real: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-real.astype(np.float64)))


def _leaky(real: Array, alpha: np.float32) -> Array:
    return np.where(real >= 0, real, alpha * real)


_unary("QLinearSigmoid", _sigmoid, "1.0f / (1.0f + tw_expf(-real))", {}, "The logistic function of a quantised tensor.")
_unary(
    "QLinearLeakyRelu",
    _leaky,
    "(real >= 0.0f ? real : alpha * real)",
    {"alpha": 0.01},
    "LeakyRelu of a quantised tensor.",
)
