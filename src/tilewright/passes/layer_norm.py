"""Recognises layer normalisation written with means, squares and roots, and takes its scale and bias into it."""

from __future__ import annotations

import numpy as np

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.match import inverse_of, operands, reduced, root_plus, square


def layer_norm(graph: Graph, platform: Target) -> Graph:
    """The graph with `(x - mean) / sqrt(variance + epsilon) * scale + bias` as one operator."""
    del platform
    if not any(node.op == "ReduceMean" for node in graph.nodes):
        return graph
    return rewrite(graph, {"Div": _normalised, "Mul": _scaled, "Add": _shifted})


def _normalised(edit: Edit, node: Node) -> bool:
    for centred, deviation in inverse_of(edit, node):
        found = root_plus(edit, deviation)
        mean = reduced(edit, found[0], "ReduceMean") if found else None
        x = _uncentred(edit, centred)
        if found is None or mean is None or x is None or square(edit, mean[0]) != centred or x[1] != mean[1]:
            continue
        kind, axes = edit.types[x[0]], mean[1]
        if axes != tuple(range(axes[0], kind.rank)) or not kind.dtype.is_float:
            continue
        ones = edit.constant(np.ones(kind.shape[axes[0] :], kind.dtype.numpy), f"{node.outputs[0]}_scale")
        edit.emit("LayerNormalization", (x[0], ones), node.outputs[0], axis=axes[0], epsilon=found[1])
        return True
    return False


def _uncentred(edit: Edit, name: str) -> tuple[str, tuple[int, ...]] | None:
    """x and the axes where a tensor is `x - mean(x)`."""
    node = edit.producer(name, "Sub")
    mean = reduced(edit, node.inputs[1], "ReduceMean") if node else None
    return mean if node and mean and mean[0] == node.inputs[0] else None


def _scaled(edit: Edit, node: Node) -> bool:
    """A normalisation without scale and bias, times a scale."""
    if _normalised(edit, node):
        return True
    for source, scale in operands(node):
        norm = edit.producer(source, "LayerNormalization")
        if norm is None or not edit.single(source) or norm.inputs[2:] or edit.uniform(norm.inputs[1]) != 1:
            continue
        row = per_row(edit, norm, scale)
        if row and edit.types[source] == edit.types[node.outputs[0]]:
            edit.emit_all(norm.op, (norm.inputs[0], row), node.outputs, norm.attrs)
            return True
    return False


def _shifted(edit: Edit, node: Node) -> bool:
    """A normalisation without bias, plus a bias."""
    for source, bias in operands(node):
        norm = edit.producer(source, "LayerNormalization")
        if norm is None or not edit.single(source) or norm.outputs[1:] or norm.inputs[2:]:
            continue
        row = per_row(edit, norm, bias)
        if row and edit.types[source] == edit.types[node.outputs[0]]:
            edit.emit_all(norm.op, (*norm.inputs, row), node.outputs, norm.attrs)
            return True
    return False


def per_row(edit: Edit, norm: Node, name: str) -> str | None:
    """An operand as one number per element of the normalised axes; None where it differs from row to row."""
    shape = edit.shape(norm.inputs[1])
    own = edit.shape(name)
    if own == shape:
        return name
    array = edit.constants.get(name)
    lead = len(own) - len(shape)
    if array is None or any(extent != 1 for extent in own[: max(0, lead)]):
        return None
    inner = array.reshape(own[max(0, lead) :])
    if any(e not in (1, s) for e, s in zip(inner.shape[::-1], shape[::-1], strict=False)):
        return None
    return edit.constant(np.ascontiguousarray(np.broadcast_to(inner, shape)), f"{name}_row")
