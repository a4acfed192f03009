"""Queries and keys are scaled back and turned at once, and taken apart where they are of one product.

That is done where the platform has a kernel for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tilewright.base.dtype import INT16
from tilewright.core.graph import Attr, Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.scaled import emitted, scaled_sums

FUSED = "RequantRotary"


def rotary(graph: Graph, platform: Target) -> Graph:
    """The graph with RequantShift, iRotary and, where there is one, Split as one operator."""
    if not platform.kernels_of(FUSED) or not any(node.op == "iRotary" for node in graph.nodes):
        return graph
    return rewrite(graph, {"Split": partial(_halves, platform), "iRotary": partial(_turned, platform)})


def _halves(platform: Target, edit: Edit, node: Node) -> bool:
    turned = edit.producer(node.inputs[0], "iRotary")
    shapes = {edit.shape(name) for name in node.outputs}
    fits = (
        turned is not None
        and edit.single(turned.outputs[0])
        and len(node.outputs) == 2
        and len(shapes) == 1
        and edit.call(node).axis("axis", 3) == 0
    )
    return fits and turned is not None and _fused(platform, edit, turned, node, {"heads": shapes.pop()[0]})


def _turned(platform: Target, edit: Edit, node: Node) -> bool:
    if any(reader.op == "Split" for reader in edit.readers(node.outputs[0])):
        return False
    return _fused(platform, edit, node, node, {})


def _fused(platform: Target, edit: Edit, turned: Node, last: Node, more: Mapping[str, Attr]) -> bool:
    """One node in place of a rotation and what scales its operand, with the results of the last one."""
    scaled = scaled_sums(edit, turned.inputs[0], INT16)
    if scaled is None:
        return False
    attributes = {**turned.attrs, **more, "div": scaled.attrs["div"]}
    return emitted(
        platform, edit, Node(FUSED, (*scaled.inputs, *turned.inputs[1:]), last.outputs, attributes, last.label)
    )
