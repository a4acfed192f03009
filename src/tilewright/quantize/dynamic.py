"""Dynamically quantised layers: products whose left zero point is known at run time only, by the kernels for integers.

`(a - z) . w` is `a . w - z * sum(w)`: with constant weights the zero point only meets their sums. A convolution must be
padded with the zero point before that, as what lies outside counts as real zeros.
"""

from __future__ import annotations

import numpy as np

from tilewright.core.graph import Array, Attr, Graph, Node
from tilewright.core.op import Call, call_node
from tilewright.quantize.builder import GraphBuilder
from tilewright.quantize.forms import narrowed

INT32_CODE = 6
"""How Cast calls int32."""


def to_plain_products(graph: Graph) -> Graph:
    """The network with integer products of constant weights written as Conv and MatMul of integers."""
    if not any(node.op in ("MatMulInteger", "ConvInteger") for node in graph.nodes):
        return graph
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.label = node.name
        done = False
        if node.op == "MatMulInteger":
            done = _matmul(builder, graph, node)
        elif node.op == "ConvInteger":
            done = _conv(builder, graph, node)
        if not done:
            builder.add(node)
    return graph.with_nodes(builder.nodes, types=builder.types, constants=builder.constants)


def _matmul(builder: GraphBuilder, graph: Graph, node: Node) -> bool:
    call = call_node(graph, node)
    weights = _centred(call, "B", "b_zero_point", -1)
    if weights is None or weights.ndim != 2 or not _single(call, "a_zero_point"):
        return False
    left, output = node.inputs[0], node.outputs[0]
    integers, offset = narrowed(weights)
    total = builder.emit(
        "MatMul", (left, builder.constant(f"{output}_weights", integers)), builder.fresh(f"{output}_sum")
    )
    if offset:
        column = builder.constant(f"{output}_offset", np.full((weights.shape[0], 1), offset, np.int8))
        rest = builder.emit("MatMul", (left, column), builder.fresh(f"{output}_row"))
        total = builder.emit("Add", (total, rest), builder.fresh(f"{output}_whole"))
    _without_zero(builder, call, node, "a_zero_point", total, weights.astype(np.int64).sum(axis=0))
    return True


def _conv(builder: GraphBuilder, graph: Graph, node: Node) -> bool:
    call = call_node(graph, node)
    weights = _centred(call, "w", "w_zero_point", 0)
    padding = call.text("auto_pad") or "NOTSET"
    if weights is None or not _single(call, "x_zero_point") or padding not in ("NOTSET", "VALID"):
        return False
    if call.int("channels_last"):
        return False
    output, rank = node.outputs[0], weights.ndim - 2
    attributes = {key: value for key, value in node.attrs.items() if key not in ("pads", "auto_pad")}
    x = _padded(builder, call, node, call.ints("pads") if padding == "NOTSET" else ())
    integers, offset = narrowed(weights)
    total = _convolved(builder, x, integers, output, attributes)
    if offset:
        features = 1 if call.int("group") == 1 else weights.shape[0]
        same = np.full((features, *weights.shape[1:]), offset, np.int8)
        rest = _convolved(builder, x, same, output, attributes)
        total = builder.emit("Add", (total, rest), builder.fresh(f"{output}_whole"))
    sums = weights.astype(np.int64).sum(axis=tuple(range(1, weights.ndim))).reshape(-1, *(1,) * rank)
    _without_zero(builder, call, node, "x_zero_point", total, sums)
    return True


def _convolved(builder: GraphBuilder, x: str, weights: Array, output: str, attributes: dict[str, Attr]) -> str:
    stored = builder.constant(f"{output}_weights", weights)
    return builder.emit("Conv", (x, stored), builder.fresh(f"{output}_sum"), **attributes)


def _padded(builder: GraphBuilder, call: Call, node: Node, pads: tuple[int, ...]) -> str:
    """The input with its zero point around it."""
    if not any(pads):
        return node.inputs[0]
    half = len(pads) // 2
    widths = builder.constant(f"{node.outputs[0]}_pads", np.array([0, 0, *pads[:half], 0, 0, *pads[half:]], np.int64))
    zero = [_scalar(builder, node.inputs[2], node.outputs[0])] if call.has("x_zero_point") else []
    return builder.emit("Pad", (node.inputs[0], widths, *zero), builder.fresh(f"{node.outputs[0]}_padded"))


def _without_zero(builder: GraphBuilder, call: Call, node: Node, zero: str, total: str, sums: Array) -> None:
    """`total - zero * sums` under the name of the node's result."""
    output = node.outputs[0]
    if not call.has(zero):
        builder.emit("Identity", (total,), output)
        return
    point = _scalar(builder, node.inputs[2], output)
    wide = builder.emit("Cast", (point,), builder.fresh(f"{output}_zero"), to=INT32_CODE)
    part = builder.emit(
        "Mul", (wide, builder.constant(f"{output}_sums", -sums.astype(np.int32))), builder.fresh(f"{output}_part")
    )
    builder.emit("Add", (total, part), output)


def _scalar(builder: GraphBuilder, name: str, output: str) -> str:
    if not builder.types[name].rank:
        return name
    shape = builder.constant(f"{output}_scalar", np.zeros(0, np.int64))
    return builder.emit("Reshape", (name, shape), builder.fresh(f"{output}_point"))


def _single(call: Call, operand: str) -> bool:
    return not call.has(operand) or call.type(operand).size == 1


def _centred(call: Call, operand: str, zero: str, axis: int) -> Array | None:
    """Constant weights without their zero points, which may be one per index of an axis; None where not constant."""
    stored, points = call.known(operand), call.known(zero)
    if stored is None or (call.has(zero) and points is None):
        return None
    if points is None:
        return stored.astype(np.int16)
    shape = [-1 if index == axis % stored.ndim else 1 for index in range(stored.ndim)]
    if points.size not in (1, stored.shape[axis]) or stored.dtype.itemsize != 1:
        return None
    return stored.astype(np.int16) - points.astype(np.int16).reshape(shape if points.size > 1 else ())
