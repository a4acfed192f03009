"""QDQ networks become integer ones.

One walk over the nodes: a dequantised tensor is only remembered as its integers (a Form); an operator on such tensors waits
until somebody quantises its result, and is then emitted on integers with a requantisation behind it. Whatever has no integer
rule, or whose result is needed as a float, is emitted as it was. Moves work on the integers directly.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.graph import Graph, Node
from tilewright.core.op import REGISTRY
from tilewright.core.platform import Platform
from tilewright.quantize.builder import Builder
from tilewright.quantize.forms import Form, Scheme, codes, dequantised, quantised, scheme_of
from tilewright.quantize.rules import RULES, Function, Operand, function_of, lookup

ORDER_KEEPING = frozenset({"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"})
"""Operators that pick values without computing any, so that they may pick integers instead."""


def to_integers(graph: Graph, platform: Platform) -> Graph:
    """The network with dequantise, compute, quantise turned into integer operators."""
    del platform
    if not any(node.op == "DequantizeLinear" for node in graph.nodes):
        return graph
    return _Walk(graph).result()


class _Walk:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._builder = Builder(graph)
        self._forms: dict[str, Form] = {}
        self._waiting: dict[str, Node] = {}
        self._there = {*graph.inputs, *graph.constants}
        self._renamed: dict[str, str] = {}

    def result(self) -> Graph:
        for node in self._graph.nodes:
            self._visit(node)
        outputs = [self._output(name) for name in self._graph.outputs]
        return self._graph.with_nodes(
            _needed(self._builder.nodes, outputs),
            types=self._builder.types,
            constants=self._builder.constants,
            outputs=outputs,
        )

    def _output(self, name: str) -> str:
        if name in self._renamed and self._renamed[name] != name:
            return self._builder.emit("Identity", (self._renamed[name],), name)
        return self._real(name)

    # The walk

    def _visit(self, node: Node) -> None:
        self._builder.label = node.name
        if node.op == "QuantizeLinear" and self._visit_quantise(node):
            return
        if node.op == "DequantizeLinear" and self._visit_dequantise(node):
            return
        form = self._forms.get(node.inputs[0]) if node.inputs else None
        if form and form.scheme.per_tensor and self._moves(node):
            self._move(node, form)
        elif len(node.outputs) == 1 and self._may_wait(node):
            self._waiting[node.outputs[0]] = node
        else:
            self._emit_as_is(node)

    def _visit_quantise(self, node: Node) -> bool:
        output = node.outputs[0]
        scheme = scheme_of(self._graph, node, self._graph.types[output].dtype)
        if scheme is None or not scheme.per_tensor or scheme.dtype.bits != 8:
            return False
        self._renamed[output] = self._integers(node.inputs[0], scheme, output)
        return True

    def _visit_dequantise(self, node: Node) -> bool:
        source = self._renamed.get(node.inputs[0], node.inputs[0])
        scheme = scheme_of(self._graph, node, self._graph.types[node.inputs[0]].dtype)
        if scheme is None or not (scheme.per_tensor or source in self._graph.constants):
            return False
        self._forms[node.outputs[0]] = Form(source, scheme)
        return True

    def _moves(self, node: Node) -> bool:
        """Whether a node only moves the values of its first input."""
        if node.op in ORDER_KEEPING:
            return len(node.outputs) == 1
        if REGISTRY[node.op].kind not in ("view", "move") or node.op in RULES:
            return False
        return not any(self._graph.types[i].dtype.is_float for i in node.inputs[1:] if i)

    def _move(self, node: Node, form: Form) -> None:
        names = tuple(self._builder.fresh(f"{o}_integers") if o else "" for o in node.outputs)
        inputs = (form.tensor, *(self._renamed.get(i, i) for i in node.inputs[1:]))
        self._builder.add(replace(node, inputs=inputs, outputs=names))
        self._forms.update({o: Form(n, form.scheme) for o, n in zip(node.outputs, names, strict=True) if o})

    def _may_wait(self, node: Node) -> bool:
        """Whether every real input of a node is known as integers, is constant, or waits itself."""
        if node.op not in RULES and REGISTRY[node.op].kind != "elementwise":
            return False
        real = [i for i in node.inputs if i and self._graph.types[i].dtype.is_float]
        known = [i for i in real if i in self._forms or i in self._waiting]
        return bool(known) and all(i in known or i in self._graph.constants for i in real)

    def _emit_as_is(self, node: Node) -> None:
        inputs = tuple(self._real(i) if i else "" for i in node.inputs)
        self._builder.add(replace(node, inputs=inputs))
        self._there.update(node.outputs)

    # Tensors on demand

    def _real(self, name: str) -> str:
        """A tensor as it was in the network; emits what has not been emitted yet."""
        if name in self._renamed:
            return self._renamed[name]
        if name in self._there:
            return name
        if name in self._forms:
            form = self._forms[name]
            self._builder.dequantise(form.tensor, form.scheme, name)
        elif name in self._waiting:
            self._emit_as_is(self._waiting.pop(name))
        self._there.add(name)
        return name

    def _integers(self, name: str, scheme: Scheme, output: str) -> str:
        """A tensor in a scheme; where new nodes are needed, the last one makes `output`."""
        form = self._forms.get(name)
        if form and form.scheme.same(scheme):
            return form.tensor
        if form and form.scheme.per_tensor and form.scheme.dtype.bits == 8:
            table = quantised(dequantised(codes(form.scheme.dtype), form.scheme), scheme)
            return lookup(self._builder, form.tensor, table, output)
        node = self._waiting.get(name)
        if node is not None and name not in self._there:
            made = self._by_rule(node, scheme, output)
            if made is not None:
                return made
        return self._builder.quantise(self._real(name), scheme, output)

    def _by_rule(self, node: Node, scheme: Scheme, output: str) -> str | None:
        rule = RULES.get(node.op, RULES["elementwise"])
        self._builder.label = node.name or node.outputs[0]
        return rule(self._builder, self._graph, node, self._operands(node, scheme, output), scheme, output)

    def _operands(self, node: Node, scheme: Scheme, output: str) -> list[Operand | None]:
        return [self._operand(name, scheme, output) if name else None for name in node.inputs]

    def _operand(self, name: str, scheme: Scheme, output: str) -> Operand:
        form, constant = self._forms.get(name), self._graph.constants.get(name)
        node = self._waiting.get(name)
        if node is None or name in self._there:
            return Operand(name, form, constant)

        def integers() -> str:
            return self._integers(name, scheme, self._builder.fresh(f"{output}_unclamped"))

        def function() -> Function | None:
            return function_of(self._builder, self._graph, node, self._operands(node, scheme, output))

        return Operand(name, form, constant, integers, function)


def _needed(nodes: list[Node], outputs: list[str]) -> list[Node]:
    """Nodes that an output depends on, in order."""
    wanted = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            kept.append(node)
            wanted.update(node.reads)
    return kept[::-1]
