"""Trilu: the upper or lower triangle of matrices, zero elsewhere."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import first, grid


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("input")
    if data.rank < 2:
        raise call.error("shape-mismatch", f"{data} holds no matrices")
    if call.has("k") and call.type("k").size != 1:
        raise call.error("shape-mismatch", f"k must hold one number, found {call.type('k')}")
    return (data,)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("input"))
    maps = {"input": [*access], "k": first(call.shape("k")) if call.has("k") else [], "output": [*access]}
    kept = {name: axes for name, axes in maps.items() if name != "k" or call.has("k")}
    return domain(sizes, kept, {name: call.shape(name) for name in kept}, "output")


def _reference(call: Call, input: Array, k: Array | None = None) -> Array:
    diagonal = 0 if k is None else int(k.reshape(-1)[0])
    return np.triu(input, diagonal) if call.int("upper") else np.tril(input, diagonal)


def _body(call: Call) -> Body:
    rank = call.type("input").rank
    kept = f"D{rank - 1} - D{rank - 2} {'>=' if call.int('upper') else '<='} {'k' if call.has('k') else '0'}"
    return Body(MappingProxyType({"output": f"{kept} ? input : 0"}))


declare(
    Operator(
        "Trilu",
        "input k?",
        "output",
        _infer,
        _domain,
        _reference,
        (
            example("float32[4,5]"),
            example("float32[2,4,3]", np.array(-1), upper=0),
            example("int8[3,5]", [2], upper=0),
            example("int64[3,3]", np.array(-7)),
        ),
        MappingProxyType({"upper": 1}),
        body=_body,
    )
)
