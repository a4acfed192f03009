"""Takes a Transpose of the right operand of a MatMul into the product.

The last two axes of B may be swapped by `transB`. It is used where no Transpose is left then, or one that keeps the
last axis in place, which copies whole rows instead of single elements.
"""

from __future__ import annotations

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.permutation import is_identity, moves_units_only
from tilewright.passes.turned import perm_of


def transposed_matmul(graph: Graph, platform: Target) -> Graph:
    """The graph with `A @ transpose(B)` as one operator."""
    del platform
    if not any(node.op == "Transpose" for node in graph.nodes):
        return graph
    return rewrite(graph, {"MatMul": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    left, right = node.inputs
    above = edit.producer(right, "Transpose")
    if above is None:
        return False
    perm = perm_of(edit, above)
    swapped = (*perm[:-2], perm[-1], perm[-2])
    source = above.inputs[0]
    if moves_units_only(edit.shape(source), swapped) or (swapped[-1] == len(perm) - 1 and perm[-1] != len(perm) - 1):
        other = source if is_identity(swapped) else edit.transpose(source, swapped)
        attributes = {**node.attrs, "transB": 0 if edit.call(node).int("transB") else 1}
        edit.emit_all(node.op, (left, other), node.outputs, attributes)
        return True
    return False
