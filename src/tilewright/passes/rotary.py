"""Queries and keys are scaled back and turned at once, and taken apart where they are of one product.

That is done where the platform has a kernel for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tilewright.base.dtype import INT16, INT32
from tilewright.core.graph import Attr, Graph, Node
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite

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
    scaled = edit.producer(turned.inputs[0], "RequantShift")
    if scaled is None or not edit.single(scaled.outputs[0]):
        return False
    sums, mul, add = scaled.inputs
    columns, numbers = edit.shape(sums)[-1:], REGISTRY[scaled.op].numbers
    fits = (
        edit.types[scaled.outputs[0]].dtype == INT16
        and all(edit.types[name].dtype == INT32 for name in scaled.inputs)
        and all(edit.shape(name) == columns for name in (mul, add))
        and numbers is not None
        and "column_shift" in numbers(edit.call(scaled))
    )
    if not fits:
        return False
    attributes = {**turned.attrs, **more, "div": scaled.attrs["div"]}
    whole = Node(FUSED, (sums, mul, add, *turned.inputs[1:]), last.outputs, attributes, last.label)
    call = edit.call(whole)
    names = binding_names(call)
    if all(why_not(kernel, call, whole, edit.graph, names, {}) for kernel in platform.kernels_of(FUSED)):
        return False
    edit.emit_all(FUSED, whole.inputs, whole.outputs, whole.attrs)
    return True
