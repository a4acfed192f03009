"""Recognises Softmax written with Exp, a sum and a division, with or without the maximum taken away first."""

from __future__ import annotations

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.match import inverse_of, reduced


def softmax(graph: Graph, platform: Target) -> Graph:
    """The graph with `exp(x) / sum(exp(x))` as one operator."""
    del platform
    if not any(node.op == "Exp" for node in graph.nodes):
        return graph
    return rewrite(graph, {"Div": _rule, "Mul": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    for powers, total in inverse_of(edit, node):
        summed = reduced(edit, total, "ReduceSum")
        exp = edit.producer(powers, "Exp")
        if summed is None or exp is None or summed[0] != powers or len(summed[1]) != 1:
            continue
        x = _shifted(edit, exp.inputs[0], summed[1])
        edit.emit("Softmax", (x,), node.outputs[0], axis=summed[1][0])
        return True
    return False


def _shifted(edit: Edit, name: str, axes: tuple[int, ...]) -> str:
    """x where a tensor is `x - max(x)` along the same axes: Softmax takes the maximum away itself."""
    node = edit.producer(name, "Sub")
    largest = reduced(edit, node.inputs[1], "ReduceMax") if node else None
    return node.inputs[0] if node and largest == (node.inputs[0], axes) else name
