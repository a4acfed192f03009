"""QDQ networks become integer ones.

One walk over the nodes: a dequantised tensor is only remembered as its integers (a Form); an operator on such tensors
waits until somebody quantises its result, and is then emitted on integers with a requantisation behind it. Whatever has
no integer rule, or whose result is needed as a float, is emitted as it was. Moves work on the integers directly.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tilewright.core.graph import Graph, Node
from tilewright.core.op import REGISTRY, call_node, evaluate
from tilewright.machine.target import Target
from tilewright.quantize.builder import GraphBuilder
from tilewright.quantize.dynamic import to_plain_products
from tilewright.quantize.forms import Form, Scheme, dequantised, quantised, scheme_of
from tilewright.quantize.qoperator import to_qdq
from tilewright.quantize.rules import RULES, function_of
from tilewright.quantize.site import ByteFunction, QuantizedInput, Site, in_scheme

ORDER_KEEPING = frozenset({"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"})
"""Operators that pick values without computing any, so that they may pick integers instead."""
FILL = "constant_value"
"""The input of a move that fills in a number of its own; without one, moves that fill in anything fill in zeros."""
ZERO_FILLING = frozenset({"Pad", "CenterCropPad"})


def to_integers(graph: Graph, platform: Target) -> Graph:
    """The network with dequantise, compute, quantise turned into integer operators."""
    del platform
    spelled = to_qdq(to_plain_products(graph))
    if not any(node.op == "DequantizeLinear" for node in spelled.nodes):
        return spelled
    return _Walk(spelled).result()


class _Walk:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._builder = GraphBuilder(graph)
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
        if node.op in ("QuantizeLinear", "DequantizeLinear"):
            known = self._visit_quantise(node) if node.op == "QuantizeLinear" else self._visit_dequantise(node)
            if not known:
                self._emit_as_is(node)
            return
        form = self._forms.get(node.inputs[0]) if node.inputs else None
        if form and self._moves(node) and self._move(node, form):
            return
        if len(node.outputs) == 1 and self._may_wait(node):
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
        return REGISTRY[node.op].kind in ("view", "move") and node.op not in RULES

    def _move(self, node: Node, form: Form) -> bool:
        """A move on integers; False where something that it fills in is no integer of the scheme."""
        if not form.scheme.per_tensor:
            return self._move_channels(node, form)
        further = self._further(node, form.scheme)
        if further is None:
            return False
        names = tuple(self._builder.fresh(f"{o}_integers") if o else "" for o in node.outputs)
        self._builder.add(replace(node, inputs=(form.tensor, *further), outputs=names))
        self._forms.update({o: Form(n, form.scheme) for o, n in zip(node.outputs, names, strict=True) if o})
        return True

    def _further(self, node: Node, scheme: Scheme) -> list[str] | None:
        """The other inputs of a move, with the number it fills in as an integer."""
        operands = call_node(self._graph, node).operands
        further = [self._renamed.get(name, name) for name in node.inputs[1:]]
        fill = np.zeros(1, np.float32)
        for index, (operand, name) in enumerate(zip(operands, node.inputs, strict=True)):
            if index and name and self._graph.types[name].dtype.is_float:
                value = self._graph.constants.get(name)
                if operand != FILL or value is None:
                    return None
                fill = value.reshape(-1)[:1]
        if node.op not in ZERO_FILLING or node.attrs.get("mode", "constant") != "constant":
            return further
        code = quantised(fill, scheme)
        if dequantised(code, scheme) != fill:
            return None
        names = REGISTRY[node.op].operand_names(len(REGISTRY[node.op].inputs.split()))
        if FILL in names:
            at = names.index(FILL) - 1
            further += [""] * (at + 1 - len(further))
            further[at] = self._builder.constant(f"{node.outputs[0]}_fill", code.reshape(()))
            return further
        return further if scheme.zero == 0 else None

    def _move_channels(self, node: Node, form: Form) -> bool:
        """A move of constants with one scale per channel, where the result has one scale per channel as well."""
        stored, axis = self._builder.constants.get(form.tensor), form.scheme.axis
        values = [self._graph.constants.get(name) for name in node.inputs[1:]]
        if stored is None or axis is None or len(node.outputs) != 1 or node.op in ORDER_KEEPING | ZERO_FILLING:
            return False
        if any(name and value is None for name, value in zip(node.inputs[1:], values, strict=True)):
            return False
        shape = [-1 if i == axis % stored.ndim else 1 for i in range(stored.ndim)]
        scales = np.broadcast_to(form.scheme.scale.reshape(shape), stored.shape)
        call = call_node(self._graph, node)
        (moved,) = evaluate(call, [scales, *values])
        for target in range(moved.ndim):
            line = np.moveaxis(moved, target, 0).reshape(moved.shape[target], -1)
            if line.size and np.all(line == line[:, :1]):
                name = self._builder.fresh(f"{node.outputs[0]}_integers")
                self._builder.add(replace(node, inputs=(form.tensor, *node.inputs[1:]), outputs=(name,)))
                scheme = replace(form.scheme, scale=line[:, 0], axis=target)
                self._forms[node.outputs[0]] = Form(name, scheme)
                return True
        return False

    def _may_wait(self, node: Node) -> bool:
        """Whether every real input of a node is known as integers, is constant, or waits itself."""
        if node.op not in RULES and REGISTRY[node.op].kind != "elementwise":
            return False
        if not self._graph.types[node.outputs[0]].dtype.is_float:
            return False
        real = [i for i in node.inputs if i and self._graph.types[i].dtype.is_float]
        known = [i for i in real if i in self._forms or i in self._waiting]
        return bool(known) and all(i in known or i in self._graph.constants for i in real)

    def _emit_as_is(self, node: Node) -> None:
        inputs = tuple(self._real(i) if i else "" for i in node.inputs)
        self._builder.add(replace(node, inputs=inputs))
        self._there.update(node.made)

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
        if form and form.scheme.per_tensor and form.scheme.dtype.bits == 8:
            return in_scheme(self._builder, form, scheme, output)
        node = self._waiting.get(name)
        if node is not None and name not in self._there:
            made = self._by_rule(node, scheme, output)
            if made is not None:
                return made
        return self._builder.quantise(self._real(name), scheme, output)

    def _by_rule(self, node: Node, scheme: Scheme, output: str) -> str | None:
        rule = RULES.get(node.op, RULES["elementwise"])
        self._builder.label = node.label
        return rule(self._site(node, scheme, output))

    def _site(self, node: Node, scheme: Scheme, output: str) -> Site:
        operands = [self._operand(name, scheme, output) if name else None for name in node.inputs]
        return Site(self._builder, self._graph, node, operands, scheme, output)

    def _operand(self, name: str, scheme: Scheme, output: str) -> QuantizedInput:
        form, constant = self._forms.get(name), self._graph.constants.get(name)
        node = self._waiting.get(name)
        if node is None or name in self._there:
            return QuantizedInput(name, form, constant)

        def integers() -> str:
            return self._integers(name, scheme, self._builder.fresh(f"{output}_unclamped"))

        def function() -> ByteFunction | None:
            return function_of(self._site(node, scheme, output))

        return QuantizedInput(name, form, constant, integers, function)


def _needed(nodes: list[Node], outputs: list[str]) -> list[Node]:
    """Nodes that an output depends on, in order."""
    wanted = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            kept.append(node)
            wanted.update(node.reads)
    return kept[::-1]
