"""What the layers of a language model are for."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.graph import Graph, Node

PRODUCTS, ATTENTION, CACHE, OTHERS = "products with weights", "attention", "cache", "others"
_OF_OP = {
    "iAttention": ATTENTION,
    "Attention": ATTENTION,
    "Softmax": ATTENTION,
    "Append": CACHE,
    "iRMSNorm": "norms",
    "RMSNormalization": "norms",
    "iRotary": "rotation",
    "RequantRotary": "rotation",
    "RotaryEmbedding": "rotation",
    "iSiLU": "gates",
    "RequantGate": "gates",
    "Sigmoid": "gates",
    "Silu": "gates",
}
KINDS = (PRODUCTS, ATTENTION, "norms", "rotation", "gates", CACHE, OTHERS)


def kind_of(graph: Graph, nodes: Iterable[Node]) -> str:
    """What nodes that run together are for: the first of `KINDS` that one of them is."""
    return min((_kind(graph, node) for node in nodes), key=KINDS.index, default=OTHERS)


def _kind(graph: Graph, node: Node) -> str:
    if node.op in ("MatMul", "Gemm", "Conv", "MatMulInteger"):
        return PRODUCTS if any(name in graph.constants for name in node.inputs[1:2]) else ATTENTION
    return _OF_OP.get(node.op, OTHERS)
