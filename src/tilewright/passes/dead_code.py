"""Removes nodes whose results nothing needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target


def dead_code(graph: Graph, platform: Target) -> Graph:
    """The graph with the nodes alone that some output depends on."""
    del platform
    kept = live(graph.nodes, graph.outputs)
    return graph if len(kept) == len(graph.nodes) else graph.with_nodes(kept)


def live(nodes: Sequence[Node], outputs: Iterable[str]) -> list[Node]:
    """The nodes, in the same order, that `outputs` depend on."""
    needed = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(node.reads)
    kept.reverse()
    return kept
