"""Gives every output memory of its own: one that is an input, a constant or a view of another output is copied."""

from __future__ import annotations

from tilewright.core.graph import FreshNames, Graph, Node
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target


def outputs(graph: Graph, platform: Target) -> Graph:
    """The graph with a Copy for each output that would share its bytes with an input, a constant or another output."""
    del platform
    storage = {name: name for name in (*graph.inputs, *graph.constants)}
    for node in graph.nodes:
        view = REGISTRY[node.op].kind == "view" and not node.epilogue
        for index, output in enumerate(node.outputs):
            storage[output] = storage[node.inputs[0]] if view and index == 0 else output
    taken = {*graph.inputs, *graph.constants}
    names = FreshNames(graph)
    results: list[str] = []
    copies: list[Node] = []
    for name in graph.outputs:
        if storage[name] in taken:
            copy = names.fresh(f"{name}_output")
            copies.append(Node("Copy", (name,), (copy,), name=copy))
            results.append(copy)
        else:
            taken.add(storage[name])
            results.append(name)
    if not copies:
        return graph
    types = {node.outputs[0]: graph.types[node.inputs[0]] for node in copies}
    return graph.with_nodes([*graph.nodes, *copies], types=types, outputs=results)
