"""GroupNormalization: groups of channels brought to mean 0 and variance 1."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Operator, declare, example
from tilewright.ops.normalization import check_float


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, groups = check_float(call, "X"), call.int("num_groups")
    if x.rank < 2 or groups < 1 or x.shape[1] % groups:
        raise call.error("shape-mismatch", f"X {x} needs channels on axis 1 that {groups} groups divide")
    for name in ("scale", "bias"):
        if call.shape(name) != (x.shape[1],):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs one value per channel, {x.shape[1]}")
    return (x,)


def _domain(call: Call) -> Domain:
    shape, groups = call.shape("X"), call.int("num_groups")
    spatial = [f"S{i}" for i in range(len(shape) - 2)]
    channels = shape[1] // groups
    channel = dim("G") * channels + dim("C")
    full: list[Axis] = [dim("N"), channel, *(dim(name) for name in spatial)]
    access: dict[str, list[Axis]] = {"X": full, "scale": [channel], "bias": [channel], "Y": full}
    sizes = {"N": shape[0], "G": groups, "C": channels, **dict(zip(spatial, shape[2:], strict=True))}
    return domain(
        sizes,
        access,
        {name: call.shape(name) for name in access},
        "Y",
        whole=" ".join(["C", *spatial]),
        products={"OUTER": ["N", "G"], "AXIS": ["C", *spatial], "PIXELS": spatial},
    )


def _reference(call: Call, X: Array, scale: Array, bias: Array) -> Array:
    rows = X.astype(np.float64).reshape(X.shape[0], call.int("num_groups"), -1)
    centred = rows - rows.mean(axis=-1, keepdims=True)
    result = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + call.float("epsilon"))
    lanes = (-1, *(1,) * (X.ndim - 2))
    return result.reshape(X.shape) * scale.astype(np.float64).reshape(lanes) + bias.astype(np.float64).reshape(lanes)


declare(
    Operator(
        "GroupNormalization",
        "X scale bias",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,4,3,5]", "float32[4]", "float32[4]", num_groups=2),
            example("float32[2,6,7]", "float32[6]", "float32[6]", num_groups=3, epsilon=0.1),
            example("float64[1,4,3]", "float64[4]", "float64[4]", num_groups=1),
            example("float32[2,3,4,5]", "float32[3]", "float32[3]", num_groups=3),
        ),
        MappingProxyType({"epsilon": 1e-5, "num_groups": REQUIRED, "stash_type": 1}),
    )
)
