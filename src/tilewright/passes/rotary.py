"""Queries and keys are scaled back and turned at once, where the platform has a kernel for it."""

from __future__ import annotations

from functools import partial

from tilewright.base.dtype import INT16
from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.scaled import emitted, scaled_sums

FUSED = "RequantRotary"


def rotary(graph: Graph, platform: Target) -> Graph:
    """The graph with RequantShift and iRotary as one operator."""
    if not platform.kernels_of(FUSED) or not any(node.op == "iRotary" for node in graph.nodes):
        return graph
    return rewrite(graph, {"iRotary": partial(_turned, platform)})


def _turned(platform: Target, edit: Edit, node: Node) -> bool:
    """One node in place of a rotation and what scales its operand."""
    scaled = scaled_sums(edit, node.inputs[0], INT16)
    if scaled is None:
        return False
    attributes = {**node.attrs, "div": scaled.attrs["div"]}
    return emitted(
        platform, edit, Node(FUSED, (*scaled.inputs, *node.inputs[1:]), node.outputs, attributes, node.label)
    )
