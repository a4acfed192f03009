"""Recognises root-mean-square normalisation and takes its scale into it."""

from __future__ import annotations

import numpy as np

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.layer_norm import per_row
from tilewright.passes.match import close, inverse_of, operands, reduced, root_plus, scaled, square


def rms_norm(graph: Graph, platform: Target) -> Graph:
    """The graph with `x / sqrt(mean(x * x) + epsilon) * scale` as one operator."""
    del platform
    if not any(node.op in ("Sqrt", "Pow") for node in graph.nodes):
        return graph
    return rewrite(graph, {"Div": _normalised, "Mul": _scaled})


def _normalised(edit: Edit, node: Node) -> bool:
    for x, root in _quotients(edit, node):
        found = root_plus(edit, root)
        mean = _mean(edit, found[0]) if found else None
        if found is None or mean is None or square(edit, mean[0]) != x:
            continue
        kind, axes = edit.types[x], mean[1]
        if axes != tuple(range(axes[0], kind.rank)) or not kind.dtype.is_float or kind != edit.types[node.outputs[0]]:
            continue
        ones = edit.constant(np.ones(kind.shape[axes[0] :], kind.dtype.numpy), f"{node.outputs[0]}_scale")
        edit.emit("RMSNormalization", (x, ones), node.outputs[0], axis=axes[0], epsilon=found[1])
        return True
    return False


def _quotients(edit: Edit, node: Node) -> list[tuple[str, str]]:
    """Readings of a node as `x / root`; the root may have been spread over the rows by a product with ones."""
    return [(x, _unspread(edit, root)) for x, root in inverse_of(edit, node)]


def _unspread(edit: Edit, name: str) -> str:
    """`t[.., 1]` where a tensor is `t @ ones[1, n]`, which repeats each row's number."""
    node = edit.producer(name, "MatMul")
    if node is None or edit.call(node).int("transB"):
        return name
    left, right = node.inputs
    repeats = edit.uniform(right) == 1 and len(edit.shape(right)) == 2 and edit.shape(right)[0] == 1
    return left if repeats else name


def _mean(edit: Edit, name: str) -> tuple[str, tuple[int, ...]] | None:
    """What is averaged and along which axes; also a sum times 1 / n, where the sum may be a product with ones."""
    mean = reduced(edit, name, "ReduceMean")
    if mean is not None:
        return mean
    total, factor = scaled(edit, name)
    summed = reduced(edit, total, "ReduceSum") or _row_sum(edit, total)
    if summed is None:
        return None
    count = np.prod([edit.shape(summed[0])[axis] for axis in summed[1]])
    return summed if close(factor * _weight(edit, total), 1 / float(count)) else None


def _row_sum(edit: Edit, name: str) -> tuple[str, tuple[int, ...]] | None:
    """`t` where a tensor is the product of t with a column of equal numbers: that number times the sum of each row."""
    node = edit.producer(name, "MatMul")
    if node is None or edit.call(node).int("transB"):
        return None
    left, right = node.inputs
    rank = len(edit.shape(left))
    if rank < 2 or len(edit.shape(right)) != 2 or edit.shape(right)[1] != 1 or edit.uniform(right) is None:
        return None
    return left, (rank - 1,)


def _weight(edit: Edit, name: str) -> float:
    """The number that `_row_sum` multiplies with."""
    node = edit.producer(name, "MatMul")
    return (edit.uniform(node.inputs[1]) or 0.0) if node else 1.0


def _scaled(edit: Edit, node: Node) -> bool:
    """A normalisation without scale, times a scale."""
    if _normalised(edit, node):
        return True
    for source, scale in operands(node):
        norm = edit.producer(source, "RMSNormalization")
        if norm is None or not edit.single(source) or edit.uniform(norm.inputs[1]) != 1:
            continue
        row = per_row(edit, norm, scale)
        if row and edit.types[source] == edit.types[node.outputs[0]]:
            edit.emit_all(norm.op, (norm.inputs[0], row), node.outputs, norm.attrs)
            return True
    return False
