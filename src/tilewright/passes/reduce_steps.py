"""A reduction whose points would not fit a small memory of the cores is done in steps, each over fewer of them.

A tile holds all points of a result, as sums of parts are only carried on by kernels that say so. In steps the first
results are many and small, and can be cut."""

from __future__ import annotations

from math import prod

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.ops.reduce import reduced_axes
from tilewright.passes.edit import Edit, rewrite

ROOM = 4096
"""Bytes of the points of one result, at most. It does not depend on sizes of memories, so that what is computed does
not, either, and the smallest memory that an error names is the smallest one."""
STEPWISE = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""What may be done over some axes first. All parts are of one size, so a mean of means is the mean."""


def reduce_steps(graph: Graph, platform: Target) -> Graph:
    """The graph with such reductions in steps; without a memory of the cores' own there are none."""
    return rewrite(graph, dict.fromkeys(STEPWISE, _in_steps)) if platform.home else graph


def _in_steps(edit: Edit, node: Node) -> bool:
    call = edit.call(node)
    kind, shape, data = call.type("data"), list(call.shape("data")), node.inputs[0]
    axes = reduced_axes(call, kind.rank)
    points = ROOM * 8 // kind.dtype.bits
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
        (data,) = edit.emit_all(node.op, inputs, (None,), {**node.attrs, "keepdims": 0})
    if data == node.inputs[0]:
        return False
    edit.emit_all(node.op, (data, *node.inputs[1:]), node.outputs, node.attrs)
    return True
