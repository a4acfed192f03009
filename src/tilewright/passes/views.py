"""Moves views behind element-wise operators, so that these stand directly behind what computes and fuse with it."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.domain import Whole
from tilewright.core.graph import Graph, Node
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.permutation import Groups, groups_of
from tilewright.passes.turned import LAST_AXIS, UNTURNED, broadcasts, channel_shape

UNFIT = (-1,)
"""Stands for the shape of an operand that does not fit before the view."""


def views(graph: Graph, platform: Target) -> Graph:
    """The graph with element-wise operators computed before the views of their inputs."""
    del platform
    if not any(node.op == "Reshape" for node in graph.nodes):
        return graph
    ops = {node.op for node in graph.nodes if REGISTRY[node.op].kind == "elementwise"}
    return rewrite(graph, dict.fromkeys(ops - LAST_AXIS - UNTURNED, _rule))


def _rule(edit: Edit, node: Node) -> bool:
    if node.outputs[1:]:
        return False
    output = node.outputs[0]
    target = edit.shape(output)
    for name in dict.fromkeys(node.inputs):
        view = edit.producer(name, "Reshape") if name and edit.shape(name) == target else None
        if view is None or not edit.single(name) or not _fuses(edit, view.inputs[0]):
            continue
        source = view.inputs[0]
        while (above := edit.producer(source, "Reshape")) is not None:
            source = above.inputs[0]
        shapes = _shapes(edit, node, edit.shape(source))
        if shapes is None:
            continue
        inputs = [_viewed(edit, i, s, name, source) for i, s in zip(node.inputs, shapes, strict=True)]
        (result,) = edit.emit_all(node.op, inputs, (None,), node.attrs)
        edit.reshape(result, target, output)
        return True
    return False


def _fuses(edit: Edit, name: str) -> bool:
    """Whether an operator behind a tensor could join the one that computes it."""
    return edit.producer(name) is not None and edit.single(name)


def _viewed(edit: Edit, name: str, shape: tuple[int, ...] | None, viewed: str, source: str) -> str:
    """An operand under the shape that fits the source."""
    if shape is None or not name:
        return name
    if name == viewed:
        return source
    above = edit.producer(name, "Reshape")
    if above is not None and edit.shape(above.inputs[0]) == shape:
        return above.inputs[0]
    return edit.reshape(name, shape)


def _shapes(edit: Edit, node: Node, source: tuple[int, ...]) -> list[tuple[int, ...] | None] | None:
    """For each operand the shape by which it broadcasts to `source`, None to leave it; None where there is no such."""
    call = edit.call(node)
    access = call.domain().access
    target = edit.shape(node.outputs[0])
    groups = groups_of(source, target)
    shapes: list[tuple[int, ...] | None] = []
    for operand, name in zip(call.operands, node.inputs, strict=True):
        own = edit.shape(name) if name else ()
        if not name or operand not in access or all(isinstance(axis, Whole) for axis in access[operand]):
            shapes.append(None)
        elif edit.types[name].size == 1:
            shapes.append(() if len(own) > len(source) else None)
        elif broadcasts(access[operand], len(target)):
            shapes.append(_broadcast(groups, (*(1,) * (len(target) - len(own)), *own), source, target))
        elif node.op == "RequantShift":
            shapes.append(_broadcast(groups, channel_shape(call, own), source, target))
        else:
            return None
    return None if UNFIT in shapes else shapes


def _broadcast(
    groups: Groups | None, own: Sequence[int], source: Sequence[int], target: Sequence[int]
) -> tuple[int, ...]:
    """An operand's shape over the axes of `source`: each group of axes is there as a whole or not at all."""
    if tuple(own) == tuple(target):
        return tuple(source)
    if groups is None:
        return UNFIT
    shape = [1] * len(source)
    for before, after in groups:
        mine = [own[axis] for axis in after]
        if mine == [target[axis] for axis in after]:
            for axis in before:
                shape[axis] = source[axis]
        elif any(extent != 1 for extent in mine):
            return UNFIT
    return tuple(shape)
