"""GroupNormalization and InstanceNormalization: groups of channels brought to mean 0 and variance 1."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Operator, declare, example
from tilewright.ops.normalization import check_float


def _infer(call: Call, x_name: str, scales: tuple[str, str], groups: int) -> tuple[TensorType, ...]:
    x = check_float(call, x_name)
    if x.rank < 2 or groups < 1 or x.shape[1] % groups:
        raise call.error("shape-mismatch", f"{x_name} {x} needs channels on axis 1 that {groups} groups divide")
    for name in scales:
        if call.shape(name) != (x.shape[1],):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs one value per channel, {x.shape[1]}")
    return (x,)


def _domain(call: Call, operands: tuple[str, str], scales: tuple[str, str], groups: int) -> Domain:
    shape = call.shape(operands[0])
    spatial = [f"S{i}" for i in range(len(shape) - 2)]
    channels = shape[1] // groups
    channel = dim("G") * channels + dim("C")
    full: list[Axis] = [dim("N"), channel, *(dim(name) for name in spatial)]
    access: dict[str, list[Axis]] = {operands[0]: full, scales[0]: [channel], scales[1]: [channel], operands[1]: full}
    sizes = {"N": shape[0], "G": groups, "C": channels, **dict(zip(spatial, shape[2:], strict=True))}
    return domain(
        sizes,
        access,
        {name: call.shape(name) for name in access},
        operands[1],
        whole=" ".join(["C", *spatial]),
        products={"OUTER": ["N", "G"], "AXIS": ["C", *spatial], "PIXELS": spatial},
    )


def _normalize(call: Call, X: Array, scale: Array, bias: Array, groups: int) -> Array:
    rows = X.astype(np.float64).reshape(X.shape[0], groups, -1)
    centred = rows - rows.mean(axis=-1, keepdims=True)
    result = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + call.float("epsilon"))
    lanes = (-1, *(1,) * (X.ndim - 2))
    return result.reshape(X.shape) * scale.astype(np.float64).reshape(lanes) + bias.astype(np.float64).reshape(lanes)


def _group_infer(call: Call) -> tuple[TensorType, ...]:
    return _infer(call, "X", ("scale", "bias"), call.int("num_groups"))


def _group_domain(call: Call) -> Domain:
    return _domain(call, ("X", "Y"), ("scale", "bias"), call.int("num_groups"))


def _group_reference(call: Call, X: Array, scale: Array, bias: Array) -> Array:
    return _normalize(call, X, scale, bias, call.int("num_groups"))


declare(
    Operator(
        "GroupNormalization",
        "X scale bias",
        "Y",
        _group_infer,
        _group_domain,
        _group_reference,
        (
            example("float32[2,4,3,5]", "float32[4]", "float32[4]", num_groups=2),
            example("float32[2,6,7]", "float32[6]", "float32[6]", num_groups=3, epsilon=0.1),
            example("float64[1,4,3]", "float64[4]", "float64[4]", num_groups=1),
        ),
        MappingProxyType({"epsilon": 1e-5, "num_groups": REQUIRED, "stash_type": 1}),
        doc=__doc__ or "",
    )
)


def _instance_infer(call: Call) -> tuple[TensorType, ...]:
    rank = call.type("input").rank
    return _infer(call, "input", ("scale", "B"), call.shape("input")[1] if rank > 1 else 0)


def _instance_domain(call: Call) -> Domain:
    return _domain(call, ("input", "output"), ("scale", "B"), call.shape("input")[1])


def _instance_reference(call: Call, X: Array, scale: Array, B: Array) -> Array:
    return _normalize(call, X, scale, B, X.shape[1])


declare(
    Operator(
        "InstanceNormalization",
        "input scale B",
        "output",
        _instance_infer,
        _instance_domain,
        _instance_reference,
        (
            example("float32[2,3,4,5]", "float32[3]", "float32[3]"),
            example("float32[2,3,7]", "float32[3]", "float32[3]", epsilon=0.1),
            example("float64[1,2,6]", "float64[2]", "float64[2]"),
        ),
        MappingProxyType({"epsilon": 1e-5}),
        doc=__doc__ or "",
    )
)
