"""Matrix products take the axes of what follows: a Reshape that only unfolds rows moves in front of the product.

Exporters flatten `[batch, tokens, width]` for Gemm and unfold it again; without the detour, what follows the product
has the shape of the tensors around it and fuses with it.
"""

from __future__ import annotations

from tilewright.core.graph import Graph, Node
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite


def unflatten(graph: Graph, platform: Target) -> Graph:
    """The graph with products computed under the shape to which their results are unfolded."""
    del platform
    return rewrite(graph, {"MatMul": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    left, right = node.inputs
    output = node.outputs[0]
    if len(edit.shape(left)) != 2 or len(edit.shape(right)) != 2 or node.attrs.get("transA"):
        return False
    rows = _unfolded(edit, output)
    if rows is None:
        return False
    (product,) = edit.emit_all("MatMul", (edit.reshape(left, (*rows, edit.shape(left)[1])), right), (None,), node.attrs)
    edit.reshape(product, edit.shape(output), output)
    return True


def _unfolded(edit: Edit, name: str) -> tuple[int, ...] | None:
    """The leading axes that a result gets by a Reshape behind element-wise operators; None where there is none."""
    columns = edit.shape(name)[1]
    while True:
        readers = edit.readers(name)
        if len(readers) != 1 or edit.is_result(name):
            return None
        (reader,) = readers
        target = edit.shape(reader.outputs[0])
        if reader.op == "Reshape":
            return target[:-1] if len(target) > 2 and target[-1] == columns else None
        if REGISTRY[reader.op].kind != "elementwise" or target != edit.shape(name):
            return None
        name = reader.outputs[0]
