"""Builds small graphs and checks that a pass keeps their meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

import numpy as np

from tilewright.core.graph import Array, Attr, Graph, Node, TensorType, type_of_array
from tilewright.core.interpret import interpret
from tilewright.core.op import call_of, parse_type
from tilewright.core.text import print_graph
from tilewright.machine import DEFAULT_PLATFORM
from tilewright.machine.target import Target, load_platform
from tilewright.ops import operators

Pass = Callable[[Graph, Target], Graph]
Operand = str | Array | Sequence[int] | float


class Builder:
    """Adds nodes one after the other; arrays and numbers among operands become constants."""

    def __init__(self) -> None:
        self._types: dict[str, TensorType] = {}
        self._constants: dict[str, Array] = {}
        self._inputs: list[str] = []
        self._nodes: list[Node] = []
        self._rng = np.random.default_rng(7)

    def input(self, name: str, kind: str) -> str:
        self._types[name] = parse_type(kind)
        self._inputs.append(name)
        return name

    def weights(self, *shape: int, dtype: str = "float32") -> Array:
        """Seeded noise."""
        if np.dtype(dtype).kind == "f":
            return self._rng.normal(size=shape).astype(dtype)
        return self._rng.integers(-20, 20, shape).astype(dtype)

    def op(self, op: str, *operands: Operand, name: str = "", **attributes: Attr) -> str:
        """A node with one output."""
        return self.ops(op, *operands, names=(name,), **attributes)[0]

    def ops(self, op: str, *operands: Operand, names: tuple[str, ...], **attributes: Attr) -> tuple[str, ...]:
        """A node with several outputs."""
        inputs = tuple(self._operand(operand) for operand in operands)
        call = call_of(
            operators()[op],
            [self._types[i] if i else None for i in inputs],
            MappingProxyType(attributes),
            values=[self._constants.get(i) for i in inputs],
            wanted=len(names),
        )
        outputs = tuple(name or f"t{len(self._nodes)}" for name in names)
        self._types |= dict(zip(outputs, call.outputs, strict=True))
        self._nodes.append(Node(op, inputs, outputs, MappingProxyType(attributes)))
        return outputs

    def graph(self, *outputs: str) -> Graph:
        return Graph(
            "test",
            tuple(self._inputs),
            outputs,
            tuple(self._nodes),
            MappingProxyType(self._types),
            MappingProxyType(self._constants),
        )

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, str):
            return operand
        array = np.asarray(operand)
        if isinstance(operand, float):
            array = array.astype(np.float32)
        name = f"c{len(self._constants)}"
        self._constants[name] = array
        self._types[name] = type_of_array(array)
        return name


def platform() -> Target:
    return load_platform(DEFAULT_PLATFORM)


def noise(graph: Graph, seed: int = 0) -> list[Array]:
    """Inputs for a graph."""
    rng = np.random.default_rng(seed)
    arrays: list[Array] = []
    for name in graph.inputs:
        kind = graph.types[name]
        if kind.dtype.is_float:
            arrays.append(rng.normal(size=kind.shape).astype(kind.dtype.numpy))
        else:
            arrays.append(rng.integers(max(-50, kind.dtype.lo), 50, kind.shape).astype(kind.dtype.numpy))
    return arrays


def applied(graph: Graph, step: Pass) -> Graph:
    """The graph after a pass, which must compute the same and be well formed."""
    result = step(graph, platform())
    made = {*result.inputs, *result.constants}
    for node in result.nodes:
        assert made.issuperset(node.reads), f"{node.op} reads {set(node.reads) - made} before it is made"
        made.update(node.outputs)
    inputs = noise(graph)
    for name, before, after in zip(graph.outputs, interpret(graph, inputs), interpret(result, inputs), strict=True):
        assert before.dtype == after.dtype
        if before.dtype.kind == "f":
            np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(after, before, err_msg=name)
    return result


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def text(graph: Graph, step: Pass) -> str:
    """The textual form after a pass."""
    return print_graph(applied(graph, step))
