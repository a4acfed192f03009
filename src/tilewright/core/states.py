"""When the new value of a state may be written over the old one: behind all nodes that read the old one.

Said as tensors of no bytes that those nodes make and the writer needs, so that whatever orders nodes keeps to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.domain import Axis
from tilewright.core.graph import FreshNames, Graph, Node, topological
from tilewright.core.op import REGISTRY, call_node, call_steps


class Linked(Struct, frozen=True):
    """What a node waits for and what waits for it, besides tensors."""

    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()


def shown(graph: Graph) -> dict[str, str]:
    """For each tensor that a node makes the one whose bytes it is: itself, or what it is a view of."""
    roots: dict[str, str] = {}
    for node in graph.nodes:
        for output in node.made:
            viewed = REGISTRY[node.op].kind == "view" and not node.epilogue and output == node.outputs[0]
            roots[output] = roots.get(node.inputs[0], node.inputs[0]) if viewed else output
    return roots


def links(graph: Graph, *, only: Sequence[str] | None = None) -> list[Linked]:
    """By node: the writer of a state comes behind all other nodes that read it; `only` names some of the states."""
    roots, names = shown(graph), FreshNames(graph)
    needs: dict[int, list[str]] = {}
    makes: dict[int, list[str]] = {}
    for old, new in graph.updates.items():
        if only is not None and old not in only:
            continue
        written = roots.get(new, new)
        writer = next((i for i, node in enumerate(graph.nodes) if written in node.made), None)
        for index, node in enumerate(graph.nodes):
            if writer not in (None, index) and any(roots.get(name, name) == old for name in node.reads):
                token = names.fresh(f"{old} is read")
                makes.setdefault(index, []).append(token)
                needs.setdefault(writer or 0, []).append(token)
    count = range(len(graph.nodes))
    return [Linked(tuple(needs.get(index, ())), tuple(makes.get(index, ()))) for index in count]


def in_order(graph: Graph, *, only: Sequence[str] | None = None) -> Graph:
    """The graph with its nodes in an order that keeps to `links`; an error where there is none."""
    found = zip(graph.nodes, links(graph, only=only), strict=True)
    standing = [
        replace(node, inputs=(*node.reads, *link.needs), outputs=(*node.made, *link.makes), epilogue=())
        for node, link in found
    ]
    original = {id(stand_in): node for stand_in, node in zip(standing, graph.nodes, strict=True)}
    known = (*graph.inputs, *graph.constants)
    return graph.with_nodes([original[id(stand_in)] for stand_in in topological(standing, known)])


def point_by_point(graph: Graph, node: Node, name: str) -> bool:
    """Whether an element-wise node reads a tensor only at the indices of its result."""
    if REGISTRY[node.op].kind != "elementwise" or graph.types[name].shape != graph.types[node.outputs[0]].shape:
        return False
    own = call_node(graph, node)
    calls = (own, *call_steps(graph, node))
    for call, inputs in zip(calls, (node.inputs, *(step.inputs for step in node.epilogue)), strict=True):
        access = call.domain().access
        result: tuple[Axis, ...] = access[call.op.output_names(1)[0]]
        if any(read == name and access.get(o) != result for o, read in zip(call.operands, inputs, strict=True)):
            return False
    return True
