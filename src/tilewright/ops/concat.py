"""Concat: tensors one behind the other along an axis."""

from __future__ import annotations

from itertools import accumulate
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.rules import one_dtype, split_axis


def _infer(call: Call) -> tuple[TensorType, ...]:
    if not call.operands:
        raise call.error("missing-input", "at least one input is required")
    one_dtype(call, call.operands)
    first = call.type(call.operands[0])
    axis = call.axis("axis", first.rank)
    for name in call.operands[1:]:
        other = call.type(name)
        if other.rank != first.rank or any(
            a != b for i, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)) if i != axis
        ):
            raise call.error("shape-mismatch", f"{other} cannot follow {first} along axis {axis}")
    shape = list(first.shape)
    shape[axis] = sum(call.shape(name)[axis] for name in call.operands)
    return (first.with_shape(shape),)


def _domain(call: Call) -> Domain:
    shape = call.shape("concat_result")
    axis = call.axis("axis", len(shape))
    names, products = split_axis(len(shape), axis)
    access: dict[str, list[Axis]] = {}
    offsets = accumulate((call.shape(name)[axis] for name in call.operands), initial=0)
    for operand, offset in zip(call.operands, offsets, strict=False):
        access[operand] = [dim(name) - offset if name == "AXIS" else dim(name) for name in names]
    access["concat_result"] = [dim(name) for name in names]
    shapes = {name: call.shape(name) for name in access}
    return domain(dict(zip(names, shape, strict=True)), access, shapes, "concat_result", products=products)


def _reference(call: Call, *inputs: Array) -> Array:
    return np.concatenate(inputs, axis=call.int("axis"))


def _body(call: Call) -> Body:
    parts = {name: name for name in call.operands}
    return Body(MappingProxyType({"concat_result": "0"}), inside=MappingProxyType(parts))


declare(
    Operator(
        "Concat",
        "inputs*",
        "concat_result",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,3]", "float32[2,5]", axis=1),
            example("float32[2,3,2]", "float32[1,3,2]", "float32[4,3,2]", axis=0),
            example("int8[2,3]", "int8[2,1]", axis=-1),
            example("float16[4]", "float16[3]", axis=0),
            example("bool[2,3]", axis=1),
        ),
        MappingProxyType({"axis": REQUIRED}),
        "move",
        _body,
        numbers=lambda call: {"ELEMENT_BYTES": call.outputs[0].dtype.bytes},
        joins=True,
    )
)
