"""Gemm: `alpha * A @ B + beta * C`, and FusedGemm, the same with an activation behind it.

Some exporters multiply stacks of matrices by it. They are multiplied as MatMul does: `transA` and `transB` swap the
last two axes, the axes before them are broadcast, and C is broadcast to the result.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT32, DType
from tilewright.core.domain import Axis, Domain, at, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.matmul import contraction_body, product_domain, product_type
from tilewright.ops.named_activations import Activation, activation
from tilewright.ops.rules import broadcast, number

ATTRS: dict[str, Attr] = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


def _infer(call: Call) -> tuple[TensorType, ...]:
    a, b = call.shape("A"), call.shape("B")
    if len(a) < 2 or len(b) < 2:
        raise call.error("shape-mismatch", f"A and B must be matrices, found {list(a)} and {list(b)}")
    result = product_type(call)
    if call.has("C") and broadcast(call, call.shape("C"), result.shape) != result.shape:
        raise call.error("shape-mismatch", f"C {call.type('C')} does not broadcast to {list(result.shape)}")
    if not result.dtype.is_float and not all(call.float(name).is_integer() for name in ("alpha", "beta")):
        raise call.error("bad-attribute", "alpha and beta must be whole numbers on integers")
    return (result,)


def _domain(call: Call) -> Domain:
    plain = product_domain(call)
    if not call.has("C"):
        return plain
    shape, result = call.shape("C"), plain.access["Y"]
    added: list[Axis] = [
        at(0) if extent == 1 else axis for extent, axis in zip(shape, result[len(result) - len(shape) :], strict=True)
    ]
    access = {"A": plain.access["A"], "B": plain.access["B"], "C": added, "Y": result}
    return domain(plain.dims, access, {name: call.shape(name) for name in access}, "Y", products=plain.products)


def _reference(call: Call, A: Array, B: Array, C: Array | None = None) -> Array:
    kind = call.outputs[0].dtype
    wide = np.float64 if kind.is_float else np.int64
    left, right = (
        array.swapaxes(-1, -2) if call.int(flag) else array for array, flag in ((A, "transA"), (B, "transB"))
    )
    alpha, beta = wide(call.float("alpha")), wide(call.float("beta"))
    result = alpha * (left.astype(wide) @ right.astype(wide))
    return np.asarray(result if C is None else result + beta * C.astype(wide))


def _factor(call: Call, name: str, kind: DType) -> str:
    """`factor * `, or nothing where it is 1."""
    value = call.float(name)
    if value == 1:
        return ""
    if kind.is_float:
        return f"{number(value, kind)} * "
    return f"(uint{kind.bits}_t)({number(value, kind)}) * "


def _sum(call: Call) -> str:
    kind = call.outputs[0].dtype
    text = f"{_factor(call, 'alpha', kind)}acc"
    if call.has("C"):
        text += f" + {_factor(call, 'beta', kind)}{'' if kind.is_float else f'(uint{kind.bits}_t)'}C"
    return text


def _body(call: Call) -> Body:
    plain = contraction_body(call, "A", "B")
    return Body(MappingProxyType({"Y": _sum(call)}), plain.state, plain.update)


declare(
    Operator(
        "Gemm",
        "A B C?",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[3,5]", "float32[5,4]", "float32[4]"),
            example("float32[5,3]", "float32[4,5]", "float32[3,1]", transA=1, transB=1, alpha=0.25, beta=0.5),
            example("float32[3,5]", "float32[5,4]", "float32[]", beta=2.0),
            example("float32[3,5]", "float32[5,4]", "float32[1,4]"),
            example("float32[3,5]", "float32[5,4]", alpha=0.5),
            example("int8[3,5]", "int8[4,5]", "int32[4]", transB=1),
            example("uint8[3,5]", "int8[5,4]", "int32[3,4]", alpha=2.0, beta=-3.0),
            example("int32[3,5]", "int32[5,4]", "int32[4]"),
            example("float16[3,5]", "float16[5,4]", "float16[4]"),
            example("float64[3,5]", "float64[5,4]", "float64[4]", alpha=0.3),
            example("float32[2,3,5]", "float32[5,4]", "float32[4]"),
            example("float32[2,5,3]", "float32[2,4,5]", "float32[2,3,4]", transA=1, transB=1, beta=0.5),
            example("float32[3,5]", "float32[2,5,4]", "float32[3,4]", alpha=0.5),
            example("float32[2,5,3]", "float32[5,4]", "float32[2,1,1]", transA=1),
            example("int8[2,3,5]", "int8[2,5,4]", "int32[3,1]", alpha=-2.0),
        ),
        MappingProxyType(ATTRS),
        "reduce",
        _body,
    )
)


def _activation(call: Call) -> Activation:
    def given(name: str) -> float | None:
        return None if call.attrs.get(name) is None else call.float(name)

    return activation(call, call.text("activation"), given("activation_alpha"), given("activation_beta"))


def _fused_infer(call: Call) -> tuple[TensorType, ...]:
    result = _infer(call)
    if result[0].dtype == INT32:
        raise call.error("type-mismatch", f"A must be floating point, found {call.type('A')}")
    _activation(call)
    return result


def _fused_reference(call: Call, A: Array, B: Array, C: Array | None = None) -> Array:
    return _activation(call).reference(_reference(call, A, B, C))


def _fused_body(call: Call) -> Body:
    plain, kind = _body(call), call.outputs[0].dtype
    result = _activation(call).c(f"({kind.compute})({_sum(call)})", kind)
    return Body(MappingProxyType({"Y": result}), plain.state, plain.update)


declare(
    Operator(
        "FusedGemm",
        "A B C?",
        "Y",
        _fused_infer,
        _domain,
        _fused_reference,
        (
            example("float32[3,5]", "float32[5,4]", "float32[4]", activation="Relu"),
            example("float32[3,5]", "float32[4,5]", transB=1, activation="LeakyRelu", activation_alpha=0.2),
        ),
        MappingProxyType(
            {**ATTRS, "activation": "", "activation_alpha": None, "activation_beta": None, "activation_gamma": None}
        ),
        "reduce",
        _fused_body,
        doc="Gemm through an activation.",
    )
)
