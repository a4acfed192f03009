"""Divisions on integers: IntegerDiv, TrueIntegerDiv by a constant, and the rounded IntegerMean."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT32
from tilewright.core.domain import Axis, Domain, at, axis_names, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.integer_rules import (
    broadcast_access,
    integer_compute,
    magnitude,
    need_integers,
    point_domain,
    power_or_rounded_mean,
    truncating_division,
)
from tilewright.ops.rules import broadcast


def _infer_divide(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, "A", "B")
    return (TensorType(INT32, broadcast(call, call.shape("A"), call.shape("B"))),)


def _divide_domain(call: Call) -> Domain:
    shape = call.shape("Y")
    return point_domain(call, {operand: broadcast_access(call.shape(operand), shape) for operand in ("A", "B")})


def _divide(call: Call, A: Array, B: Array) -> Array:
    delta, eps, eta = call.int("Delta"), call.int("eps"), call.int("eta")
    denominator = eta * B.astype(np.int64) + eps
    numerator = delta * eta * A.astype(np.int64)
    half = np.where(numerator >= 0, 1, -1) * (denominator >> 1)
    return truncating_division(numerator + half, denominator)


def _divide_body(call: Call) -> Body:
    delta, eps, eta = call.int("Delta"), call.int("eps"), call.int("eta")
    return Body(
        MappingProxyType({"Y": "den == 0 ? 0 : den == -1 ? (int64_t)(0 - (uint64_t)rounded) : rounded / den"}),
        # Products and sums are unsigned: huge operands wrap instead of being undefined.
        (
            ("int64_t", "den", "(int64_t)((uint64_t)eta * (uint64_t)B + (uint64_t)eps)"),
            ("int64_t", "nom", "(int64_t)((uint64_t)scale * (uint64_t)A)"),
            ("int64_t", "rounded", "(int64_t)((uint64_t)nom + (uint64_t)(nom >= 0 ? den >> 1 : -(den >> 1)))"),
        ),
        constants=(("int64_t", "scale", str(delta * eta)), ("int64_t", "eta", str(eta)), ("int64_t", "eps", str(eps))),
    )


declare(
    Operator(
        "IntegerDiv",
        "A B",
        "Y",
        _infer_divide,
        _divide_domain,
        _divide,
        (
            example("int32[4,9]", "int32[9]", Delta=16, eps=1, eta=20),
            example("int8[4,9]", "uint8[1]", Delta=16384, eps=1, eta=200000),
            example("int32[20]", "int32[20]", Delta=1, eps=0, eta=1),
        ),
        MappingProxyType({"Delta": REQUIRED, "eps": REQUIRED, "eta": REQUIRED}),
        "elementwise",
        _divide_body,
        doc="`Delta * A / (B + eps / eta)`, rounded to nearest; the result is int32.",
    )
)


def true_divide_factor(call: Call) -> int:
    """What TrueIntegerDiv multiplies by."""
    eta = call.int("eta")
    denominator = call.int("y") * eta + call.int("eps")
    if denominator == 0:
        raise call.error("bad-attribute", "the divisor y * eta + eps is zero")
    return call.int("Delta") * eta // denominator


def _infer_true_divide(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, "A")
    true_divide_factor(call)
    return (call.type("A").with_dtype(INT32),)


def _true_divide_domain(call: Call) -> Domain:
    return point_domain(call, {"A": tuple(dim(n) for n in axis_names(call.type("A").rank))})


def _true_divide(call: Call, A: Array) -> Array:
    return A.astype(np.int64) * true_divide_factor(call)


def _true_divide_body(call: Call) -> Body:
    return Body(
        MappingProxyType({"Y": "(uint32_t)A * factor"}),
        constants=(("uint32_t", "factor", f"{true_divide_factor(call) % (1 << 32)}u"),),
    )


def _true_divide_limit(call: Call, limits: Mapping[str, int]) -> int:
    return limits["A"] * abs(true_divide_factor(call))


declare(
    Operator(
        "TrueIntegerDiv",
        "A",
        "Y",
        _infer_true_divide,
        _true_divide_domain,
        _true_divide,
        (
            example("int8[1,16,8]", Delta=16384, eps=1, eta=200000, y=2),
            example("int32[30]", Delta=1000, eps=1, eta=100, y=-7),
        ),
        MappingProxyType({"Delta": REQUIRED, "eps": REQUIRED, "eta": REQUIRED, "y": REQUIRED}),
        "elementwise",
        _true_divide_body,
        doc="Division by the constant y, as a multiplication by `floor(Delta * eta / (y * eta + eps))`; int32.",
        limit=_true_divide_limit,
    )
)


def _mean_axes(call: Call) -> frozenset[int]:
    rank = call.type("x").rank
    axes = call.ints("axes") or tuple(range(rank))
    if any(not -rank <= axis < rank for axis in axes):
        raise call.error("bad-attribute", f"axes {list(axes)} are outside a tensor of rank {rank}")
    return frozenset(axis % rank for axis in axes)


def _count(call: Call) -> int:
    shape = call.shape("x")
    return int(np.prod([shape[axis] for axis in _mean_axes(call)], dtype=np.int64))


def _infer_mean(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, "x")
    x, axes = call.type("x"), _mean_axes(call)
    if _count(call) == 0:
        raise call.error("shape-mismatch", f"the mean of no elements ({x}) is not an integer")
    kept = call.int("keepdims") != 0
    return (x.with_shape(1 if i in axes else e for i, e in enumerate(x.shape) if kept or i not in axes),)


def _mean_domain(call: Call) -> Domain:
    shape, axes = call.shape("x"), _mean_axes(call)
    names = axis_names(len(shape))
    result: list[Axis] = []
    for axis, name in enumerate(names):
        if axis not in axes:
            result.append(dim(name))
        elif call.int("keepdims"):
            result.append(at(0))
    access = {"x": [dim(n) for n in names], "y": result}
    return domain(dict(zip(names, shape, strict=True)), access, {"x": shape, "y": call.shape("y")}, "y")


def _mean(call: Call, x: Array) -> Array:
    total = np.asarray(x.astype(np.int64).sum(axis=tuple(sorted(_mean_axes(call)))))
    return power_or_rounded_mean(total, _count(call))


def _mean_body(call: Call) -> Body:
    count = _count(call)
    wide = integer_compute(magnitude(call.type("x").dtype) * count + count)
    half = (wide, "half", str(count >> 1))
    if count & (count - 1) == 0:
        result = "(sum + half) >> shift"
        constants = (half, ("int", "shift", str(count.bit_length() - 1)))
    else:
        result = "(sum + (sum < 0 ? -half : half)) / count"
        constants = (half, (wide, "count", str(count)))
    return Body(MappingProxyType({"y": result}), ((wide, "sum", "0"),), f"sum += ({wide})x;", constants)


declare(
    Operator(
        "IntegerMean",
        "x",
        "y",
        _infer_mean,
        _mean_domain,
        _mean,
        (
            example("int8[2,8,3]", axes=(1,), keepdims=0),
            example("int8[2,7,3]", axes=(-2,)),
            example("uint8[3,5,2]"),
            example("int32[2,3,4,5]", axes=(2, 3)),
            example("int32[4,6]", axes=(0, 1), keepdims=0),
        ),
        MappingProxyType({"axes": (), "keepdims": 1}),
        "reduce",
        _mean_body,
        doc="The rounded mean over axes (all without `axes`); powers of two round half up, others half away from zero.",
    )
)
