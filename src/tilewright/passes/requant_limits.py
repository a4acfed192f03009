"""Tells requantisations how large their inputs can get, so that they compute in as few bits as are needed."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.core.graph import Array, Graph, Node, TensorType
from tilewright.core.op import REGISTRY, call_node
from tilewright.machine.target import Target
from tilewright.ops.requant_shift import broadcastable


def requant_limits(graph: Graph, platform: Target) -> Graph:
    """The graph with the limits of every RequantShift that the operators before it bound."""
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
        self._columns: dict[str, Array] = {}
        """Those of each column of products with known matrices."""

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
            weights = call.known("B") if node.op == "MatMul" and call.type("B").rank == 2 else None
            if weights is not None and not any(call.int(f"{operand}_zero_point") for operand in "ab"):
                turned = weights.T if call.int("transB") else weights
                self._columns[node.outputs[0]] = np.abs(turned.astype(np.int64)).sum(axis=0) * given["A"]

    def told(self, node: Node) -> Node:
        limit = max(1, self.of(node.inputs[0]))
        given = node.attrs.get("x_limit") or 0
        total = self._total(node, limit)
        found = {"total_limit": total} if total else {}
        if limit < (given if isinstance(given, int) and given else _most(self._graph.types[node.inputs[0]])):
            found["x_limit"] = limit
        return replace(node, attrs=MappingProxyType({**node.attrs, **found})) if found else node

    def _total(self, node: Node, limit: int) -> int:
        """The largest |x * mul| + |add|, where more is known of it than of each operand that is a constant; else 0."""
        columns, call = self._columns.get(node.inputs[0]), call_node(self._graph, node)
        mul, add = call.known("mul"), call.known("add")
        if mul is None or add is None:
            x, *most = (_most(self._graph.types[name]) for name in node.inputs)
            total = limit * self.of(node.inputs[1]) + self.of(node.inputs[2])
            return max(1, total) if total < x * most[0] + most[1] else 0
        if columns is None or not columns.size:
            return 0
        wide = [np.abs(broadcastable(call, name, array)) for name, array in (("mul", mul), ("add", add))]
        return max(1, int((columns * wide[0] + wide[1]).max()))
