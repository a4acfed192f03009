"""Split: one tensor into several along an axis."""

from __future__ import annotations

from itertools import accumulate
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import integers
from tilewright.ops.rules import split_axis


def _parts(call: Call) -> tuple[int, ...]:
    """The extent of each output along the axis; equal parts, the last one shorter, where none are given."""
    data = call.type("input")
    extent = data.shape[call.axis("axis", data.rank)]
    if call.has("split"):
        parts = integers(call, "split")
        if sum(parts) != extent or min(parts, default=0) < 0:
            raise call.error("shape-mismatch", f"split {list(parts)} does not add up to the {extent} of the axis")
        return parts
    count = call.wanted if call.attrs["num_outputs"] is None else call.int("num_outputs")
    part = -(-extent // count)
    return tuple(max(0, min(part, extent - part * i)) for i in range(count))


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("input")
    axis = call.axis("axis", data.rank)
    return tuple(data.with_shape((*data.shape[:axis], part, *data.shape[axis + 1 :])) for part in _parts(call))


def _domain(call: Call) -> Domain:
    shape = call.shape("input")
    names, products = split_axis(len(shape), call.axis("axis", len(shape)))
    outputs = call.op.output_names(len(call.outputs))
    access: dict[str, list[Axis]] = {"input": [dim(name) for name in names]}
    for output, offset in zip(outputs, accumulate(_parts(call), initial=0), strict=False):
        access[output] = [dim(name) - offset if name == "AXIS" else dim(name) for name in names]
    shapes = {name: call.shape(name) for name in access}
    return domain(dict(zip(names, shape, strict=True)), access, shapes, " ".join(outputs), products=products)


def _reference(call: Call, input: Array, *_: Array | None) -> tuple[Array, ...]:
    borders = list(accumulate(_parts(call)))[:-1]
    return tuple(np.split(input, borders, axis=call.int("axis")))


def _body(call: Call) -> Body:
    """A point lies in one output only: where it is outside the others, nothing is stored in them."""
    return Body(MappingProxyType(dict.fromkeys(call.op.output_names(len(call.outputs)), "input")))


declare(
    Operator(
        "Split",
        "input split?",
        "outputs*",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,6]", wanted=2, axis=1, num_outputs=2),
            example("float32[7,2]", wanted=3, num_outputs=3),
            example("int8[2,6,2]", [1, 3, 2], wanted=3, axis=-2),
            example("float32[4]", wanted=2),
        ),
        MappingProxyType({"axis": 0, "num_outputs": None}),
        "move",
        _body,
        frozenset({"split"}),
    )
)
