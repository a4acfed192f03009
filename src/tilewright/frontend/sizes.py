"""Sizes that are known when a network runs: their inputs, caches that grow, and values that depend on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT32
from tilewright.core.graph import Array, Bound, FreshNames, Graph, Node, TensorType, attrs
from tilewright.core.op import REGISTRY, call_node
from tilewright.core.sizes import extents
from tilewright.errors import TilewrightError

Axes = Mapping[str, tuple[tuple[int, str, int], ...]]


def with_sizes(graph: Graph, bounds: Sequence[Bound], axes: Axes, states: int) -> Graph:
    """The graph with an input for each size, behind its own and before those of states."""
    names = FreshNames(graph)
    called = {bound.name: names.fresh(bound.name) for bound in bounds}
    known = {name: tuple((axis, called[b], more) for axis, b, more in found) for name, found in axes.items()}
    own = len(graph.inputs) - states
    return replace(
        graph,
        inputs=(*graph.inputs[:own], *called.values(), *graph.inputs[own:]),
        types=MappingProxyType({**graph.types, **{name: TensorType(INT32, ()) for name in called.values()}}),
        bounds=tuple(replace(bound, name=called[bound.name]) for bound in bounds),
        open=MappingProxyType(known),
    )


def grown(graph: Graph, old: str, new: str) -> Graph | None:
    """The graph with a state as large as it may get, to which rows are appended; None where it does not grow so."""
    node = next((n for n in graph.nodes if new in n.made), None)
    users = [n for n in graph.nodes if old in n.reads]
    found = graph.open.get(old, ())
    if node is None or not REGISTRY[node.op].joins or len(node.inputs) != 2 or node.inputs[0] != old or users != [node]:
        return None
    axis = call_node(graph, node).axis("axis", graph.types[old].rank)
    if len(found) != 1 or found[0][0] != axis or found[0][2]:
        return None
    least = next(bound.low for bound in graph.bounds if bound.name == found[0][1])
    told = attrs(axis=axis, least=least)
    append = Node("Append", (old, node.inputs[1], found[0][1]), node.outputs, told, node.name)
    nodes = [append if other is node else other for other in graph.nodes]
    return graph.with_nodes(nodes, types={old: graph.types[new]})


def check_sizes(graph: Graph, other: Graph) -> None:
    """An error where a value of the network depends on a size: `other` is the network with a smaller one."""
    same = [node.op for node in graph.nodes] == [node.op for node in other.nodes]
    for mine, theirs in zip(graph.nodes, other.nodes, strict=False):
        op = REGISTRY[mine.op]
        operands = op.operand_names(len(mine.inputs))
        # What an operator does to a tensor with a size is looked at in `core.sizes`.
        free = op.compile_time if any(name in extents(graph) for name in mine.reads) else frozenset[str]()
        values = [
            (graph.constants.get(a), other.constants.get(b))
            for operand, a, b in zip(operands, mine.inputs, theirs.inputs, strict=False)
            if operand not in free
        ]
        if not (same and mine.attrs == theirs.attrs and all(map(_equal, values))):
            raise TilewrightError(
                "bad-size",
                f"{mine.op} '{mine.label}' computes with the value of a size that is known when the network runs",
                reasons=["at compile time it is a constant, which is another one for another size"],
                help="fix the dimension with --dim NAME=N, or give the value to the network as an input",
            )


def _equal(pair: tuple[Array | None, Array | None]) -> bool:
    a, b = pair
    return a is b or (a is not None and b is not None and a.shape == b.shape and bool(np.array_equal(a, b)))
