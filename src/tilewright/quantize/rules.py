"""Integer rules: how an operator whose inputs are quantised computes its quantised result.

A rule emits nodes and returns the tensor it made, or None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.core.dtype import INT8
from tilewright.core.graph import Array, Attr, Graph, Node, TensorType
from tilewright.core.op import REGISTRY, call_of, evaluate
from tilewright.quantize.builder import Builder
from tilewright.quantize.forms import Form, Scheme, codes, dequantised, quantised


@dataclass(frozen=True)
class Function:
    """Real results for every value of an 8-bit tensor."""

    form: Form
    results: Array


@dataclass(frozen=True)
class Operand:
    """An input of an operator: its integers where they are known, its value where it is constant.

    Where the input waits to be computed itself, `integers` makes it in the scheme of the result, and `function` gives it as
    a function of one 8-bit tensor if it is one.
    """

    name: str
    form: Form | None
    constant: Array | None
    integers: Callable[[], str] | None = None
    function: Callable[[], Function | None] | None = None

    @property
    def narrow(self) -> Form | None:
        """The form where it is 8 bits wide with one scale."""
        if self.form and self.form.scheme.per_tensor and self.form.scheme.dtype.bits == 8:
            return self.form
        return None


Operands = Sequence[Operand | None]
Rule = Callable[[Builder, Graph, Node, Operands, Scheme, str], str | None]


def lookup(builder: Builder, tensor: str, table: Array, output: str) -> str:
    """Any function of an 8-bit integer."""
    return builder.emit("Lookup", (tensor, builder.constant(f"{output}_table", table)), output)


def _value(builder: Builder, operand: Operand | None) -> Array | None:
    """The real value of an input that is constant, quantised or not."""
    if operand is None:
        return None
    if operand.constant is not None:
        return operand.constant
    form = operand.form
    stored = builder.constants.get(form.tensor) if form else None
    if form is None or stored is None:
        return None
    scheme = form.scheme
    shape = [-1 if i == scheme.axis else 1 for i in range(stored.ndim)] if scheme.axis is not None else []
    return (stored.astype(np.float32) - np.float32(scheme.zero)) * scheme.scale.reshape(shape)


@dataclass(frozen=True)
class _Weights:
    """Constant weights as int8 without a zero point, with one scale for all or one per result channel."""

    integers: Array
    scales: Array


def _weights(builder: Builder, operand: Operand | None, channel_axis: int) -> _Weights | None:
    form = operand.form if operand else None
    stored = builder.constants.get(form.tensor) if form else None
    if form is None or stored is None or form.scheme.dtype.bits != 8:
        return None
    if form.scheme.axis is not None and form.scheme.axis % stored.ndim != channel_axis % stored.ndim:
        return None
    centred = stored.astype(np.int32) - form.scheme.zero
    if centred.min(initial=0) < INT8.lo or centred.max(initial=0) > INT8.hi:
        return None
    return _Weights(centred.astype(np.int8), form.scheme.scale.astype(np.float64).reshape(-1))


def _bias(builder: Builder, operand: Operand | None, scales: Array, channels: int) -> Array | None:
    """A bias in units of the accumulator; None where it is not constant, zeros where there is none."""
    if operand is None:
        return np.zeros(channels, np.int64)
    value = _value(builder, operand)
    if value is None or value.size not in (1, channels):
        return None
    form = operand.form
    if form and form.scheme.dtype.bits == 32 and form.scheme.zero == 0:
        unit = form.scheme.scale.astype(np.float64).reshape(-1)
        if np.allclose(unit, scales, rtol=1e-5):
            return np.broadcast_to(builder.constants[form.tensor].astype(np.int64).reshape(-1), (channels,))
    return np.rint(np.broadcast_to(value.astype(np.float64).reshape(-1), (channels,)) / scales).astype(np.int64)


def _limit(x: Form, columns: Array, bias: Array) -> int:
    """The largest magnitude of an accumulator, from the weights `[..., channel]` and bias of every channel."""
    reach = max(-x.scheme.dtype.lo, x.scheme.dtype.hi)
    weight = np.abs(columns.astype(np.int64)).reshape(-1, columns.shape[-1]).sum(axis=0)
    return int(np.max(weight * reach + np.abs(bias), initial=0))


def _reach(form: Form) -> int:
    """The largest magnitude of integers minus their zero point."""
    return max(form.scheme.dtype.hi - form.scheme.zero, form.scheme.zero - form.scheme.dtype.lo)


def _fits32(values: Array) -> bool:
    return bool(np.all(np.abs(values) < 2**31))


def _conv(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    x = operands[0].narrow if operands[0] else None
    weights = _weights(builder, operands[1], 0)
    if x is None or weights is None:
        return None
    scales = weights.scales * x.scheme.step
    channels = weights.integers.shape[0]
    bias = _bias(builder, operands[2] if len(operands) > 2 else None, scales, channels)
    if bias is None:
        return None
    bias = bias - x.scheme.zero * weights.integers.astype(np.int64).sum(axis=tuple(range(1, weights.integers.ndim)))
    if not _fits32(bias):
        return None
    w = builder.constant(f"{output}_weights", weights.integers)
    b = builder.constant(f"{output}_bias", bias.astype(np.int32))
    attributes: dict[str, Attr] = {**node.attrs, "x_zero_point": x.scheme.zero}
    total = builder.emit("Conv", (x.tensor, w, b), builder.fresh(f"{output}_sum"), **attributes)
    limit = _limit(x, np.moveaxis(weights.integers, 0, -1), bias)
    return builder.requantise(total, scales / scheme.step, scheme, 1, output, limit=limit)


def _product(
    builder: Builder,
    a: Form,
    weights: _Weights,
    bias: Operand | None,
    alpha: float,
    beta: float,
    scheme: Scheme,
    output: str,
) -> str | None:
    """`alpha * a @ weights + beta * bias` with constant weights `[..., K, N]`."""
    scales = weights.scales * a.scheme.step
    columns = weights.integers.shape[-1]
    if weights.integers.ndim != 2:
        return None
    added = (
        _bias(builder, bias, scales * alpha / beta if beta else scales, columns)
        if bias
        else np.zeros(columns, np.int64)
    )
    if added is None:
        return None
    added = added - a.scheme.zero * weights.integers.astype(np.int64).sum(axis=0)
    if not _fits32(added):
        return None
    w = builder.constant(f"{output}_weights", weights.integers)
    total = builder.emit("MatMul", (a.tensor, w), builder.fresh(f"{output}_sum"))
    if np.any(added):
        b = builder.constant(f"{output}_bias", added.astype(np.int32))
        total = builder.emit("Add", (total, b), builder.fresh(f"{output}_biased"))
    limit = _limit(a, weights.integers, added)
    return builder.requantise(total, scales * alpha / scheme.step, scheme, -1, output, limit=limit)


def _gemm(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    a = operands[0].narrow if operands[0] else None
    weights = _weights(builder, operands[1], 0 if node.attrs.get("transB") else 1)
    if a is None or weights is None or node.attrs.get("transA"):
        return None
    turned = _Weights(np.ascontiguousarray(weights.integers.T), weights.scales) if node.attrs.get("transB") else weights
    alpha, beta = (float(str(node.attrs.get(key, 1.0))) for key in ("alpha", "beta"))
    bias = operands[2] if len(operands) > 2 else None
    return _product(builder, a, turned, bias if beta else None, alpha, beta, scheme, output)


def _matmul(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    a = operands[0].narrow if operands[0] else None
    if a is None or operands[1] is None:
        return None
    weights = _weights(builder, operands[1], -1)
    if weights is not None and weights.integers.ndim == 2 and not node.attrs.get("transB"):
        return _product(builder, a, weights, None, 1.0, 1.0, scheme, output)
    b = operands[1].narrow
    if b is None:
        return None
    total = builder.emit(
        "MatMul",
        (a.tensor, b.tensor),
        builder.fresh(f"{output}_sum"),
        **{**node.attrs, "a_zero_point": a.scheme.zero, "b_zero_point": b.scheme.zero},
    )
    factor = np.asarray(a.scheme.step * b.scheme.step / scheme.step)
    limit = graph.types[node.inputs[0]].shape[-1] * _reach(a) * _reach(b)
    return builder.requantise(total, factor, scheme, 1, output, limit=limit)


def _centred(builder: Builder, form: Form, output: str) -> str:
    """Integers minus their zero point, in 32 bits."""
    if form.scheme.zero == 0:
        return form.tensor
    zero = builder.constant(f"{output}_zero", np.asarray(form.scheme.zero, np.int32))
    return builder.emit("Sub", (form.tensor, zero), builder.fresh(f"{output}_centred"), widen=1)


def _sum(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    """Add and Sub: both operands are scaled to a common unit of the result's step divided by a power of two."""
    table = _table(builder, graph, node, operands, scheme, output)
    if table is not None:
        return table
    forms = [o.narrow for o in operands if o is not None]
    if len(forms) != 2 or forms[0] is None or forms[1] is None:
        return None
    a, b = forms
    signs = (1.0, -1.0 if node.op == "Sub" else 1.0)
    factors = [sign * form.scheme.step / scheme.step for sign, form in zip(signs, (a, b), strict=True)]
    # 8-bit operands times these multipliers, both added up, stay inside 31 bits.
    shift = int(np.floor(np.log2(2**21 / max(abs(f) for f in factors))))
    if shift < 8 or shift > 40:
        return None
    multipliers = [round(f * 2.0**shift) for f in factors]
    parts: list[str] = []
    for form, multiplier in zip((a, b), multipliers, strict=True):
        factor = builder.constant(f"{output}_factor", np.asarray(multiplier, np.int32))
        parts.append(builder.emit("Mul", (form.tensor, factor), builder.fresh(f"{output}_part"), widen=1))
    total = builder.emit("Add", parts, builder.fresh(f"{output}_sum"))
    offset = -sum(m * f.scheme.zero for m, f in zip(multipliers, (a, b), strict=True))
    one = builder.constant(f"{output}_one", np.asarray(1, np.int32))
    add = builder.constant(f"{output}_add", np.asarray(offset, np.int32))
    limit = sum(abs(m) * max(-f.scheme.dtype.lo, f.scheme.dtype.hi) for m, f in zip(multipliers, (a, b), strict=True))
    return builder.requant_shift(total, one, add, shift, scheme, 1, output, limit=limit)


def _times(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    table = _table(builder, graph, node, operands, scheme, output)
    if table is not None:
        return table
    forms = [o.narrow for o in operands if o is not None]
    if len(forms) != 2 or forms[0] is None or forms[1] is None:
        return None
    a, b = forms
    product = builder.emit(
        "Mul", [_centred(builder, form, output) for form in (a, b)], builder.fresh(f"{output}_product"), widen=1
    )
    factor = np.asarray(a.scheme.step * b.scheme.step / scheme.step)
    return builder.requantise(product, factor, scheme, 1, output, limit=_reach(a) * _reach(b))


def _averaged(builder: Builder, total: str, count: int, x: Form, scheme: Scheme, output: str) -> str:
    """The mean of `count` integers from their sum, in the scheme of the result."""
    factor = np.asarray(x.scheme.step / scheme.step / count)
    limit = count * max(-x.scheme.dtype.lo, x.scheme.dtype.hi)
    return builder.requantise(total, factor, scheme, 1, output, limit=limit, centre=x.scheme.zero * count)


def _average_pool(
    builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str
) -> str | None:
    x = operands[0].narrow if operands[0] else None
    kernel, pads = node.attrs.get("kernel_shape"), node.attrs.get("pads")
    if x is None or not isinstance(kernel, tuple) or (isinstance(pads, tuple) and any(pads)):
        return None
    if node.attrs.get("ceil_mode") or str(node.attrs.get("auto_pad") or "NOTSET") not in ("NOTSET", "VALID"):
        return None
    attributes = {key: value for key, value in node.attrs.items() if key != "count_include_pad"}
    total = builder.emit("AveragePool", (x.tensor,), builder.fresh(f"{output}_sum"), **{**attributes, "sum": 1})
    return _averaged(builder, total, prod(int(k) for k in kernel), x, scheme, output)


def _mean(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    """ReduceMean and GlobalAveragePool by sums."""
    x = operands[0].narrow if operands[0] else None
    if x is None:
        return None
    kind = graph.types[node.inputs[0]]
    if node.op == "GlobalAveragePool":
        axes, keep = np.arange(2, kind.rank), 1
        names = (x.tensor, builder.constant(f"{output}_axes", axes.astype(np.int64)))
    else:
        names, keep = (x.tensor, *node.inputs[1:]), node.attrs.get("keepdims", 1)
    total = builder.emit("ReduceSum", names, builder.fresh(f"{output}_sum"), keepdims=keep, widen=1)
    count = kind.size // max(1, builder.types[total].size)
    return _averaged(builder, total, count, x, scheme, output)


def _concat(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    forms = [o.narrow for o in operands if o is not None]
    parts: list[str] = []
    for form in forms:
        if form is None:
            return None
        if form.scheme.same(scheme):
            parts.append(form.tensor)
        else:
            table = quantised(dequantised(codes(form.scheme.dtype), form.scheme), scheme)
            parts.append(lookup(builder, form.tensor, table, builder.fresh(f"{output}_part")))
    return builder.emit("Concat", parts, output, **node.attrs)


def _clamp(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    """Relu and Clip behind an operator that waits: its result is quantised first and clamped as an integer."""
    first = operands[0]
    if first is None or first.integers is None:
        return _table(builder, graph, node, operands, scheme, output)
    bounds = [_value(builder, o) for o in operands[1:]] if node.op == "Clip" else [np.zeros(1, np.float32)]
    if any(o is not None and v is None for o, v in zip(operands[1:], bounds, strict=False)):
        return None
    limits = [scheme.dtype.lo, scheme.dtype.hi]
    for index, bound in enumerate(bounds):
        if bound is not None:
            limits[index] = int(quantised(bound.reshape(-1)[:1], scheme)[0])
    whole = first.integers()
    names = [builder.constant(f"{output}_limit", np.asarray(limit, scheme.dtype.numpy)) for limit in limits]
    return builder.emit("Clip", (whole, *names), output)


def _softmax(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    x = operands[0].narrow if operands[0] else None
    if x is None:
        return None
    attributes: dict[str, Attr] = {**node.attrs, "x_scale": x.scheme.step}
    real = builder.emit("Softmax", (x.tensor,), builder.fresh(f"{output}_real"), **attributes)
    return builder.quantise(real, scheme, output)


def _layer_norm(
    builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str
) -> str | None:
    """Scale and zero point of the input cancel in the normalisation; epsilon is brought to the units of the integers."""
    x = operands[0].narrow if operands[0] else None
    weights = [_value(builder, o) for o in operands[1:]]
    if x is None or any(o is not None and w is None for o, w in zip(operands[1:], weights, strict=True)):
        return None
    names = ["" if w is None else builder.constant(f"{output}_norm", w) for w in weights]
    epsilon = float(str(node.attrs.get("epsilon", 1e-5))) / x.scheme.step**2
    attributes: dict[str, Attr] = {**node.attrs, "epsilon": epsilon}
    real = builder.emit("LayerNormalization", (x.tensor, *names), builder.fresh(f"{output}_real"), **attributes)
    return builder.quantise(real, scheme, output)


def _table(builder: Builder, graph: Graph, node: Node, operands: Operands, scheme: Scheme, output: str) -> str | None:
    """Any element-wise function of one 8-bit tensor is a table of 256 results."""
    found = function_of(builder, graph, node, operands)
    if found is None:
        return None
    return lookup(builder, found.form.tensor, quantised(found.results, scheme), output)


def function_of(builder: Builder, graph: Graph, node: Node, operands: Operands) -> Function | None:
    """A node as a function of one 8-bit tensor, where its other inputs are scalars or functions of the same tensor."""
    if REGISTRY[node.op].kind != "elementwise":
        return None
    form: Form | None = None
    inputs: list[Array | None] = []
    for operand, name in zip(operands, node.inputs, strict=True):
        value = _value(builder, operand)
        if operand is None or (value is not None and value.size == 1):
            inputs.append(None if value is None else value.reshape(()))
            continue
        inner = operand.function() if operand.function else None
        if inner is None and operand.narrow and builder.constants.get(operand.narrow.tensor) is None:
            inner = Function(operand.narrow, dequantised(codes(operand.narrow.scheme.dtype), operand.narrow.scheme))
        if (
            inner is None
            or (form and form != inner.form)
            or graph.types[name].shape != graph.types[node.outputs[0]].shape
        ):
            return None
        form = inner.form
        inputs.append(inner.results)
    if form is None:
        return None
    types = [
        None if a is None else TensorType(graph.types[n].dtype, a.shape)
        for a, n in zip(inputs, node.inputs, strict=True)
    ]
    call = call_of(REGISTRY[node.op], types, node.attrs, values=inputs, name=node.name)
    return Function(form, evaluate(call, inputs)[0])


RULES: dict[str, Rule] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Add": _sum,
    "Sub": _sum,
    "Mul": _times,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _mean,
    "ReduceMean": _mean,
    "Softmax": _softmax,
    "LayerNormalization": _layer_norm,
    "Concat": _concat,
    "Relu": _clamp,
    "Clip": _clamp,
    "elementwise": _table,
}
"""By operator; `elementwise` serves all other element-wise operators."""
