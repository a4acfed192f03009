"""Queries and keys of one product are scaled back, turned and taken apart at once, where the platform has a kernel."""

from __future__ import annotations

from functools import partial

from tilewright.base.dtype import INT16, INT32
from tilewright.core.graph import Graph, Node
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite

FUSED = "RequantRotary"


def rotary(graph: Graph, platform: Target) -> Graph:
    """The graph with RequantShift, iRotary and Split as one operator."""
    if not platform.kernels_of(FUSED) or not any(node.op == "iRotary" for node in graph.nodes):
        return graph
    return rewrite(graph, {"Split": partial(_halves, platform)})


def _halves(platform: Target, edit: Edit, node: Node) -> bool:
    turned = edit.producer(node.inputs[0], "iRotary")
    scaled = edit.producer(turned.inputs[0], "RequantShift") if turned is not None else None
    if turned is None or scaled is None or not all(edit.single(each.outputs[0]) for each in (turned, scaled)):
        return False
    sums, mul, add = scaled.inputs
    columns, numbers = edit.shape(sums)[-1:], REGISTRY[scaled.op].numbers
    shapes = {edit.shape(name) for name in node.outputs}
    fits = (
        len(node.outputs) == 2
        and len(shapes) == 1
        and edit.call(node).axis("axis", 3) == 0
        and edit.types[scaled.outputs[0]].dtype == INT16
        and all(edit.types[name].dtype == INT32 for name in scaled.inputs)
        and all(edit.shape(name) == columns for name in (mul, add))
        and numbers is not None
        and "column_shift" in numbers(edit.call(scaled))
    )
    if not fits:
        return False
    attributes = {**turned.attrs, "heads": shapes.pop()[0], "div": scaled.attrs["div"]}
    whole = Node(FUSED, (sums, mul, add, *turned.inputs[1:]), node.outputs, attributes, node.label)
    call = edit.call(whole)
    names = binding_names(call)
    if all(why_not(kernel, call, whole, edit.graph, names, {}) for kernel in platform.kernels_of(FUSED)):
        return False
    edit.emit_all(FUSED, whole.inputs, whole.outputs, whole.attrs)
    return True
