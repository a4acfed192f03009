"""Expand and Tile: a tensor repeated, by broadcasting or end to end."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Affine, Axis, Domain, at, dim, domain, elementwise
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import integers, minor_dims
from tilewright.ops.rules import broadcast


def _infer_expand(call: Call) -> tuple[TensorType, ...]:
    data = call.type("input")
    return (data.with_shape(broadcast(call, data.shape, integers(call, "shape"))),)


def _expand_domain(call: Call) -> Domain:
    return elementwise(call.shape("output"), {"input": call.shape("input")}, "output")


def _infer_tile(call: Call) -> tuple[TensorType, ...]:
    data = call.type("input")
    repeats = integers(call, "repeats")
    if len(repeats) != data.rank or min(repeats, default=0) < 0:
        raise call.error("shape-mismatch", f"repeats {list(repeats)} must be one count per axis of {data}")
    return (data.with_shape(e * r for e, r in zip(data.shape, repeats, strict=True)),)


def _tile_domain(call: Call) -> Domain:
    """Each repeated axis has two loops, over the copies and inside a copy, so that both sides are affine."""
    sizes: dict[str, int] = {}
    source: list[Axis] = []
    target: list[Affine] = []
    for i, (extent, repeat) in enumerate(zip(call.shape("input"), integers(call, "repeats"), strict=True)):
        inner, copy = dim(f"D{i}"), dim(f"R{i}")
        if repeat != 1:
            sizes[f"R{i}"] = repeat
        if extent != 1 or repeat == 1:
            sizes[f"D{i}"] = extent
        source.append(inner if f"D{i}" in sizes else at(0))
        parts = [part for name, part in ((f"R{i}", copy * extent), (f"D{i}", inner)) if name in sizes]
        target.append(sum(parts, Affine()))
    shapes = {"input": call.shape("input"), "output": call.shape("output")}
    whole = " ".join(minor_dims(target))
    return domain(sizes, {"input": source, "output": target}, shapes, "output", whole=whole)


def _body(_: Call) -> Body:
    return Body(MappingProxyType({"output": "input"}))


def _expand(call: Call, input: Array, _: Array) -> Array:
    return np.broadcast_to(input, call.outputs[0].shape)


def _tile(_: Call, input: Array, repeats: Array) -> Array:
    return np.tile(input, [int(r) for r in repeats])


declare(
    Operator(
        "Expand",
        "input shape",
        "output",
        _infer_expand,
        _expand_domain,
        _expand,
        (
            example("float32[3,1]", [2, 1, 6]),
            example("float32[3,4]", [1, 1]),
            example("int8[1]", [4, 2]),
            example("float32[]", [3]),
            example("float32[]", np.zeros(0, np.int64)),
        ),
        kind="move",
        body=_body,
        compile_time=frozenset({"shape"}),
    )
)
declare(
    Operator(
        "Tile",
        "input repeats",
        "output",
        _infer_tile,
        _tile_domain,
        _tile,
        (
            example("float32[2,3]", [2, 3]),
            example("int8[4,1,2]", [1, 3, 2]),
            example("float16[3]", [1]),
            example("bool[1,2]", [2, 1]),
        ),
        kind="move",
        body=_body,
        compile_time=frozenset({"repeats"}),
    )
)
