"""Softmax over one axis. Narrow integers stand for multiples of `x_scale` and give float32."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32
from tilewright.core.domain import Domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, Operator, declare, example
from tilewright.ops.rules import axis_domain


def _infer(call: Call) -> tuple[TensorType, ...]:
    x = call.type("X")
    return (x if x.dtype.is_float else x.with_dtype(FLOAT32),)


def _domain(call: Call) -> Domain:
    return axis_domain(call, call.axis("axis", call.type("X").rank))


def _reference(call: Call, X: Array) -> Array:
    axis = call.int("axis")
    wide = X.astype(np.float64) * call.float("x_scale")
    powers = np.exp(wide - wide.max(axis=axis, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=axis, keepdims=True)


declare(
    Operator(
        "Softmax",
        "X",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,3,4]"),
            example("float32[2,0]"),
            example("float32[2,3,4]", axis=1),
            example("float32[5]", axis=0),
            example("float64[2,3,4]", axis=1),
            example("int8[2,3,40]", x_scale=0.05),
            example("uint8[2,40]", x_scale=0.01),
        ),
        MappingProxyType({"axis": -1, "x_scale": 1.0}),
        any_length=True,
    )
)
