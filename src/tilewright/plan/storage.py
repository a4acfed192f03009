"""Which tensors share bytes, when they live, and in which order nodes run: asked by every planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tilewright.core.graph import Graph, Node
from tilewright.core.plan import Buffer, Place
from tilewright.core.states import links, shown
from tilewright.machine.target import Target
from tilewright.plan.addresses.packing import round_up
from tilewright.plan.order import OrderedTask, order


def storage(graph: Graph) -> dict[str, str]:
    """Which tensor's bytes each tensor uses: a view those of what it shows, the new value of a state the old one's."""
    roots = shown(graph)
    states = {roots[new]: old for old, new in graph.updates.items()}
    return {name: states.get(root, root) for name, root in roots.items()}


def root_of(roots: Mapping[str, str], name: str) -> str:
    return roots.get(name, name)


def fixed(graph: Graph, roots: Mapping[str, str]) -> set[str]:
    """Tensors whose memory is given: inputs, constants, states, and what outputs of the network are made of."""
    return {*graph.inputs, *graph.constants, *(root_of(roots, output) for output in graph.outputs)}


def state_buffers(graph: Graph, platform: Target) -> list[Buffer]:
    """Places of states, held during the whole run."""
    found: list[Buffer] = []
    for old in graph.updates:
        offset = round_up(state_bytes(found), platform.alignment)
        found.append(Buffer(old, graph.types[old].bytes, 0, len(graph.nodes), Place("state", offset)))
    return found


def state_bytes(states: Sequence[Buffer]) -> int:
    return max((state.place.offset + state.bytes for state in states), default=0)


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
    tasks = [
        OrderedTask(str(i), (*node.reads, *link.needs), (*node.made, *link.makes))
        for i, (node, link) in enumerate(zip(graph.nodes, links(graph), strict=True))
    ]
    found = order(tasks, sizes, frozenset())
    return graph.with_nodes([graph.nodes[int(name)] for name in found.names])


def _depth_first(graph: Graph) -> list[Node]:
    """Each node as soon as everything it reads is there, the consumers of the newest tensor first."""
    known = {*graph.inputs, *graph.constants, ""}
    users: dict[str, list[int]] = {}
    missing: list[int] = []
    linked = links(graph)
    for index, node in enumerate(graph.nodes):
        needs = [name for name in (*node.reads, *linked[index].needs) if name not in known]
        missing.append(len(needs))
        for name in needs:
            users.setdefault(name, []).append(index)
    ready = [index for index in reversed(range(len(graph.nodes))) if not missing[index]]
    found: list[Node] = []
    while ready:
        at = ready.pop()
        node = graph.nodes[at]
        found.append(node)
        freed: list[int] = []
        for output in (*node.outputs, *linked[at].makes):
            for index in users.get(output, ()):
                missing[index] -= 1
                if not missing[index]:
                    freed.append(index)
        ready += sorted(freed, reverse=True)
    return found
