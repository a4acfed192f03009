"""A reduction whose points do not fit the memory of the cores is done in steps, each over fewer of them.

A tile holds all points of a result, as sums of parts are only carried on by kernels that say so. In steps the first
results are many and small, and can be cut."""

from __future__ import annotations

from functools import partial
from math import prod

from tilewright.core.graph import Graph, Node
from tilewright.core.platform import Platform
from tilewright.ops.reduce import reduced_axes
from tilewright.passes.edit import Edit, rewrite

SHARE = 4
"""Points of one result take at most this part of the memory: beside them are the next tile's, and results."""
STEPWISE = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""What may be done over some axes first. All parts are of one size, so a mean of means is the mean."""


def reduce_steps(graph: Graph, platform: Platform) -> Graph:
    """The graph with such reductions in steps; without a memory of the cores' own there are none."""
    room = platform.memories[platform.cores.memory].bytes
    if not platform.home or room is None:
        return graph
    return rewrite(graph, dict.fromkeys(STEPWISE, partial(_in_steps, room // SHARE)))


def _in_steps(room: int, edit: Edit, node: Node) -> bool:
    call = edit.call(node)
    kind, shape, data = call.type("data"), list(call.shape("data")), node.inputs[0]
    axes = reduced_axes(call, kind.rank)
    points = max(room * 8 // kind.dtype.bits, 1)
    # A mean of integers is rounded, so there is just one.
    if node.op == "ReduceMean" and not kind.dtype.is_float:
        return False
    while prod(shape[axis] for axis in axes) > points:
        last = max(axis for axis in axes if shape[axis] > 1)
        part = next(n for n in range(min(points, shape[last]), 0, -1) if shape[last] % n == 0)
        if part == 1:
            break
        shape[last] //= part
        parts = edit.reshape(data, (*shape[: last + 1], part, *shape[last + 1 :]))
        inputs = (parts, edit.integers([last + 1], "axes"))
        (data,) = edit.emit_all(node.op, inputs, ("",), {**node.attrs, "keepdims": 0})
    if data == node.inputs[0]:
        return False
    edit.emit_all(node.op, (data, *node.inputs[1:]), node.outputs, node.attrs)
    return True
