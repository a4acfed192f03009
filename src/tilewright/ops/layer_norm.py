"""LayerNormalization: rows brought to mean 0 and variance 1, then scaled and shifted."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32, INT8, UINT8
from tilewright.core.domain import Domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, Operator, declare, example
from tilewright.ops.normalization import check_float, check_scale, normalized_axis, statistics_type, trailing_domain


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, axis = call.type("X"), normalized_axis(call, "X")
    # Quantised rows need no scale and zero point: both cancel, but for the scale of epsilon.
    x = x.with_dtype(FLOAT32) if x.dtype in (INT8, UINT8) else check_float(call, "X")
    check_scale(call, "Scale", x.shape[axis:])
    check_scale(call, "B", x.shape[axis:])
    row = TensorType(statistics_type(x.dtype), (*x.shape[:axis], *(1,) * (x.rank - axis)))
    return (x, row, row)[: call.wanted]


def _domain(call: Call) -> Domain:
    return trailing_domain(call, normalized_axis(call, "X"), ("X", "Y"), ("Scale", "B"), ("Mean", "InvStdDev"))


def _reference(call: Call, X: Array, Scale: Array, B: Array | None = None) -> tuple[Array, ...]:
    axes = tuple(range(normalized_axis(call, "X"), X.ndim))
    wide = X.astype(np.float64)
    mean = wide.mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(wide.var(axis=axes, keepdims=True) + call.float("epsilon"))
    scaled = (wide - mean) * inverse * Scale.astype(np.float64)
    return (scaled if B is None else scaled + B.astype(np.float64), mean, inverse)[: call.wanted]


declare(
    Operator(
        "LayerNormalization",
        "X Scale B?",
        "Y Mean? InvStdDev?",
        _infer,
        _domain,
        _reference,
        (
            example("float32[3,4,8]", "float32[8]", "float32[8]"),
            example("float32[3,4,8]", "float32[8]"),
            example("float32[3,4,8]", "float32[4,8]", "float32[4,8]", axis=1, epsilon=0.1),
            example("float32[3,4,8]", "float32[8]", "float32[8]", wanted=3),
            example("float32[2,3,4]", "float32[2,3,4]", axis=0, wanted=2),
            example("float64[3,5]", "float64[5]", "float64[5]"),
            example("int8[3,40]", "float32[40]", "float32[40]", epsilon=0.5),
            example("uint8[3,2,9]", "float32[9]"),
        ),
        MappingProxyType({"axis": -1, "epsilon": 1e-5, "stash_type": 1}),
    )
)
