"""Tells requantisations how large their inputs can get, so that they compute in as few bits as are needed."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from tilewright.core.graph import Graph, Node, TensorType
from tilewright.core.op import REGISTRY, call_node
from tilewright.machine.target import Target


def requant_limits(graph: Graph, platform: Target) -> Graph:
    """The graph with the `x_limit` of every RequantShift that the operators before it bound."""
    del platform
    if not any(node.op == "RequantShift" for node in graph.nodes):
        return graph
    limits = Magnitudes(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes.append(limits.told(node) if node.op == "RequantShift" else node)
        limits.add(node)
    return graph.with_nodes(nodes)


def _most(kind: TensorType) -> int:
    return max(-kind.dtype.lo, kind.dtype.hi)


class Magnitudes:
    """The largest magnitudes of the integer tensors computed so far; others are limited by their type alone."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[str, int] = {}

    def of(self, name: str) -> int:
        if name not in self._known:
            value, kind = self._graph.constants.get(name), self._graph.types[name]
            if value is not None and value.size and kind.dtype.is_integer:
                self._known[name] = max(-int(value.min()), int(value.max()))
            else:
                self._known[name] = _most(kind)
        return self._known[name]

    def add(self, node: Node) -> None:
        op, types = REGISTRY[node.op], self._graph.types
        sources = [name for name in node.inputs if name]
        if not node.outputs[0] or not all(types[name].dtype.is_integer for name in (*sources[:1], node.outputs[0])):
            return
        if op.kind == "view" and types[sources[0]].dtype == types[node.outputs[0]].dtype:
            self._known[node.outputs[0]] = self.of(sources[0])
        elif op.limit is not None and all(types[name].dtype.is_integer for name in sources):
            call = call_node(self._graph, node)
            given = {o: self.of(name) for o, name in zip(call.operands, node.inputs, strict=False) if name}
            self._known[node.outputs[0]] = min(op.limit(call, given), _most(types[node.outputs[0]]))

    def told(self, node: Node) -> Node:
        limit = max(1, self.of(node.inputs[0]))
        given = node.attrs.get("x_limit") or 0
        if limit >= (given if isinstance(given, int) and given else _most(self._graph.types[node.inputs[0]])):
            return node
        return replace(node, attrs=MappingProxyType({**node.attrs, "x_limit": limit}))
