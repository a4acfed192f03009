"""Sums of products are scaled back and added to what goes along the layers at once.

That is done where the platform has a kernel for it.
"""

from __future__ import annotations

from functools import partial

from tilewright.base.dtype import INT16, INT32
from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.ops.integer_rules import power_of_two
from tilewright.ops.requant_add import MOST_LEVELS
from tilewright.ops.requant_shift import levels_of
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.scaled import emitted, only_shifts, scaled_sums

FUSED = "RequantAdd"


def residuals(graph: Graph, platform: Target) -> Graph:
    """The graph with RequantShift, Add and another RequantShift as one operator."""
    if not platform.kernels_of(FUSED):
        return graph
    return rewrite(graph, {"RequantShift": partial(_added, platform)})


def _added(platform: Target, edit: Edit, node: Node) -> bool:
    total = edit.producer(node.inputs[0], "Add")
    if total is None or not edit.single(total.outputs[0]) or edit.types[total.outputs[0]].dtype != INT32:
        return False
    if len(edit.shape(node.outputs[0])) != 2:
        return False
    if not only_shifts(edit, node, INT16) or power_of_two(edit.call(node), "div"):
        return False
    for name, other in (total.inputs, total.inputs[::-1]):
        scaled = scaled_sums(edit, name, INT32)
        levels = levels_of(edit.call(scaled)) if scaled is not None else 0
        if scaled is not None and levels <= MOST_LEVELS and edit.types[other] == edit.types[node.outputs[0]]:
            attributes = {"div": scaled.attrs["div"], "n_levels": levels}
            return emitted(platform, edit, Node(FUSED, (*scaled.inputs, other), node.outputs, attributes, node.label))
    return False
