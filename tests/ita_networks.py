"""Networks in ITA's arithmetic, and what they are fed."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT8
from tilewright.core.graph import Array, Attr, Graph, Node, TensorType, type_of_array
from tilewright.core.op import call_node
from tilewright.ops import operators

GELU: dict[str, Attr] = {"b": -80, "c": -7091, "mult": 74, "shift": 20}
SOFTMAXES: dict[str, dict[str, Attr]] = {
    "ITASoftmax": {},
    "ITAPartialMax": {"group_width": 16, "n_levels": 256, "term_bits": 10},
    "iSoftmax": {"coeffA": 1, "coeffB": 60, "coeffC": 900, "log2": 44, "n_levels": 256},
}


class Made:
    """A network while it is put together."""

    def __init__(self, **inputs: TensorType) -> None:
        operators()
        self.inputs, self.types = tuple(inputs), dict(inputs)
        self.constants: dict[str, Array] = {}
        self.nodes: list[Node] = []
        self.rng = np.random.default_rng(0)

    def graph(self, output: str) -> Graph:
        types, constants = MappingProxyType(self.types), MappingProxyType(self.constants)
        return Graph("made", self.inputs, (output,), tuple(self.nodes), types, constants)

    def add(self, op: str, inputs: tuple[str, ...], **attributes: Attr) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(Node(op, inputs, (output,), MappingProxyType(attributes), output))
        self.types[output] = call_node(self.graph(output), self.nodes[-1]).outputs[0]
        return output

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name], self.types[name] = array, type_of_array(array)
        return name

    def scaled(self, sums: str, mult: int, shift: int, add: int = 0) -> str:
        factors = (self.constant(np.array([value], np.int32)) for value in (mult, add << shift))
        return self.add("RequantShift", (sums, *factors), div=1 << shift, n_levels=256, signed=1)

    def linear(self, x: str, width: int, add: int = 0) -> str:
        inner = self.types[x].shape[-1]
        weights = self.constant(self.rng.integers(-128, 128, (inner, width)).astype(np.int8))
        bias = self.constant(self.rng.integers(-40000, 40000, width).astype(np.int32))
        return self.scaled(self.add("Add", (self.add("MatMul", (x, weights)), bias)), 99, 17, add)

    def heads(self, x: str, count: int, perm: tuple[int, ...]) -> str:
        _, rows, width = self.types[x].shape
        shape = self.constant(np.array([1, rows, count, width // count], np.int64))
        return self.add("Transpose", (self.add("Reshape", (x, shape)),), perm=perm)


def layers(rows: int, widths: tuple[int, ...]) -> Graph:
    """Linear layers of those widths, with a GELU behind all but the last."""
    made = Made(x=TensorType(INT8, (1, rows, widths[0])))
    last = "x"
    for number, width in enumerate(widths[1:]):
        last = made.linear(last, width, number - 1)
        last = made.add("ITAGelu", (last,), **GELU) if number + 2 < len(widths) else last
    return made.graph(last)


def attention(
    rows: int, width: int, count: int, size: int, softmax: str = "ITASoftmax", values: int = 0, add: int = 0
) -> Graph:
    """Projections, attention of some heads, and the projection back; values may come from an input of their own."""
    inputs = {"x": TensorType(INT8, (1, rows, width))}
    made = Made(**inputs, **({"y": TensorType(INT8, (1, rows, values))} if values else {}))
    q, k = (made.linear("x", count * size, add) for _ in range(2))
    v = made.linear("y" if values else "x", count * size)
    q, v = (made.heads(name, count, (0, 2, 1, 3)) for name in (q, v))
    scores = made.scaled(
        made.add("MatMul", (q, made.heads(k, count, (0, 2, 3, 1)))), 99, 20 if softmax == "ITASoftmax" else 14
    )
    mixed = made.scaled(
        made.add("MatMul", (made.add(softmax, (scores,), **SOFTMAXES[softmax]), v)),
        90,
        14 if softmax == "iSoftmax" else 12,
        1,
    )
    joined = made.add("Transpose", (mixed,), perm=(0, 2, 1, 3))
    flat = made.add("Reshape", (joined, made.constant(np.array([1, rows, count * size], np.int64))))
    return made.graph(made.linear(flat, width))


def mhsa(rows: int, width: int, count: int, size: int, **softmax: Attr) -> Graph:
    """The same in one node, in ITA's arithmetic, with the projection back of each head by itself."""
    made = Made(x=TensorType(INT8, (1, rows, width)))

    def weights(*shape: int) -> str:
        return made.constant(made.rng.integers(-128, 128, shape).astype(np.int8))

    def bias(*shape: int) -> str:
        return made.constant(made.rng.integers(-40000, 40000, shape).astype(np.int32))

    constants = [each for _ in range(3) for each in (weights(count, width, size), bias(count, size))]
    scales: dict[str, Attr] = {}
    narrow = 20 if softmax.get("softmax") == "ITASoftmax" else 14
    for step, mul, shift in (*((f"w{name}", 99, 17) for name in "qkvo"), ("preattn", 99, narrow), ("postattn", 90, 12)):
        scales |= {f"{step}_requant_mul": mul, f"{step}_requant_div": 1 << shift}
    operands = ("x", "x", "x", *constants, weights(count, size, width), bias(width))
    return made.graph(made.add("MHSA", operands, heads=count, dim_head=size, **softmax, **scales))


def residual(rows: int, width: int) -> Graph:
    """A linear layer, what goes in and what comes out added up, and a layer behind it."""
    made = Made(x=TensorType(INT8, (1, rows, width)))
    total = made.add("Add", ("x", made.linear("x", width)), widen=1)
    return made.graph(made.linear(made.scaled(total, 181, 8, 3), width))


def fed(graph: Graph) -> list[Array]:
    """Noise for all inputs."""
    rng = np.random.default_rng(1)
    return [rng.integers(-128, 128, graph.types[name].shape).astype(np.int8) for name in graph.inputs]
