"""Root-mean-square normalisations: RMSNormalization and SimplifiedLayerNormalization."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, Operator, declare, example
from tilewright.ops.normalization import check_float, check_scale, normalized_axis, statistics_type, trailing_domain


def _rms(X: Array, scale: Array, axis: int, epsilon: float) -> tuple[Array, Array]:
    """The normalised rows and the reciprocals they were multiplied by."""
    wide = X.astype(np.float64)
    axes = tuple(range(axis, X.ndim))
    inverse = 1 / np.sqrt(np.square(wide).mean(axis=axes, keepdims=True) + epsilon)
    return wide * inverse * scale.astype(np.float64), inverse


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, axis = check_float(call, "X"), normalized_axis(call, "X")
    check_scale(call, "scale", x.shape[axis:])
    row = TensorType(statistics_type(x.dtype), (*x.shape[:axis], *(1,) * (x.rank - axis)))
    return (x, row)[: call.wanted]


def _domain(call: Call) -> Domain:
    return trailing_domain(call, normalized_axis(call, "X"), ("X", "Y"), ("scale",), ("inv_std_var",))


def _reference(call: Call, X: Array, scale: Array) -> tuple[Array, ...]:
    return _rms(X, scale, normalized_axis(call, "X"), call.float("epsilon"))[: call.wanted]


declare(
    Operator(
        "RMSNormalization",
        "X scale",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[3,4,8]", "float32[8]"),
            example("float32[3,4,8]", "float32[4,8]", axis=1, epsilon=0.1),
            example("float64[3,5]", "float64[5]"),
        ),
        MappingProxyType({"axis": -1, "epsilon": 1e-5, "stash_type": 1}),
        doc="X / sqrt(mean(X^2) + epsilon) * scale over the axes from `axis` on.",
    )
)

declare(
    Operator(
        "SimplifiedLayerNormalization",
        "X scale",
        "Y inv_std_var?",
        _infer,
        _domain,
        _reference,
        (
            example("float32[3,4,8]", "float32[8]"),
            example("float32[3,4,8]", "float32[8]", wanted=2),
            example("float64[3,5]", "float64[5]"),
        ),
        MappingProxyType({"axis": -1, "epsilon": 1e-5, "stash_type": 1}),
        doc="RMSNormalization under an older name, with the reciprocals as a second output.",
    )
)
