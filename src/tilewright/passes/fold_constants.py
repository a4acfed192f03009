"""Computes at compile time what depends on constants alone, and what has no elements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.core.graph import Array, Graph, Node, type_of_array
from tilewright.core.op import REGISTRY, call_of, evaluate
from tilewright.machine.target import Target

GROWTH = 8
"""A result this many times larger than what it is computed from stays an operator: it would fill the flash."""

SMALL = 1 << 16
"""Bytes up to which growth does not matter."""


def fold_constants(graph: Graph, platform: Target) -> Graph:
    """The graph with the results of constant nodes as constants."""
    del platform
    known: dict[str, Array] = dict(graph.constants)
    folded: dict[str, Array] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        results = _nothing(node, graph) or _results(node, known)
        if results is None:
            kept.append(node)
        else:
            folded |= results
            known |= results
    return graph.with_nodes(kept, constants=folded) if folded else graph


def _nothing(node: Node, graph: Graph) -> dict[str, Array] | None:
    """The outputs of a node that has no elements to compute: kernels need not know of it."""
    kinds = {name: graph.types[name] for name in node.outputs if name}
    if any(kind.size for kind in kinds.values()):
        return None
    return {name: np.zeros(kind.shape, kind.dtype.numpy) for name, kind in kinds.items()}


def _results(node: Node, known: Mapping[str, Array]) -> dict[str, Array] | None:
    """The values of a node's outputs, where all it reads is known."""
    if not node.inputs or node.epilogue or not all(name in known for name in node.reads):
        return None
    inputs = [known[name] if name else None for name in node.inputs]
    call = call_of(
        REGISTRY[node.op],
        [None if array is None else type_of_array(array) for array in inputs],
        node.attrs,
        values=inputs,
        name=node.label,
        wanted=len(node.outputs),
    )
    bytes_out = sum(kind.bytes for kind in call.outputs)
    if bytes_out > max(SMALL, GROWTH * sum(array.nbytes for array in inputs if array is not None)):
        return None
    results = evaluate(call, inputs)
    return {name: array for name, array in zip(node.outputs, results, strict=False) if name}
