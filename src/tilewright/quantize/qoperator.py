"""Operators on quantised tensors (QLinearConv and its kin) become the QDQ form: dequantise, compute, quantise.

So there is one way from quantised networks to integer ones. Nodes whose scales are not constant stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct, field

from tilewright.core.graph import Array, Attr, Graph, Node
from tilewright.core.op import REGISTRY, Call, call_node
from tilewright.quantize.builder import GraphBuilder


class Quantised(Struct, frozen=True):
    """An operand of the real operator: names of its integers, scale and zero point, and the axis of several scales."""

    integers: str
    scale: str
    zero: str
    axis: int = 0


class Spelling(Struct, frozen=True):
    """How an operator on quantised tensors is written with a real one; `scale` and `zero` are those of its result."""

    op: str
    operands: tuple[Quantised, ...]
    scale: str
    zero: str
    bias: str = ""
    """An int32 operand in units of the product of both scales."""
    attrs: Mapping[str, Attr] = field(default_factory=dict[str, Attr])
    """Attributes beyond those that both operators have."""


def to_qdq(graph: Graph) -> Graph:
    """The network with operators on quantised tensors spelled out."""
    if not any(node.op in SPELLINGS for node in graph.nodes):
        return graph
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.label = node.name
        if node.op not in SPELLINGS or not _spell(builder, graph, node):
            builder.add(node)
    return graph.with_nodes(builder.nodes, types=builder.types, constants=builder.constants)


def _spell(builder: GraphBuilder, graph: Graph, node: Node) -> bool:
    call = call_node(graph, node)
    spelling = SPELLINGS[node.op](call)
    if spelling is None:
        return False
    tensors = dict(zip(call.operands, node.inputs, strict=True))
    scales = [graph.constants.get(tensors[o.scale]) for o in (*spelling.operands, spelling)]
    zeros = [tensors.get(o.zero, "") for o in (*spelling.operands, spelling)]
    known = [scale for scale in scales if scale is not None and scale.dtype == np.float32]
    if len(known) < len(scales) or any(zero and zero not in graph.constants for zero in zeros):
        return False
    inputs = [
        _dequantised(builder, tensors[operand.integers], scale, graph.constants.get(zero), operand.axis)
        for operand, scale, zero in zip(spelling.operands, known, zeros, strict=False)
    ]
    bias = tensors.get(spelling.bias)
    if bias:
        unit = known[0].reshape(-1) * known[1].reshape(-1)
        inputs.append(_dequantised(builder, bias, unit, None, graph.types[bias].rank - 1))
    output = node.outputs[0]
    shared = {key: value for key, value in node.attrs.items() if key in REGISTRY[spelling.op].attrs}
    result = builder.emit(spelling.op, inputs, builder.fresh(f"{output}_real"), **{**shared, **spelling.attrs})
    dtype = graph.types[output].dtype.numpy
    zero = graph.constants.get(zeros[-1], np.zeros((), dtype)).reshape(())
    parameters = (builder.constant(f"{output}_scale", known[-1].reshape(())), builder.constant(f"{output}_zero", zero))
    builder.emit("QuantizeLinear", (result, *parameters), output)
    return True


def _dequantised(builder: GraphBuilder, name: str, scale: Array, zero: Array | None, axis: int) -> str:
    points = np.zeros(1, builder.types[name].dtype.numpy) if zero is None else zero
    lanes = max(scale.size, points.size)
    shape, attributes = ((lanes,), {"axis": axis}) if lanes > 1 else ((), {})
    scales = builder.constant(f"{name}_scale", np.broadcast_to(scale.reshape(-1), lanes).reshape(shape))
    zeros = builder.constant(f"{name}_zero", np.broadcast_to(points.reshape(-1), lanes).reshape(shape))
    return builder.emit("DequantizeLinear", (name, scales, zeros), builder.fresh(f"{name}_real"), **attributes)


def _conv(call: Call) -> Spelling | None:
    if call.int("channels_last"):
        return None
    operands = (Quantised("x", "x_scale", "x_zero_point"), Quantised("w", "w_scale", "w_zero_point"))
    return Spelling("Conv", operands, "y_scale", "y_zero_point", "B")


def _matmul(call: Call) -> Spelling | None:
    # Scales of rows, or of a stack of matrices, belong to no single axis of an operand.
    if any(call.type(name).size > 1 for name in ("a_scale", "a_zero_point")) or call.type("b_scale").rank > 1:
        return None
    right = Quantised("b", "b_scale", "b_zero_point", call.type("b").rank - 1)
    return Spelling("MatMul", (Quantised("a", "a_scale", "a_zero_point"), right), "y_scale", "y_zero_point")


def _gemm(call: Call) -> Spelling | None:
    if not call.has("y_scale"):
        return None
    right = Quantised("B", "b_scale", "b_zero_point", 0 if call.int("transB") else 1)
    factors = {"alpha": call.float("alpha"), "beta": call.float("alpha")}
    left = Quantised("A", "a_scale", "a_zero_point")
    return Spelling("Gemm", (left, right), "y_scale", "y_zero_point", "C", factors)


def _concat(call: Call) -> Spelling:
    scale, zero, *names = call.operands
    triples = zip(names[::3], names[1::3], names[2::3], strict=True)
    return Spelling("Concat", tuple(Quantised(*triple) for triple in triples), scale, zero)


def _binary(op: str) -> Callable[[Call], Spelling]:
    operands = (Quantised("A", "A_scale", "A_zero_point"), Quantised("B", "B_scale", "B_zero_point"))
    return lambda _call: Spelling(op, operands, "C_scale", "C_zero_point")


def _unary(op: str) -> Callable[[Call], Spelling | None]:
    def spelling(call: Call) -> Spelling | None:
        """Operators of one input write the names of scales and zero points in either case."""
        names = {name.lower(): name for name in call.op.operand_names(len(call.op.inputs.split()))}
        data = Quantised("X", names["x_scale"], names["x_zero_point"])
        turned = call.attrs.get("channels_last")
        return None if turned else Spelling(op, (data,), names["y_scale"], names["y_zero_point"])

    return spelling


SPELLINGS: Mapping[str, Callable[[Call], Spelling | None]] = {
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
    "QGemm": _gemm,
    "QLinearConcat": _concat,
    "QLinearAdd": _binary("Add"),
    "QLinearMul": _binary("Mul"),
    **{f"QLinear{op}": _unary(op) for op in ("Sigmoid", "LeakyRelu", "AveragePool", "GlobalAveragePool", "Softmax")},
}
"""How each operator is spelled; None from one of these leaves the node as it is."""
