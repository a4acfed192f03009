"""Integer rules: how an operator whose inputs are quantised computes its quantised result.

A rule emits nodes and returns the tensor it made, or None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array, Attr, Graph, Node, TensorType
from tilewright.core.op import REGISTRY, call_of, evaluate
from tilewright.quantize.builder import GraphBuilder
from tilewright.quantize.forms import Form, codes, dequantised, narrowed, quantised
from tilewright.quantize.site import ByteFunction, QuantizedInput, Site, in_scheme, lookup

Rule = Callable[[Site], str | None]


# Contractions


class _Weights(Struct, frozen=True):
    """Constant weights without a zero point, with one scale for all or one per result channel."""

    integers: Array
    scales: Array


def _weights(site: Site, index: int, channel_axis: int) -> _Weights | None:
    operand = site.operand(index)
    form = operand.form if operand else None
    stored = site.builder.constants.get(form.tensor) if form else None
    if form is None or stored is None or form.scheme.dtype.bits != 8 or not np.all(form.scheme.scale > 0):
        return None
    if form.scheme.axis is not None and form.scheme.axis % stored.ndim != channel_axis % stored.ndim:
        return None
    return _Weights(stored.astype(np.int16) - form.scheme.zero, form.scheme.scale.astype(np.float64).reshape(-1))


def _bias(site: Site, index: int, scales: Array, channels: int) -> Array | None:
    """A bias in units of the accumulator; None where it is not constant, zeros where there is none."""
    operand = site.operand(index)
    if operand is None:
        return np.zeros(channels, np.int64)
    value = site.value(index)
    if value is None or not (value.size == 1 or (value.size == channels and value.shape[-1] == channels)):
        return None
    form = operand.form
    if form and form.scheme.dtype.bits == 32 and form.scheme.zero == 0:
        unit = form.scheme.scale.astype(np.float64).reshape(-1)
        if np.allclose(unit, scales, rtol=1e-5):
            stored = site.builder.constants[form.tensor]
            return np.broadcast_to(stored.astype(np.int64).reshape(-1), (channels,))
    return np.rint(np.broadcast_to(value.astype(np.float64).reshape(-1), (channels,)) / scales).astype(np.int64)


def _limit(x: Form, columns: Array, bias: Array) -> int:
    """The largest magnitude of an accumulator, from the weights `[..., channel]` and bias of every channel."""
    reach = max(-x.scheme.dtype.lo, x.scheme.dtype.hi)
    weight = np.abs(columns.astype(np.int64)).reshape(-1, columns.shape[-1]).sum(axis=0)
    return int(np.max(weight * reach + np.abs(bias), initial=0))


def _reach(form: Form) -> int:
    """The largest magnitude of integers minus their zero point."""
    return max(form.scheme.dtype.hi - form.scheme.zero, form.scheme.zero - form.scheme.dtype.lo)


def _conv(site: Site) -> str | None:
    x, weights = site.form(0), _weights(site, 1, 0)
    if x is None or weights is None:
        return None
    scales = weights.scales * x.scheme.step
    bias = _bias(site, 2, scales, weights.integers.shape[0])
    if bias is None:
        return None
    limit = _limit(x, np.moveaxis(weights.integers, 0, -1), bias - x.scheme.zero * _per_channel(weights.integers))
    if limit >= 1 << 31:
        return None
    integers, offset = narrowed(weights.integers)
    total = _convolved(site, x, integers, bias)
    if offset:
        # What it adds is a multiple of the sum of the window, which all channels share where they read the same.
        features = 1 if site.node.attrs.get("group", 1) == 1 else integers.shape[0]
        same = np.full((features, *integers.shape[1:]), offset, np.int8)
        total = site.emit("Add", (total, _convolved(site, x, same, np.zeros(features, np.int64))), "whole")
    return site.requantise(total, scales / site.scheme.step, 1, limit=limit)


def _per_channel(weights: Array) -> Array:
    """The sum of the weights of each result channel of a convolution."""
    return weights.astype(np.int64).sum(axis=tuple(range(1, weights.ndim)))


def _convolved(site: Site, x: Form, weights: Array, bias: Array) -> str:
    """The convolution of the integers without their zero point, plus a bias."""
    shifted = (bias - x.scheme.zero * _per_channel(weights)).astype(np.int32)
    attributes: dict[str, Attr] = {**site.node.attrs, "x_zero_point": x.scheme.zero}
    return site.emit(
        "Conv", (x.tensor, site.constant("weights", weights), site.constant("bias", shifted)), "sum", **attributes
    )


def _product(site: Site, a: Form, weights: _Weights, alpha: float, beta: float) -> str | None:
    """`alpha * a @ weights + beta * bias` with constant weights `[K, N]`; the bias is input 2, if there is one."""
    scales = weights.scales * a.scheme.step
    columns = weights.integers.shape[-1]
    added = _bias(site, 2, scales * alpha / beta, columns) if beta else np.zeros(columns, np.int64)
    if added is None:
        return None
    added = added - a.scheme.zero * weights.integers.astype(np.int64).sum(axis=0)
    limit = _limit(a, weights.integers, added)
    if limit >= 1 << 31:
        return None
    integers, offset = narrowed(weights.integers)
    total = site.emit("MatMul", (a.tensor, site.constant("weights", integers)), "sum")
    if offset:
        # What it adds is a multiple of the sum of the row, which all columns share.
        same = site.constant("weights", np.full((integers.shape[0], 1), offset, np.int8))
        total = site.emit("Add", (total, site.emit("MatMul", (a.tensor, same), "row")), "whole")
    if np.any(added):
        total = site.emit("Add", (total, site.constant("bias", added.astype(np.int32))), "biased")
    return site.requantise(total, scales * alpha / site.scheme.step, -1, limit=limit)


def _gemm(site: Site) -> str | None:
    turned = bool(site.node.attrs.get("transB"))
    a, weights = site.form(0), _weights(site, 1, 0 if turned else 1)
    alpha, beta = site.number("alpha", 1.0), site.number("beta", 1.0)
    if a is None or weights is None or site.node.attrs.get("transA") or alpha == 0 or weights.integers.ndim != 2:
        return None
    if turned:
        weights = _Weights(np.ascontiguousarray(weights.integers.T), weights.scales)
    return _product(site, a, weights, alpha, beta)


def _matmul(site: Site) -> str | None:
    a, weights = site.form(0), _weights(site, 1, -1)
    if a is None:
        return None
    if weights is not None and weights.integers.ndim == 2:
        return _product(site, a, weights, 1.0, 0.0)
    b = site.form(1)
    if b is None:
        return None
    attributes: dict[str, Attr] = {"a_zero_point": a.scheme.zero, "b_zero_point": b.scheme.zero}
    total = site.emit("MatMul", (a.tensor, b.tensor), "sum", **{**site.node.attrs, **attributes})
    factor = np.asarray(a.scheme.step * b.scheme.step / site.scheme.step)
    limit = site.graph.types[site.node.inputs[0]].shape[-1] * _reach(a) * _reach(b)
    return site.requantise(total, factor, 1, limit=limit)


# Sums, products and means


def _sum(site: Site) -> str | None:
    """Add and Sub: both operands are scaled to a common unit of the result's step divided by a power of two."""
    table = _table(site)
    pair = site.pair()
    if table is not None or pair is None:
        return table
    signs = (1.0, -1.0 if site.node.op == "Sub" else 1.0)
    factors = [sign * form.scheme.step / site.scheme.step for sign, form in zip(signs, pair, strict=True)]
    # 8-bit operands times these multipliers, both added up, stay inside 31 bits.
    shift = int(np.floor(np.log2(2**21 / max(abs(f) for f in factors))))
    if shift < 8 or shift > 40:
        return None
    multipliers = [round(f * 2.0**shift) for f in factors]
    parts = [
        site.emit("Mul", (form.tensor, site.constant("factor", np.asarray(multiplier, np.int32))), "part", widen=1)
        for form, multiplier in zip(pair, multipliers, strict=True)
    ]
    total = site.emit("Add", parts, "sum")
    offset = -sum(m * f.scheme.zero for m, f in zip(multipliers, pair, strict=True))
    one = site.constant("one", np.asarray(1, np.int32))
    add = site.constant("add", np.asarray(offset, np.int32))
    limit = sum(abs(m) * max(-f.scheme.dtype.lo, f.scheme.dtype.hi) for m, f in zip(multipliers, pair, strict=True))
    return site.builder.requant_shift(total, one, add, shift, site.scheme, 1, site.output, limit=limit)


def _centred(site: Site, form: Form) -> str:
    """Integers minus their zero point, in 32 bits."""
    if form.scheme.zero == 0:
        return form.tensor
    return site.emit(
        "Sub", (form.tensor, site.constant("zero", np.asarray(form.scheme.zero, np.int32))), "centred", widen=1
    )


def _times(site: Site) -> str | None:
    table = _table(site)
    pair = site.pair()
    if table is not None or pair is None:
        return table
    a, b = pair
    product = site.emit("Mul", [_centred(site, form) for form in pair], "product", widen=1)
    factor = np.asarray(a.scheme.step * b.scheme.step / site.scheme.step)
    return site.requantise(product, factor, 1, limit=_reach(a) * _reach(b))


def _averaged(site: Site, total: str, count: int, x: Form) -> str:
    """The mean of `count` integers from their sum, in the scheme of the result."""
    factor = np.asarray(x.scheme.step / site.scheme.step / count)
    limit = count * max(-x.scheme.dtype.lo, x.scheme.dtype.hi)
    return site.requantise(total, factor, 1, limit=limit, centre=x.scheme.zero * count)


def _average_pool(site: Site) -> str | None:
    x, given = site.form(0), site.node.attrs
    kernel, pads = given.get("kernel_shape"), given.get("pads")
    if x is None or not isinstance(kernel, tuple) or (isinstance(pads, tuple) and any(pads)):
        return None
    if given.get("ceil_mode") or str(given.get("auto_pad") or "NOTSET") not in ("NOTSET", "VALID"):
        return None
    attributes = {key: value for key, value in given.items() if key != "count_include_pad"}
    total = site.emit("AveragePool", (x.tensor,), "sum", **{**attributes, "sum": 1})
    return _averaged(site, total, prod(int(k) for k in kernel), x)


def _mean(site: Site) -> str | None:
    """ReduceMean and GlobalAveragePool by sums."""
    x = site.form(0)
    if x is None:
        return None
    kind = site.graph.types[site.node.inputs[0]]
    if site.node.op == "GlobalAveragePool":
        names = (x.tensor, site.constant("axes", np.arange(2, kind.rank).astype(np.int64)))
        attributes: dict[str, Attr] = {"keepdims": 1}
    else:
        names, attributes = (x.tensor, *site.node.inputs[1:]), dict(site.node.attrs)
    total = site.emit("ReduceSum", names, "sum", **{**attributes, "widen": 1})
    count = kind.size // max(1, site.builder.types[total].size)
    return _averaged(site, total, count, x)


# Other operators


def _concat(site: Site) -> str | None:
    forms = [site.form(index) for index in range(len(site.operands))]
    known = [form for form in forms if form is not None]
    if len(known) < len(forms):
        return None
    hint = f"{site.output}_part"
    parts = [in_scheme(site.builder, form, site.scheme, site.builder.fresh(hint)) for form in known]
    return site.builder.emit("Concat", parts, site.output, **site.node.attrs)


def _clamp(site: Site) -> str | None:
    """Relu and Clip behind an operator that waits: its result is quantised first and clamped as an integer."""
    first, scheme = site.operand(0), site.scheme
    if first is None or first.integers is None:
        return _table(site)
    bounds = [site.value(1), site.value(2)] if site.node.op == "Clip" else [np.zeros(1, np.float32)]
    if any(site.operand(index) is not None and bounds[index - 1] is None for index in range(1, len(site.operands))):
        return None
    limits = [scheme.dtype.lo, scheme.dtype.hi]
    for index, bound in enumerate(bounds):
        if bound is not None:
            limits[index] = int(quantised(bound.reshape(-1)[:1], scheme)[0])
    whole = first.integers()
    if limits == [scheme.dtype.lo, scheme.dtype.hi]:
        # Quantisation has done it already.
        return whole
    names = [site.constant("limit", np.asarray(limit, scheme.dtype.numpy)) for limit in limits]
    return site.builder.emit("Clip", (whole, *names), site.output)


def _softmax(site: Site) -> str | None:
    x = site.form(0)
    if x is None:
        return None
    real = site.emit("Softmax", (x.tensor,), "real", **{**site.node.attrs, "x_scale": x.scheme.step})
    return site.builder.quantise(real, site.scheme, site.output)


def _layer_norm(site: Site) -> str | None:
    """Scale and zero point of the input cancel in the normalisation; epsilon is brought to units of the integers."""
    x = site.form(0)
    given = range(1, len(site.operands))
    weights = [site.value(index) for index in given]
    if x is None or any(site.operand(i) is not None and w is None for i, w in zip(given, weights, strict=True)):
        return None
    names = ["" if w is None else site.constant("norm", w) for w in weights]
    epsilon = site.number("epsilon", 1e-5) / x.scheme.step**2
    attributes: dict[str, Attr] = {**site.node.attrs, "epsilon": epsilon}
    real = site.emit("LayerNormalization", (x.tensor, *names), "real", **attributes)
    return site.builder.quantise(real, site.scheme, site.output)


def _table(site: Site) -> str | None:
    """Any element-wise function of one 8-bit tensor is a table of 256 results."""
    found = function_of(site)
    if found is None:
        return None
    return lookup(site.builder, found.form.tensor, quantised(found.results, site.scheme), site.output)


def function_of(site: Site) -> ByteFunction | None:
    """A node as a function of one 8-bit tensor, where its other inputs are scalars or functions of the same tensor."""
    node, types = site.node, site.graph.types
    if REGISTRY[node.op].kind != "elementwise":
        return None
    form: Form | None = None
    inputs: list[Array | None] = []
    for index, name in enumerate(node.inputs):
        operand, value = site.operand(index), site.value(index)
        if operand is None or (value is not None and value.size == 1):
            inputs.append(None if value is None else value.reshape(()))
            continue
        inner = _inner(site.builder, operand)
        if inner is None or (form and form != inner.form) or types[name].shape != types[node.outputs[0]].shape:
            return None
        form = inner.form
        inputs.append(inner.results)
    if form is None:
        return None
    return ByteFunction(form, _applied(site.graph, node, inputs))


def _inner(builder: GraphBuilder, operand: QuantizedInput) -> ByteFunction | None:
    inner = operand.function() if operand.function else None
    form = operand.narrow
    if inner is None and form and form.tensor not in builder.constants:
        return ByteFunction(form, dequantised(codes(form.scheme.dtype), form.scheme))
    return inner


def _applied(graph: Graph, node: Node, inputs: list[Array | None]) -> Array:
    """An element-wise operator on other arrays than it has in the graph."""
    kinds = [graph.types[name].dtype if name else None for name in node.inputs]
    types = [TensorType(k, a.shape) if a is not None and k else None for a, k in zip(inputs, kinds, strict=True)]
    call = call_of(REGISTRY[node.op], types, node.attrs, values=inputs, name=node.name)
    return evaluate(call, inputs)[0]


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
