"""Moves Transposes down through operators that do not care for the order of axes, until they meet their inverses.

Consecutive Transposes become one, inverse ones vanish, and one that moves axes of extent 1 only becomes a view.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.core.graph import Graph, Node
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, Rule, rewrite
from tilewright.passes.permutation import Perm, compose, inverse, is_identity, moves_units_only, reshape_first
from tilewright.passes.turned import operands_with_axes, perm_of, turn_of

LOOKAHEAD = 8
"""How many operators down a Transpose is followed to see whether it meets its inverse."""


def transposes(graph: Graph, platform: Target) -> Graph:
    """The graph with as few bytes transposed as this finds."""
    del platform
    if not any(node.op == "Transpose" for node in graph.nodes):
        return graph
    return rewrite(rewrite(graph, _rules(graph)), {"Transpose": _as_view})


def _rules(graph: Graph) -> Mapping[str, Rule]:
    turned = {node.op for node in graph.nodes if turn_of(node.op)}
    return {**dict.fromkeys(turned, _sink), "Transpose": _merge, "Reshape": _through_reshape, "MatMul": _into_weights}


def _merge(edit: Edit, node: Node) -> bool:
    """Two Transposes as one, or as none."""
    above = edit.producer(node.inputs[0], "Transpose")
    source = above.inputs[0] if above else node.inputs[0]
    perm = compose(perm_of(edit, above), perm_of(edit, node)) if above else perm_of(edit, node)
    if is_identity(perm):
        if not edit.alias(node.outputs[0], source):
            edit.emit("Identity", (source,), node.outputs[0])
        return True
    if above is None:
        return False
    edit.transpose(source, perm, node.outputs[0])
    return True


def _as_view(edit: Edit, node: Node) -> bool:
    source, output = node.inputs[0], node.outputs[0]
    if not moves_units_only(edit.shape(source), perm_of(edit, node)):
        return False
    edit.reshape(source, edit.shape(output), output)
    return True


def _sink(edit: Edit, node: Node) -> bool:
    """Computes a node on the input of the Transpose above it, and transposes the result."""
    names = operands_with_axes(edit, node)
    above = max(
        (found for name in names if (found := edit.producer(name, "Transpose"))),
        key=lambda found: edit.types[found.outputs[0]].size,
        default=None,
    )
    if above is None:
        return _sink_with_view(edit, node)
    perm = perm_of(edit, above)
    if not _pays(edit, node, names, perm):
        return False
    turn = turn_of(node.op)
    turned = turn(edit, node, perm) if turn else None
    if turned is None:
        return False
    wanted = [None if output else "" for output in node.outputs]
    results = edit.emit_all(node.op, turned.inputs, wanted, turned.attrs)
    for result, output in zip(results, node.outputs, strict=True):
        if output:
            edit.transpose(result, turned.perm, output)
    return True


def _sink_with_view(edit: Edit, node: Node) -> bool:
    """An element-wise node with numbers for other operands goes above a Reshape of a Transpose."""
    if REGISTRY[node.op].kind != "elementwise":
        return False
    tensors = [name for name in node.inputs if name and edit.types[name].size != 1]
    view = edit.producer(tensors[0], "Reshape") if len(set(tensors)) == 1 else None
    above = edit.producer(view.inputs[0], "Transpose") if view else None
    if view is None or above is None or not edit.single(tensors[0]) or node.outputs[1:]:
        return False
    output, source = node.outputs[0], above.inputs[0]
    if edit.shape(tensors[0]) != edit.shape(output) or edit.types[output].bytes > edit.types[tensors[0]].bytes:
        return False
    if any(len(edit.shape(name)) > len(edit.shape(source)) for name in node.inputs if name and name not in tensors):
        return False
    inputs = [source if name == tensors[0] else name for name in node.inputs]
    (result,) = edit.emit_all(node.op, inputs, (None,), node.attrs)
    edit.reshape(edit.transpose(result, perm_of(edit, above)), edit.shape(output), output)
    return True


def _pays(edit: Edit, node: Node, names: tuple[str, ...], perm: Perm) -> bool:
    """Whether no more bytes are transposed with the Transpose behind the node, which then fuses with what is before."""
    gone = added = 0
    for name in dict.fromkeys(names):
        found = edit.producer(name, "Transpose")
        if found and perm_of(edit, found) == perm:
            gone += _cost(edit, found.inputs[0], perm)
        elif name not in edit.constants and len(edit.shape(name)) == len(perm):
            added += _cost(edit, name, inverse(perm))
    met, stays = _meets(edit, node, inverse(perm), LOOKAHEAD)
    if stays:
        added += sum(_resting_cost(edit, output, perm, LOOKAHEAD) for output in node.made)
    # One that moves no bytes is left where it is, as a view, unless it can vanish.
    return gone + met >= max(added, 1)


def _cost(edit: Edit, name: str, perm: Perm) -> int:
    """Bytes that transposing a tensor moves."""
    kind = edit.types[name]
    if kind.rank == len(perm) and moves_units_only(kind.shape, perm):
        return 0
    return kind.bytes


def _resting_cost(edit: Edit, name: str, perm: Perm, depth: int) -> int:
    """Bytes that a Transpose moves behind a tensor, or further down: wide integers are often narrowed soon."""
    cost = _cost(edit, name, perm)
    readers = edit.readers(name)
    if not depth or len(readers) != 1 or edit.is_result(name) or REGISTRY[readers[0].op].kind != "elementwise":
        return cost
    others = [other for other in readers[0].reads if other != name and other not in edit.constants]
    if not all(_comes_turned(edit, other, perm, depth) for other in others):
        return cost
    return min(cost, _resting_cost(edit, readers[0].outputs[0], perm, depth - 1))


def _comes_turned(edit: Edit, name: str, perm: Perm, depth: int) -> bool:
    """Whether a tensor is the result of the same Transpose, or of operators behind which one could be."""
    node = edit.origin(name)
    if node is None or not depth:
        return False
    if node.op == "Transpose":
        return perm_of(edit, node) == perm
    sources = operands_with_axes(edit, node) if turn_of(node.op) else ()
    return any(_comes_turned(edit, source, perm, depth - 1) for source in sources)


def _meets(edit: Edit, node: Node, wanted: Perm, depth: int) -> tuple[int, bool]:
    """Bytes of the Transposes by `wanted` that a result would meet below, and whether it also goes elsewhere."""
    met, stays = 0, False
    for output in node.made:
        readers = edit.readers(output)
        stays |= not readers or edit.is_result(output)
        for reader in readers:
            if reader.op == "Transpose":
                matches = perm_of(edit, reader) == wanted
                met += max(1, _cost(edit, output, wanted)) if matches else 0
                stays |= not matches
            elif depth and turn_of(reader.op) and output in operands_with_axes(edit, reader):
                more, elsewhere = _meets(edit, reader, wanted, depth - 1)
                met, stays = met + more, stays or elsewhere
            else:
                stays = True
    return met, stays


def _through_reshape(edit: Edit, node: Node) -> bool:
    above = edit.producer(node.inputs[0], "Transpose")
    if above is None or not _cost(edit, above.inputs[0], perm_of(edit, above)):
        return False
    source, output = above.inputs[0], node.outputs[0]
    swapped = reshape_first(edit.shape(source), perm_of(edit, above), edit.shape(output))
    if swapped is None:
        return False
    edit.transpose(edit.reshape(source, swapped.shape), swapped.perm, output)
    return True


def _into_weights(edit: Edit, node: Node) -> bool:
    """A flattened Transpose before a constant matrix: the rows of the matrix are permuted instead."""
    view = edit.producer(node.inputs[0], "Reshape")
    above = edit.producer(view.inputs[0], "Transpose") if view else None
    weights = edit.constants.get(node.inputs[1])
    if view is None or above is None or weights is None or weights.ndim != 2 or edit.call(node).int("transB"):
        return _sink(edit, node)
    source, perm = above.inputs[0], perm_of(edit, above)
    shape, rows = edit.shape(above.outputs[0]), edit.shape(view.outputs[0])[-1]
    first = _first_flattened(shape, rows)
    if first is None or perm[:first] != tuple(range(first)):
        return False
    local = tuple(axis - first for axis in perm[first:])
    inner = (*(inverse(local)), len(local))
    turned = weights.reshape(*shape[first:], -1).transpose(inner).reshape(weights.shape)
    flat = edit.reshape(source, edit.shape(view.outputs[0]))
    matrix = edit.constant(np.ascontiguousarray(turned), f"{node.inputs[1]}_rows")
    edit.emit_all(node.op, (flat, matrix), node.outputs, node.attrs)
    return True


def _first_flattened(shape: tuple[int, ...], count: int) -> int | None:
    """The axis from which on the extents have the product `count`."""
    product = 1
    for axis in reversed(range(len(shape))):
        product *= shape[axis]
        if product == count:
            return axis
    return None
