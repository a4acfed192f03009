"""Lets new values of states be written over the old ones: behind their last reader, or point by point.

Where that cannot be, the new value is made elsewhere and copied at the end of the run.
"""

from __future__ import annotations

from msgspec.structs import replace

from tilewright.core.graph import FreshNames, Graph, Node, attrs
from tilewright.core.op import REGISTRY
from tilewright.core.states import in_order, point_by_point, shown
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target


def states(graph: Graph, platform: Target) -> Graph:
    """The graph in an order in which every state is written behind all nodes that read its old value."""
    del platform
    settled: list[str] = []
    for old in graph.updates:
        settled.append(old)
        graph = _told(graph, old) if _in_place(graph, old, settled) else _copied(graph, old)
    return in_order(graph) if graph.states else graph


def _in_place(graph: Graph, old: str, settled: list[str]) -> bool:
    """Whether the node that makes the new value may write it over the old one, where other states do so, too."""
    roots, new = shown(graph), graph.updates[old]
    writer = next(node for node in graph.nodes if roots[new] in node.made)
    reads = [name for name in writer.reads if roots.get(name, name) == old]
    if reads and (reads != [old] or new != writer.outputs[0] or not point_by_point(graph, writer, old)):
        return False
    try:
        in_order(graph, only=settled)
    except TilewrightError:
        return False
    return True


def _told(graph: Graph, old: str) -> Graph:
    """A node that appends rows is told that it writes over the state: others are there."""
    new = graph.updates[old]
    nodes = [
        replace(node, attrs=attrs(**{**node.attrs, "in_place": 1}))
        if REGISTRY[node.op].appends and node.inputs[0] == old and node.outputs[0] == new
        else node
        for node in graph.nodes
    ]
    return graph.with_nodes(nodes)


def _copied(graph: Graph, old: str) -> Graph:
    new = graph.updates[old]
    copy = FreshNames(graph).fresh(f"{new}_kept")
    outputs = [copy if name == new else name for name in graph.outputs]
    node = Node("Copy", (new,), (copy,), name=copy)
    return graph.with_nodes([*graph.nodes, node], types={copy: graph.types[new]}, outputs=outputs)
