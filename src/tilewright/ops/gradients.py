"""Gradients that training graphs carry as operators: of cross entropy, softmax, layer normalisation and GELU."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32
from tilewright.core.domain import Axis, Domain, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.integer_rules import point_domain
from tilewright.ops.rules import axis_domain, elementwise, expression, number, one_dtype, split_axis

GELU_SLOPE = 1.702
"""Training graphs approximate GELU by `x * sigmoid(1.702 * x)`."""


def _same_shape(call: Call, *operands: str) -> TensorType:
    first = call.type(operands[0])
    one_dtype(call, operands)
    if not first.dtype.is_float or any(call.shape(operand) != first.shape for operand in operands):
        listed = ", ".join(f"{operand}: {call.type(operand)}" for operand in operands)
        raise call.error("shape-mismatch", f"inputs must be floating point of one shape, found {listed}")
    return first


# Cross entropy


def _infer_cross_entropy(call: Call) -> tuple[TensorType, ...]:
    log_prob, labels = call.type("log_prob"), call.type("labels")
    if log_prob.rank < 2 or labels.shape != (log_prob.shape[0], *log_prob.shape[2:]):
        raise call.error("shape-mismatch", f"labels {labels} do not fit log_prob {log_prob} with classes on axis 1")
    if not labels.dtype.is_integer or not log_prob.dtype.is_float:
        raise call.error(
            "type-mismatch", f"log_prob {log_prob.dtype} must be floating point, labels {labels.dtype} integer"
        )
    if call.text("reduction") not in ("mean", "sum", "none"):
        raise call.error("bad-attribute", f"reduction={call.text('reduction')} is none of mean, sum, none")
    return (log_prob,)


def _cross_entropy_domain(call: Call) -> Domain:
    row = tuple(dim(n) for n in axis_names(call.type("log_prob").rank))
    return point_domain(call, {"log_prob": row, "labels": (row[0], *row[2:])})


def _divisor(call: Call) -> int:
    """Twice the batch for a mean: once from the mean, once from the gradient that comes in, itself a mean."""
    return call.shape("log_prob")[0] ** 2 if call.text("reduction") == "mean" else 1


def _cross_entropy(call: Call, log_prob: Array, labels: Array) -> Array:
    hit = np.moveaxis(np.eye(log_prob.shape[1])[labels], -1, 1)
    return (np.exp(log_prob.astype(np.float64)) - hit) / _divisor(call)


def _cross_entropy_body(call: Call) -> Body:
    text = expression(call, "(tw_exp{f}(log_prob) - (labels == D1 ? 1 : 0)) / divisor")
    kind = call.type("gradient").dtype
    divisor = number(float(_divisor(call)), kind)
    return Body(MappingProxyType({"gradient": text}), constants=((kind.compute, "divisor", divisor),))


declare(
    Operator(
        "SoftmaxCrossEntropyLossGrad",
        "log_prob labels",
        "gradient",
        _infer_cross_entropy,
        _cross_entropy_domain,
        _cross_entropy,
        (
            example("float32[4,3]", [0, 2, 1, 1]),
            example("float32[2,3,2]", np.array([[0, 2], [1, 1]], np.int32), reduction="sum"),
        ),
        MappingProxyType({"reduction": "mean"}),
        "other",
        _cross_entropy_body,
        doc="`(exp(log_prob) - onehot(labels)) / batch^2`; not divided unless the reduction is a mean.",
    )
)


# Softmax


def _softmax_domain(call: Call) -> Domain:
    return axis_domain(call, call.axis("axis", call.type("dy").rank), ("dy", "y"), ("dx",))


def _softmax(call: Call, dy: Array, y: Array) -> Array:
    gradient, value = dy.astype(np.float64), y.astype(np.float64)
    return value * (gradient - (gradient * value).sum(axis=call.int("axis"), keepdims=True))


declare(
    Operator(
        "SoftmaxGrad",
        "dy y",
        "dx",
        lambda call: (_same_shape(call, "dy", "y"),),
        _softmax_domain,
        _softmax,
        (example("float32[4,5]", "float32[4,5]"), example("float32[2,3,4]", "float32[2,3,4]", axis=1)),
        MappingProxyType({"axis": -1}),
        doc="`y * (dy - sum(dy * y))` over one axis, where y is the softmax.",
    )
)


# Layer normalisation


def _infer_layer_norm(call: Call) -> tuple[TensorType, ...]:
    x = _same_shape(call, "dy", "x")
    for operand in ("weight", "bias"):
        if call.has(operand) and call.shape(operand) != x.shape[-1:]:
            raise call.error("shape-mismatch", f"{operand} must have {x.shape[-1:]} values, found {call.type(operand)}")
    if call.axis("axis", x.rank) != x.rank - 1:
        raise call.error("bad-attribute", "only the last axis can be normalised")
    return (x,)


def _layer_norm_domain(call: Call) -> Domain:
    shape = call.shape("x")
    names, products = split_axis(len(shape), len(shape) - 1)
    row: tuple[Axis, ...] = tuple(dim(n) for n in names)
    vectors = {operand: (dim("AXIS"),) for operand in ("weight", "bias") if call.has(operand)}
    access = {"dy": row, "x": row, **vectors, "dx": row}
    return Domain(
        MappingProxyType(dict(zip(names, shape, strict=True))),
        MappingProxyType(access),
        MappingProxyType({operand: call.shape(operand) for operand in access}),
        ("dx",),
        frozenset({"AXIS"}),
        MappingProxyType(products),
    )


def _layer_norm(call: Call, dy: Array, x: Array, weight: Array, _bias: Array | None = None) -> Array:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + call.float("epsilon"))
    normal, gradient = centred * inverse, dy.astype(np.float64) * weight
    along = (gradient * normal).mean(axis=-1, keepdims=True)
    return inverse * (gradient - gradient.mean(axis=-1, keepdims=True) - normal * along)


declare(
    Operator(
        "LayerNormalizationGrad",
        "dy x weight bias?",
        "dx",
        _infer_layer_norm,
        _layer_norm_domain,
        _layer_norm,
        (
            example("float32[2,3,8]", "float32[2,3,8]", "float32[8]", "float32[8]"),
            example("float32[5,7]", "float32[5,7]", "float32[7]", epsilon=0.01),
        ),
        MappingProxyType({"axis": -1, "epsilon": 1e-5}),
        doc="The gradient of a layer normalisation over the last axis with respect to x.",
    )
)


# GELU


def _gelu(_call: Call, dy: Array, x: Array) -> Array:
    wide = x.astype(np.float64)
    gate = 1 / (1 + np.exp(-GELU_SLOPE * wide))
    return dy * (gate + GELU_SLOPE * wide * gate * (1 - gate))


def _gelu_body(call: Call) -> Body:
    kind = call.outputs[0].dtype
    gate = expression(call, "1 / (1 + tw_exp{f}(-slope * x))")
    return Body(
        MappingProxyType({"dx": "dy * (gate + slope * x * gate * (1 - gate))"}),
        ((kind.compute, "gate", gate),),
        constants=((kind.compute, "slope", number(GELU_SLOPE, kind if kind.compute == "double" else FLOAT32)),),
    )


elementwise(
    "GeluGrad",
    "dy x",
    _gelu,
    _gelu_body,
    infer=lambda call: (_same_shape(call, "dy", "x"),),
    examples=(
        example("float32[4,5]", "float32[4,5]"),
        example("float64[7]", "float64[7]"),
        example("float32[13]", np.linspace(-60, 60, 13).astype(np.float32)),
    ),
    output="dx",
    doc="The derivative of `x * sigmoid(1.702 * x)` times dy.",
)
