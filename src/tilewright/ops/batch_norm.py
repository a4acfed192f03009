"""BatchNormalization: channels brought to mean 0 and variance 1.

The statistics are given or, with training_mode, those of the batch.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, axis_names, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.normalization import check_float
from tilewright.ops.rules import number

SCALES = ("scale", "B", "input_mean", "input_var")


def _infer(call: Call) -> tuple[TensorType, ...]:
    x = check_float(call, "X")
    channels = x.shape[1] if x.rank > 1 else 1
    for name in SCALES:
        if call.shape(name) != (channels,):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs one value per channel, {channels}")
    if call.wanted > 1 and not call.int("training_mode"):
        raise call.error("bad-attribute", "running statistics are only made with training_mode=1")
    return (x, call.type("input_mean"), call.type("input_var"))[: call.wanted]


def _domain(call: Call) -> Domain:
    shape = call.shape("X")
    names = list(axis_names(len(shape)))
    if len(shape) > 1:
        names[1] = "C"
    full: list[Axis] = [dim(name) for name in names]
    sizes = dict(zip(names, shape, strict=True))
    channel: list[Axis] = [dim("C")]
    if len(shape) == 1:
        sizes["C"] = 1
    outputs = call.op.output_names(len(call.outputs))
    access: dict[str, list[Axis]] = {"X": full, **dict.fromkeys(SCALES, channel), **dict.fromkeys(outputs, channel)}
    access["Y"] = full
    others = [name for name in names if name != "C"]
    return domain(
        sizes,
        access,
        {name: call.shape(name) for name in access},
        " ".join(outputs),
        whole=" ".join(others) if call.int("training_mode") else "",
        products={"BATCH": names[:1], "PIXELS": names[2:]},
    )


def _reference(call: Call, X: Array, scale: Array, B: Array, input_mean: Array, input_var: Array) -> tuple[Array, ...]:
    wide = X.astype(np.float64)
    mean, var = input_mean.astype(np.float64), input_var.astype(np.float64)
    running = mean, var
    if call.int("training_mode"):
        axes = tuple(axis for axis in range(X.ndim) if axis != 1)
        momentum, old_mean, old_var = call.float("momentum"), mean, var
        mean, var = wide.mean(axis=axes), wide.var(axis=axes)
        running = old_mean * momentum + mean * (1 - momentum), old_var * momentum + var * (1 - momentum)
    lanes = (-1, *(1,) * (X.ndim - 2))
    factor = scale.astype(np.float64) / np.sqrt(var + call.float("epsilon"))
    result = (wide - mean.reshape(lanes)) * factor.reshape(lanes) + B.astype(np.float64).reshape(lanes)
    return (result, *running)[: call.wanted]


def _body(call: Call) -> Body:
    if call.int("training_mode"):
        types = ", ".join(f"{name}: {call.type(name).dtype}" for name in ("X", *SCALES))
        raise call.error(
            "no-kernel",
            f"training_mode=1 has no kernel for {types}",
            help="cast all of its tensors to float32, or export the network for inference",
        )
    # Statistics may be of another type than the data; the result is cast where it is stored.
    kind = call.type("input_var").dtype
    root = f"sqrt{'f' if kind.compute == 'float' else ''}(input_var + {number(call.float('epsilon'), kind)})"
    return Body(MappingProxyType({"Y": f"(X - input_mean) / {root} * scale + B"}))


VARIANCE = np.array([0.5, 2.0, 1.5])

declare(
    Operator(
        "BatchNormalization",
        "X scale B input_mean input_var",
        "Y running_mean? running_var?",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,3,4,5]", "float32[3]", "float32[3]", "float32[3]", VARIANCE.astype(np.float32)),
            example("float32[4,3]", "float32[3]", "float32[3]", "float32[3]", VARIANCE.astype(np.float32), epsilon=0.1),
            example("float32[2,3]", "float32[3]", "float32[3]", "float64[3]", VARIANCE),
            example("float32[2,3]", "float64[3]", "float64[3]", "float32[3]", VARIANCE.astype(np.float32)),
            example("float64[2,3]", "float32[3]", "float32[3]", "float32[3]", VARIANCE.astype(np.float32)),
            example("float64[2,3,4]", "float64[3]", "float64[3]", "float64[3]", VARIANCE),
            example(
                "float32[2,3,4,5]",
                "float32[3]",
                "float32[3]",
                "float32[3]",
                VARIANCE.astype(np.float32),
                training_mode=1,
                momentum=0.7,
                wanted=3,
            ),
            example("float64[3,3,4]", "float64[3]", "float64[3]", "float64[3]", VARIANCE, training_mode=1),
        ),
        MappingProxyType({"epsilon": 1e-5, "momentum": 0.9, "training_mode": 0}),
        "other",
        _body,
    )
)
