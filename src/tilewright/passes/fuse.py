"""Fuses element-wise operators behind the operator that makes their input, so that results are stored once.

A chain (bias, residual, requantisation, activation) becomes the epilogue of the convolution, product or element-wise
operator in front of it; element-wise operators that only feed another operand of the chain are drawn in as well.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.graph import RESULT, Graph, Node, Step
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY, call_node
from tilewright.core.platform import Platform


def fuse(graph: Graph, platform: Platform) -> Graph:
    """The graph with every fusable element-wise operator moved into an epilogue."""
    state = _State(graph, platform)
    for name in [node.outputs[0] for node in graph.nodes]:
        if name in state.nodes:
            state.absorb(name)
    kept = [node for node in graph.nodes if node.outputs[0] in state.nodes]
    return graph.with_nodes([state.nodes[node.outputs[0]] for node in kept])


class _State:
    """Nodes by their first output while they merge. A merged node stands where its last part stood."""

    def __init__(self, graph: Graph, platform: Platform) -> None:
        self._graph, self._platform = graph, platform
        self.nodes = {node.outputs[0]: node for node in graph.nodes}
        self._position = {node.outputs[0]: index for index, node in enumerate(graph.nodes)}
        self._absorbed: set[str] = set()
        self._users: dict[str, list[str]] = {}
        for node in graph.nodes:
            for inputs in (node.inputs, *(s.inputs for s in node.epilogue)):
                for name in inputs:
                    self._users.setdefault(name, []).append(node.outputs[0])
        for name in graph.outputs:
            self._users.setdefault(name, []).append("")

    def absorb(self, name: str) -> None:
        """Merges an element-wise node with the producers of its inputs where that is possible."""
        node = self.nodes[name]
        if not _is_elementwise(node) or self._waits(name, node):
            return
        pending = list(node.reads)
        while True:
            hosts = [i for i in dict.fromkeys(node.inputs) if self._may_host(i, name)] if _is_elementwise(node) else []
            if not hosts:
                break
            source = max(hosts, key=lambda i: (self._computes(i), self._position[i]))
            host = self.nodes.pop(source)
            if source not in self._absorbed:  # else none of what it reads can be drawn in
                pending = [*host.reads, *pending]
            node = _behind(host, node, source, self._graph)
        while pending:
            source = pending.pop()
            if source not in node.inputs and self._single(source, name) and _is_elementwise(self.nodes[source]):
                producer = self.nodes.pop(source)
                node = _drawn_in(node, producer, source, self._graph)
                pending += producer.reads
        self.nodes[name] = node
        self._absorbed.add(name)

    def _waits(self, name: str, node: Node) -> bool:
        """Whether a node should be drawn in by its only user, instead of storing wide results behind its producer."""
        users = self._users.get(name, [])
        if len(users) != 1 or not users[0] or users[0] not in self.nodes or not _is_elementwise(self.nodes[users[0]]):
            return False
        types = self._graph.types
        narrow = min((types[i].dtype.bytes for i in node.inputs if i in self.nodes), default=types[name].dtype.bytes)
        return types[name].dtype.bytes > narrow and types[users[0]].shape == types[name].shape

    def _single(self, source: str, name: str) -> bool:
        """Whether a node's result is used once only and has the shape of `name`."""
        types = self._graph.types
        return source in self.nodes and len(self._users[source]) == 1 and types[source].shape == types[name].shape

    def _computes(self, source: str) -> bool:
        """Whether a tensor comes from more than element-wise work, by way of steps that are used once."""
        node = self.nodes[source]
        if not _is_elementwise(node):
            return True
        return any(self._single(i, source) and self._computes(i) for i in node.inputs)

    def _may_host(self, source: str, name: str) -> bool:
        if not self._single(source, name):
            return False
        node = self.nodes[source]
        op = REGISTRY[node.op]
        if len(node.outputs) != 1 or op.kind == "view":
            return False
        return op.body is not None or self._has_kernel(node)

    def _has_kernel(self, node: Node) -> bool:
        """Whether a kernel with an epilogue fits a node that has no loop nest."""
        call = call_node(self._graph, node)
        names = binding_names(call, call.domain())
        return any(
            kernel.op == node.op and kernel.epilogue and not why_not(kernel, call, node, self._graph, names, {})
            for kernel in self._platform.kernels
        )


def _is_elementwise(node: Node) -> bool:
    return REGISTRY[node.op].kind == "elementwise" and len(node.outputs) == 1


def _ref(index: int) -> str:
    return f"{RESULT}{index}" if index else RESULT


def _renumbered(step: Step, shift: int, names: dict[str, str]) -> Step:
    """A step whose values are numbered `shift` higher and whose tensors `names` replaces."""
    inputs = tuple(
        names[i] if i in names else _ref(int(i[1:] or "0") + shift) if i.startswith(RESULT) else i for i in step.inputs
    )
    return replace(step, inputs=inputs)


def _as_steps(node: Node, graph: Graph, first: int, names: dict[str, str]) -> tuple[Step, ...]:
    """A node's operator and epilogue as steps of which the first has the number `first`."""
    kind = call_node(graph, node).outputs[0]
    root = Step(node.op, tuple(names.get(i, i) for i in node.inputs), kind, node.attrs)
    return (root, *(_renumbered(step, first, names) for step in node.epilogue))


def _behind(producer: Node, node: Node, source: str, graph: Graph) -> Node:
    """The producer with the node's operator and epilogue as its last steps."""
    last = len(producer.epilogue)
    steps = _as_steps(node, graph, last + 1, {source: _ref(last)})
    return replace(producer, outputs=node.outputs, epilogue=(*producer.epilogue, *steps))


def _drawn_in(node: Node, producer: Node, source: str, graph: Graph) -> Node:
    """The node with the producer of one of its epilogue operands computed by its first steps instead."""
    steps = _as_steps(producer, graph, 1, {})
    moved = tuple(
        replace(
            step,
            inputs=tuple(
                _ref(len(steps))
                if i == source
                else _ref(int(i[1:]) + len(steps))
                if i.startswith(RESULT) and i != RESULT
                else i
                for i in step.inputs
            ),
        )
        for step in node.epilogue
    )
    return replace(node, epilogue=(*steps, *moved))
