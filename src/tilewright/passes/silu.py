"""Recognises Swish (SiLU): `x * sigmoid(alpha * x)`, also as `x / (1 + exp(-x))`."""

from __future__ import annotations

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.match import operands, plus_number, product


def silu(graph: Graph, platform: Target) -> Graph:
    """The graph with each Swish as one operator."""
    del platform
    if not any(node.op in ("Sigmoid", "Exp") for node in graph.nodes):
        return graph
    return rewrite(graph, {"Mul": _product, "Div": _quotient})


def _product(edit: Edit, node: Node) -> bool:
    for x, gate in operands(node):
        sigmoid = edit.producer(gate, "Sigmoid")
        if sigmoid is None:
            continue
        alpha, names = product(edit, sigmoid.inputs[0], frozenset({x}))
        if names == (x,) and edit.types[x] == edit.types[gate]:
            edit.emit("Swish", (x,), node.outputs[0], alpha=alpha)
            return True
    return False


def _quotient(edit: Edit, node: Node) -> bool:
    x, divisor = node.inputs
    found = plus_number(edit, divisor)
    exp = edit.producer(found[0], "Exp") if found and found[1] == 1 else None
    if exp is None:
        return False
    alpha, names = product(edit, exp.inputs[0], frozenset({x}))
    if names != (x,) or edit.types[x] != edit.types[divisor]:
        return False
    edit.emit("Swish", (x,), node.outputs[0], alpha=-alpha)
    return True
