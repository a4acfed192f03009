"""Contractions without what follows them, for engines that only add up products: the rest becomes a node of its own."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.graph import RESULT, Graph, Node, TensorType
from tilewright.core.op import call_node

BIASES = {"Conv": 2, "MatMul": 2}
"""The operand that is added to the sums, by operator."""


def split(graph: Graph, node: Node, sums: str) -> tuple[Node, Node | None, TensorType] | None:
    """The sums of a contraction, the node that makes its result from them (None where they are it), and their type.

    None for nodes that are no contraction. `sums` is the name of the tensor between the two.
    """
    if node.op not in BIASES or len(node.outputs) != 1:
        return None
    place = BIASES[node.op]
    bias = node.inputs[place] if len(node.inputs) > place else ""
    kind = call_node(graph, node).outputs[0]
    if not bias and not node.epilogue:
        return node, None, kind
    first = replace(node, inputs=node.inputs[:place], outputs=(sums,), epilogue=())
    if bias:
        return first, Node("Add", (sums, bias), node.outputs, name=node.name, epilogue=node.epilogue), kind
    step, *others = node.epilogue
    inputs = tuple(sums if name == RESULT else name for name in step.inputs)
    later = tuple(replace(other, inputs=tuple(_earlier(name, sums) for name in other.inputs)) for other in others)
    return first, Node(step.op, inputs, node.outputs, step.attrs, node.name, later), kind


def _earlier(name: str, sums: str) -> str:
    """What a later step reads where the first one is the node itself."""
    if not name.startswith(RESULT):
        return name
    number = int(name[len(RESULT) :] or 0)
    return sums if number == 0 else RESULT + (str(number - 1) if number > 1 else "")
