"""Fuses element-wise operators behind the operator that makes their input, so that results are stored once.

A chain (bias, residual, requantisation, activation) becomes the epilogue of the convolution, product or element-wise
operator in front of it; element-wise operators that only feed another operand of the chain are drawn in as well.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.graph import RESULT, Graph, Node, Step
from tilewright.core.op import REGISTRY, call_node
from tilewright.core.platform import Platform


def fuse(graph: Graph, platform: Platform) -> Graph:
    """The graph with every fusable element-wise operator moved into an epilogue."""
    hosts = {k.op for k in platform.kernels if k.epilogue} - {k.op for k in platform.kernels if not k.epilogue}
    state = _State(graph, hosts)
    for name in [node.outputs[0] for node in graph.nodes]:
        if name in state.nodes:
            state.absorb(name)
    kept = [node for node in graph.nodes if node.outputs[0] in state.nodes]
    return graph.with_nodes([state.nodes[node.outputs[0]] for node in kept])


class _State:
    """Nodes by their first output while they merge. A merged node stands where its last part stood."""

    def __init__(self, graph: Graph, hosts: set[str]) -> None:
        self._graph, self._hosts = graph, hosts
        self.nodes = {node.outputs[0]: node for node in graph.nodes}
        self._uses: dict[str, int] = {}
        for node in graph.nodes:
            for step_inputs in (node.inputs, *(s.inputs for s in node.epilogue)):
                for name in step_inputs:
                    self._uses[name] = self._uses.get(name, 0) + 1
        for name in graph.outputs:
            self._uses[name] = self._uses.get(name, 0) + 1

    def absorb(self, name: str) -> None:
        """Merges a node with the producers of its inputs where that is possible."""
        node = self.nodes[name]
        if not _is_elementwise(node):
            return
        for source in reversed([i for i in dict.fromkeys(node.inputs) if i in self.nodes]):
            producer = self.nodes[source]
            if self._uses[source] == 1 and self._hosts_epilogue(producer) and self._same_shape(source, name):
                node = _behind(producer, node, source, self._graph)
                del self.nodes[source]
                break
        for source in node.reads:
            producer = self.nodes.get(source)
            if (
                producer
                and source not in node.inputs
                and self._uses[source] == 1
                and _is_elementwise(producer)
                and self._same_shape(source, name)
            ):
                node = _drawn_in(node, producer, source, self._graph)
                del self.nodes[source]
        self.nodes[name] = node

    def _same_shape(self, left: str, right: str) -> bool:
        return self._graph.types[left].shape == self._graph.types[right].shape

    def _hosts_epilogue(self, node: Node) -> bool:
        op = REGISTRY[node.op]
        if len(node.outputs) != 1 or op.kind == "view":
            return False
        return op.body is not None or node.op in self._hosts


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
