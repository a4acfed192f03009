"""SkipLayerNormalization and SkipSimplifiedLayerNormalization: a residual sum, normalised."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, at, axis_names, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, Operator, declare, example
from tilewright.ops.normalization import check_float, check_scale, statistics_type
from tilewright.ops.rules import broadcast

OUTPUTS = "output mean? inv_std_var? input_skip_bias_sum?"


def _infer(call: Call) -> tuple[TensorType, ...]:
    x = check_float(call, "input")
    if x.rank < 2 or broadcast(call, x.shape, call.shape("skip")) != x.shape:
        raise call.error("shape-mismatch", f"skip {call.type('skip')} does not broadcast to input {x}")
    skip = call.shape("skip")
    rows = skip[:-1][next((i for i, extent in enumerate(skip[:-1]) if extent > 1), len(skip) - 1) :]
    if skip[-1] != x.shape[-1] or rows != x.shape[x.rank - 1 - len(rows) : -1]:
        raise call.error(
            "shape-mismatch", f"skip {call.type('skip')} may only repeat along the first axes of input {x}"
        )
    for operand in ("gamma", "beta", "bias"):
        check_scale(call, operand, x.shape[-1:])
    row = TensorType(statistics_type(x.dtype), (*x.shape[:-1], 1))
    return (x, row, row, x)[: call.wanted]


def _domain(call: Call) -> Domain:
    shape, skip = call.shape("input"), call.shape("skip")
    names = [*axis_names(len(shape) - 1), "AXIS"]
    every: list[Axis] = [dim(name) for name in names]
    lead = len(shape) - len(skip)
    rows: list[Axis] = [*every[:-1], at(0)]
    every_skip: list[Axis] = [at(0) if extent == 1 else every[lead + i] for i, extent in enumerate(skip)]
    every_skip[-1] = every[-1]
    access: dict[str, list[Axis]] = {"input": every, "skip": every_skip}
    access |= {name: [every[-1]] for name in ("gamma", "beta", "bias") if call.has(name)}
    outputs = call.op.output_names(len(call.outputs))
    access |= {name: rows if name in ("mean", "inv_std_var") else every for name in outputs}
    repeated = [name for i, name in enumerate(names[:-1]) if i >= lead and skip[i - lead] > 1]
    return domain(
        dict(zip(names, shape, strict=True)),
        access,
        {name: call.shape(name) for name in access},
        " ".join(outputs),
        whole="AXIS",
        products={"OUTER": names[:-1], "INNER": [], "SKIP_ROWS": repeated},
    )


def _normalize(call: Call, total: Array, gamma: Array, beta: Array | None, *, centred: bool) -> tuple[Array, ...]:
    mean = total.mean(axis=-1, keepdims=True) if centred else np.zeros((*total.shape[:-1], 1))
    inverse = 1 / np.sqrt(np.square(total - mean).mean(axis=-1, keepdims=True) + call.float("epsilon"))
    scaled = (total - mean) * inverse * gamma.astype(np.float64)
    return (scaled if beta is None else scaled + beta.astype(np.float64), mean, inverse, total)[: call.wanted]


def _sum(X: Array, skip: Array, bias: Array | None) -> Array:
    total = X.astype(np.float64) + skip.astype(np.float64)
    return total if bias is None else total + bias.astype(np.float64)


def _reference(
    call: Call, X: Array, skip: Array, gamma: Array, beta: Array | None = None, bias: Array | None = None
) -> tuple[Array, ...]:
    return _normalize(call, _sum(X, skip, bias), gamma, beta, centred=True)


def _simplified(call: Call, X: Array, skip: Array, gamma: Array, bias: Array | None = None) -> tuple[Array, ...]:
    return _normalize(call, _sum(X, skip, bias), gamma, None, centred=False)


declare(
    Operator(
        "SkipLayerNormalization",
        "input skip gamma beta? bias?",
        OUTPUTS,
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,3,8]", "float32[2,3,8]", "float32[8]", "float32[8]", "float32[8]"),
            example("float32[2,3,8]", "float32[3,8]", "float32[8]", wanted=4),
            example("float32[2,3,8]", "float32[1,3,8]", "float32[8]", "", "float32[8]", epsilon=0.1),
            example("float32[6,8]", "float32[6,8]", "float32[8]", "float32[8]"),
            example("float64[2,3,8]", "float64[2,3,8]", "float64[8]", "float64[8]"),
        ),
        MappingProxyType({"epsilon": 1e-12}),
        doc="Layer normalisation of input + skip + bias.",
    )
)

declare(
    Operator(
        "SkipSimplifiedLayerNormalization",
        "input skip gamma bias?",
        OUTPUTS,
        _infer,
        _domain,
        _simplified,
        (
            example("float32[2,3,8]", "float32[2,3,8]", "float32[8]", "float32[8]"),
            example("float32[2,3,8]", "float32[2,3,8]", "float32[8]", wanted=4),
            example("float64[2,3,8]", "float64[2,3,8]", "float64[8]"),
        ),
        MappingProxyType({"epsilon": 1e-12}),
        doc="Root-mean-square normalisation of input + skip + bias.",
    )
)
