"""Transpose: the axes in another order."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Affine, Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import grid


def _permutation(call: Call) -> tuple[int, ...]:
    """Which input axis each output axis is; without `perm` the order is reversed."""
    rank = call.type("data").rank
    return call.ints("perm") or tuple(reversed(range(rank)))


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    order = _permutation(call)
    if sorted(order) != list(range(data.rank)):
        raise call.error("bad-attribute", f"perm={list(order)} is no order of the {data.rank} axes of {data}")
    return (data.with_shape(data.shape[axis] for axis in order),)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("transposed"))
    names = [*sizes]
    source: dict[int, Affine] = dict(zip(_permutation(call), access, strict=True))
    return domain(
        sizes,
        {"data": [source[axis] for axis in range(len(source))], "transposed": access},
        {"data": call.shape("data"), "transposed": call.shape("transposed")},
        "transposed",
        # From behind, so that kernels are for any number of axes up to these.
        products={"IMAGES": names[-4:-3], "PLANES": names[-3:-2], "ROWS": names[-2:-1], "COLUMNS": names[-1:]},
    )


def _reference(call: Call, data: Array) -> Array:
    return np.transpose(data, _permutation(call))


declare(
    Operator(
        "Transpose",
        "data",
        "transposed",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,3,4]"),
            example("float32[2,3,4,5]", perm=(0, 2, 3, 1)),
            example("int8[3,4]", perm=(1, 0)),
            example("int8[2,3,4,5]", perm=(0, 2, 1, 3)),
            example("uint8[2,4,5,3]", perm=(0, 3, 1, 2)),
            example("float16[2,3,4]", perm=(1, 0, 2)),
            example("bool[5]"),
        ),
        MappingProxyType({"perm": None}),
        "move",
        lambda _: Body(MappingProxyType({"transposed": "data"})),
        numbers=lambda call: {"rank": call.type("data").rank},
    )
)
