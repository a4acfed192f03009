"""Softmax over one axis."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Domain
from tilewright.core.graph import Array
from tilewright.core.op import Call, Operator, declare, example
from tilewright.ops.rules import axis_domain, same_type


def _domain(call: Call) -> Domain:
    return axis_domain(call, call.axis("axis", call.type("X").rank))


def _reference(call: Call, X: Array) -> Array:
    axis = call.int("axis")
    wide = X.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


declare(
    Operator(
        "Softmax",
        "X",
        "Y",
        same_type,
        _domain,
        _reference,
        (example("float32[2,3,4]"), example("float32[2,3,4]", axis=1), example("float32[5]", axis=0)),
        MappingProxyType({"axis": -1}),
        doc=__doc__ or "",
    )
)
