"""LRN: each element divided by a power of the squares around it along the channels."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, axis_names, dim, domain
from tilewright.core.graph import Array
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.rules import expression, float_type, number


def _domain(call: Call) -> Domain:
    shape = call.shape("X")
    if len(shape) < 2:
        raise call.error("shape-mismatch", f"X needs a channel axis, found {call.type('X')}")
    if call.int("size") < 1:
        raise call.error("bad-attribute", f"size={call.int('size')} must be positive")
    names = list(axis_names(len(shape)))
    names[1] = "C"
    written: list[Axis] = [dim(name) for name in names]
    read: list[Axis] = [*written]
    read[1] = dim("C") + dim("K") - (call.int("size") - 1) // 2
    sizes = {**dict(zip(names, shape, strict=True)), "K": call.int("size")}
    return domain(sizes, {"X": read, "Y": written}, {"X": shape, "Y": shape}, "Y")


def _reference(call: Call, X: Array) -> Array:
    size, channels = call.int("size"), X.shape[1]
    before = (size - 1) // 2
    squares = np.pad(X.astype(np.float64) ** 2, [(0, 0), (before, size - 1 - before), *[(0, 0)] * (X.ndim - 2)])
    total = sum((squares[:, k : k + channels] for k in range(size)), np.zeros(X.shape))
    return X / (call.float("bias") + call.float("alpha") / size * total) ** call.float("beta")


def _body(call: Call) -> Body:
    kind = call.outputs[0].dtype
    scale = number(call.float("alpha") / call.int("size"), kind)
    base = f"{number(call.float('bias'), kind)} + {scale} * acc"
    return Body(
        MappingProxyType({"Y": expression(call, f"centre * pow{{f}}({base}, {number(-call.float('beta'), kind)})")}),
        ((kind.compute, "acc", "0"), (kind.compute, "centre", "0")),
        f"acc += X * X;\nif (K == {(call.int('size') - 1) // 2}) centre = X;",
    )


declare(
    Operator(
        "LRN",
        "X",
        "Y",
        float_type,
        _domain,
        _reference,
        (
            example("float32[2,7,3,2]", size=3),
            example("float32[1,5,4]", size=4, alpha=0.01, beta=0.5, bias=2.0),
            example("float64[1,5,4]", size=5),
        ),
        MappingProxyType({"alpha": 0.0001, "beta": 0.75, "bias": 1.0, "size": REQUIRED}),
        "reduce",
        _body,
    )
)
