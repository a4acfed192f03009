"""Which tensors share bytes, when they live, and in which order nodes run: asked by every planner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tilewright.core.graph import Graph, Node
from tilewright.core.op import REGISTRY
from tilewright.plan.order import Task, order


def is_view(node: Node) -> bool:
    """Whether a node does nothing: its result is its input, seen otherwise."""
    return REGISTRY[node.op].kind == "view" and not node.epilogue


def storage(graph: Graph) -> dict[str, str]:
    """Which tensor's bytes each tensor uses: views point at the tensor they are a view of."""
    roots: dict[str, str] = {}
    for node in graph.nodes:
        for output in node.made:
            viewed = is_view(node) and output == node.outputs[0]
            roots[output] = roots.get(node.inputs[0], node.inputs[0]) if viewed else output
    return roots


def root_of(roots: Mapping[str, str], name: str) -> str:
    return roots.get(name, name)


def fixed(graph: Graph, roots: Mapping[str, str]) -> set[str]:
    """Tensors whose memory is given: inputs, constants, and what outputs of the network are made of."""
    return {*graph.inputs, *graph.constants, *(root_of(roots, output) for output in graph.outputs)}


def tensors(graph: Graph) -> list[str]:
    """Every tensor, each once."""
    seen = dict.fromkeys([*graph.inputs, *graph.outputs])
    for node in graph.nodes:
        seen.update(dict.fromkeys((*node.reads, *(o for o in node.outputs if o))))
    return list(seen)


def in_order(graph: Graph, roots: Mapping[str, str], wish: Literal["memory", "time", "given"] = "memory") -> Graph:
    """The graph in execution order; views stay behind what they view."""
    if wish == "given":
        return graph
    if wish == "time":
        return graph.with_nodes(_depth_first(graph))
    outside = fixed(graph, roots)
    sizes = {
        name: kind.bytes for name, kind in graph.types.items() if name not in outside and root_of(roots, name) == name
    }
    tasks = [Task(str(i), tuple(node.reads), tuple(o for o in node.outputs if o)) for i, node in enumerate(graph.nodes)]
    found = order(tasks, sizes, frozenset())
    return graph.with_nodes([graph.nodes[int(name)] for name in found.names])


def _depth_first(graph: Graph) -> list[Node]:
    """Each node as soon as everything it reads is there, the consumers of the newest tensor first."""
    known = {*graph.inputs, *graph.constants, ""}
    users: dict[str, list[int]] = {}
    missing: list[int] = []
    for index, node in enumerate(graph.nodes):
        needs = [name for name in node.reads if name not in known]
        missing.append(len(needs))
        for name in needs:
            users.setdefault(name, []).append(index)
    ready = [index for index in reversed(range(len(graph.nodes))) if not missing[index]]
    found: list[Node] = []
    while ready:
        node = graph.nodes[ready.pop()]
        found.append(node)
        freed: list[int] = []
        for output in node.outputs:
            for index in users.get(output, ()):
                missing[index] -= 1
                if not missing[index]:
                    freed.append(index)
        ready += sorted(freed, reverse=True)
    return found
