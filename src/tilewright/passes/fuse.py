"""Fuses element-wise operators behind the operator that makes their input, so that results are stored once.

A chain (bias, residual, requantisation, activation) becomes the epilogue of the convolution, product or element-wise
operator in front of it; element-wise operators that only feed another operand of the chain are drawn in as well.
"""

from __future__ import annotations

from msgspec.structs import replace

from tilewright.core.graph import Graph, Node, Result, Step
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY, call_node
from tilewright.core.sizes import extents, leading
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target


def fuse(graph: Graph, platform: Target) -> Graph:
    """The graph with every fusable element-wise operator moved into an epilogue."""
    state = _State(graph, platform)
    for name in [node.made[0] for node in graph.nodes]:
        if name in state.nodes:
            state.absorb(name)
    kept = [node for node in graph.nodes if node.made[0] in state.nodes]
    return graph.with_nodes([state.nodes[node.made[0]] for node in kept])


class _State:
    """Nodes by the first tensor they make while they merge. A merged node stands where its last part stood."""

    def __init__(self, graph: Graph, platform: Target) -> None:
        self._graph, self._platform = graph, platform
        self.nodes = {node.made[0]: node for node in graph.nodes}
        self._position = {node.made[0]: index for index, node in enumerate(graph.nodes)}
        self._absorbed: set[str] = set()
        self._users: dict[str, list[str]] = {}
        for node in graph.nodes:
            for inputs in (node.inputs, *(s.tensors for s in node.epilogue)):
                for name in inputs:
                    self._users.setdefault(name, []).append(node.made[0])
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
        if len(node.outputs) != 1 or op.kind == "view" or not leading(extents(self._graph).get(source, ())):
            return False
        return self._has_nest(node) or self._has_kernel(node)

    def _has_nest(self, node: Node) -> bool:
        """Whether a node can be a loop nest; some operators refuse with what they are told."""
        body = REGISTRY[node.op].body
        try:
            return body is not None and bool(body(call_node(self._graph, node)))
        except TilewrightError:
            return False

    def _has_kernel(self, node: Node) -> bool:
        """Whether a kernel with an epilogue fits a node that has no loop nest."""
        call = call_node(self._graph, node)
        names = binding_names(call)
        return any(
            kernel.epilogue and not why_not(kernel, call, node, self._graph, names, {})
            for kernel in self._platform.kernels_of(node.op)
        )


def _is_elementwise(node: Node) -> bool:
    op = REGISTRY[node.op]
    return op.kind == "elementwise" and len(node.outputs) == 1 and not op.appends


def _as_steps(node: Node, graph: Graph, first: int) -> tuple[Step, ...]:
    """A node's operator and epilogue as steps of which the first has the number `first`."""
    root = Step(node.op, node.inputs, call_node(graph, node).outputs[0], node.attrs)
    return (root, *(step.moved(first) for step in node.epilogue))


def _reading(step: Step, source: str, result: Result) -> Step:
    """A step that reads what was computed before instead of a tensor."""
    return replace(step, inputs=tuple(result if i == source else i for i in step.inputs))


def _behind(producer: Node, node: Node, source: str, graph: Graph) -> Node:
    """The producer with the node's operator and epilogue as its last steps."""
    last = len(producer.epilogue)
    steps = (_reading(step, source, Result(last)) for step in _as_steps(node, graph, last + 1))
    return replace(producer, outputs=node.outputs, epilogue=(*producer.epilogue, *steps))


def _drawn_in(node: Node, producer: Node, source: str, graph: Graph) -> Node:
    """The node with the producer of one of its epilogue operands computed by its first steps instead."""
    steps = _as_steps(producer, graph, 1)
    later = (_reading(_after_first(step, len(steps)), source, Result(len(steps))) for step in node.epilogue)
    return replace(node, epilogue=(*steps, *later))


def _after_first(step: Step, shift: int) -> Step:
    """A step with more steps between the node's own operator and the first one."""
    inputs = (Result(i.number + shift) if isinstance(i, Result) and i.number else i for i in step.inputs)
    return replace(step, inputs=tuple(inputs))
