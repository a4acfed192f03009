"""Dropout as inference runs it: the input itself, and a mask that keeps everything."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Domain, domain
from tilewright.core.dtype import BOOL
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import grid


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    if call.has("training_mode") and bool(call.value("training_mode").reshape(-1)[0]):
        ratio = float(call.value("ratio").reshape(-1)[0]) if call.has("ratio") else 0.5
        if ratio:
            raise call.error("training", f"training_mode drops elements at random with ratio {ratio}", help="export it for inference")
    return (data, data.with_dtype(BOOL))[: max(1, call.wanted)]


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("data"))
    names = ["data", *call.op.output_names(len(call.outputs))]
    shapes = dict.fromkeys(names, call.shape("data"))
    return domain(sizes, dict.fromkeys(names, access), shapes, " ".join(names[1:]), products={"SIZE": [*sizes]})


def _reference(_: Call, data: Array, *__: Array | None) -> tuple[Array, Array]:
    return data, np.ones(data.shape, np.bool_)


declare(
    Operator(
        "Dropout",
        "data ratio? training_mode?",
        "output mask?",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,3]"),
            example("float32[2,3]", np.array(0.5, np.float32), np.array(False), wanted=2),
            example("float32[4]", np.array(0.0, np.float32), np.array(True)),
        ),
        MappingProxyType({"seed": None}),
        "elementwise",
        lambda _: Body(MappingProxyType({"output": "data", "mask": "1"})),
        frozenset({"ratio", "training_mode"}),
        doc=__doc__ or "",
    )
)
