"""Softmax of bytes along an axis that is not the last: no kernel takes it, so they become floats before."""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite


def byte_softmax(graph: Graph, platform: Target) -> Graph:
    """The graph with integers for Softmax along their last axis only. Other passes may have moved that axis."""
    del platform
    return rewrite(graph, {"Softmax": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    call = edit.call(node)
    x = call.type("X")
    if x.dtype.is_float or prod(x.shape[call.axis("axis", x.rank) + 1 :]) == 1:
        return False
    step = edit.constant(np.asarray(call.float("x_scale"), np.float32), f"{node.outputs[0]}_step")
    edit.emit(
        "Softmax", (edit.emit("DequantizeLinear", (node.inputs[0], step)),), node.outputs[0], axis=call.int("axis")
    )
    return True
