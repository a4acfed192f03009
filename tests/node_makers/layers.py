"""Nodes that are layers: products, normalisations, recurrence, attention, quantisation."""

from __future__ import annotations

import numpy as np
from onnx import helper

from node_makers.drawing import Drawing, Impossible, Maker
from node_makers.spatial import Window, zero_points
from tilewright.base.dtype import DTYPES


def matmul(d: Drawing) -> None:
    lead, (m, k, n) = d.shape(0, 2), (d.between(1, 5) for _ in range(3))
    left = (k,) if d.rarely() else (*d.part(lead), m, k)
    right = (k,) if d.rarely() else (*d.part(lead), k, n)
    d.put(left)
    d.put(right)
    if d.op == "MatMulInteger":
        zero_points(d)


def gemm(d: Drawing) -> None:
    m, k, n = (d.between(1, 6) for _ in range(3))
    first, second = d.below(2), d.below(2)
    d.put((k, m) if first else (m, k))
    d.put((n, k) if second else (k, n))
    if d.opset < 11 or d.flip():
        d.put(d.pick((n,), (m, 1), (1,), (), (m, n), (1, n), (1, 1)))
    d.say("transA", first, always=bool(first))
    d.say("transB", second, always=bool(second))
    if DTYPES[d.kind("T")].is_float:
        d.say("alpha", d.pick(1.0, 0.5, -2.0))
        d.say("beta", d.pick(1.0, 0.5, -2.0, 0.0))


EQUATIONS = (
    "...ij,...jk->...ik", "bhid,bhjd->bhij", "bij,bjk->bik", "bij,kj->bik", "i j , j k -> i k", "i,i->", "i,j->ij",
    "ii->i", "ij,ij->", "ij,ik,jk->i", "ij,jk", "ij,jk->ik", "ij->i", "ij->j", "ij->ji", "ijk->kij",
)  # fmt: skip


def einsum(d: Drawing) -> None:
    equation = d.pick(*EQUATIONS)
    sizes = {letter: d.between(1, 4) for letter in "ijkbhd"}
    lead = d.shape(0, 2)
    for term in equation.replace(" ", "").partition("->")[0].split(","):
        own = tuple(sizes[letter] for letter in term.replace("...", ""))
        # Of axes behind "..." onnxruntime takes as many in all operands; else it may crash.
        around = tuple(extent if d.flip() else 1 for extent in lead) if "..." in term else ()
        d.put((*around, *own))
    d.attributes["equation"] = equation


def batch_norm(d: Drawing) -> None:
    shape = (d.between(1, 2), d.between(1, 4), *(d.between(1, 4) for _ in range(d.below(4))))
    d.put(shape, constant=False)
    for low in (-2, -2, -2, 0.3):
        d.put((shape[1],), low, 2)
    d.say("epsilon", d.pick(1e-5, 1e-3, 0.5))
    if d.has("training_mode") and d.rarely():
        d.attributes["training_mode"] = 1
        d.say("momentum", 0.7)
        d.results(3)


def channel_norm(d: Drawing) -> None:
    groups = d.between(1, 3)
    shape = (d.between(1, 2), groups * d.between(1, 3), *(d.between(1, 4) for _ in range(d.between(1, 3))))
    d.put(shape, constant=False)
    count = groups if d.schema.since == 18 else shape[1]
    for _ in range(2):
        d.put((count,))
    d.say("num_groups", groups, always=True)
    d.say("epsilon", d.pick(1e-5, 1e-2))


def layer_norm(d: Drawing) -> None:
    shape = d.shape(1)
    if 0 in shape:
        raise Impossible
    axis = d.axis(len(shape))
    own = shape[axis:] if axis >= 0 else shape[len(shape) + axis :]
    d.put(shape, constant=False)
    d.put(own if d.below(4) else d.part(own))
    if d.takes("B") and d.flip():
        d.put(own if d.below(4) else d.part(own))
    d.say("axis", axis, always=True)
    d.say("epsilon", d.pick(1e-5, 1e-2))
    if d.op == "LayerNormalization":
        d.results(most=3)


def moments(d: Drawing) -> None:
    shape = d.shape(4, 4)
    d.put(shape, constant=False)
    if d.flip():
        d.say("axes", [axis for axis in range(4) if d.flip()] or [0])


def lrn(d: Drawing) -> None:
    d.put((d.between(1, 2), d.between(1, 6), *(d.between(1, 3) for _ in range(d.between(1, 2)))), constant=False)
    d.attributes["size"] = d.pick(1, 2, 3, 4, 5)
    d.say("alpha", 0.1)
    d.say("beta", d.pick(0.5, 0.75))
    d.say("bias", d.pick(1.0, 2.0))


ACTIVATIONS = (
    (("Tanh", "Relu", "Sigmoid", "Softsign", "Softplus"), ()),
    (("LeakyRelu", "Elu", "ThresholdedRelu"), ("activation_alpha",)),
    (("HardSigmoid", "Affine", "ScaledTanh"), ("activation_alpha", "activation_beta")),
)
"""Functions that take the same numbers."""


def _optional(d: Drawing, shape: tuple[int, ...]) -> None:
    """An operand that may be left out."""
    if d.flip():
        d.skip()
    else:
        d.put(shape, -1, 1)


def recurrent(d: Drawing) -> None:
    steps, batch, size, hidden = d.between(1, 4), d.between(1, 3), d.between(1, 4), d.between(1, 4)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.op]
    direction = d.pick("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    turned = int(d.has("layout") and d.rarely())
    d.put((batch, steps, size) if turned else (steps, batch, size), -2, 2, constant=False)
    d.put((ways, gates * hidden, size), -1, 1)
    d.put((ways, gates * hidden, hidden), -1, 1)
    state = (batch, ways, hidden) if turned else (ways, batch, hidden)
    _optional(d, (ways, 2 * gates * hidden))
    if d.flip():
        d.skip()
    else:
        d.give(np.asarray(d.rng.integers(1, steps + 1, batch)).astype(np.int32))
    _optional(d, state)
    if d.op == "LSTM":
        _optional(d, state)
        _optional(d, (ways, 3 * hidden))
    while d.inputs[-1] == "":
        d.inputs.pop()
    d.attributes["hidden_size"] = hidden
    d.say("direction", direction, always=True)
    d.say("layout", turned, always=bool(turned))
    if d.rarely():
        d.say("clip", 0.5)
    d.say("linear_before_reset", d.below(2))
    if d.rarely():
        d.say("input_forget", 1)
    if d.rarely():
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[d.op] * ways
        # Which numbers belong to which function is not said where only some have them.
        functions, numbers = d.pick(*ACTIVATIONS)
        d.attributes["activations"] = [d.pick(*functions) for _ in range(count)]
        d.attributes.update({name: [0.5] * count for name in numbers})
    d.results(most=len(d.schema.outputs))


def attention(d: Drawing) -> None:
    batch, groups, repeats = d.between(1, 2), d.between(1, 2), d.pick(1, 1, 2, 3)
    rows, keys, past = d.between(1, 4), d.between(1, 4), d.below(3) if d.flip() else 0
    size, width = d.between(1, 4), d.between(1, 4)
    heads = groups * repeats
    flat = d.flip()
    d.same("T2", "T1")
    d.put((batch, rows, heads * size) if flat else (batch, heads, rows, size))
    d.put((batch, keys, groups * size) if flat else (batch, groups, keys, size))
    d.put((batch, keys, groups * width) if flat else (batch, groups, keys, width))
    if flat:
        d.attributes.update(q_num_heads=heads, kv_num_heads=groups)
    masked = d.flip()
    total = keys + past
    if masked:
        shape = d.pick((rows, total), (batch, 1, rows, total), (1, heads, rows, total), (batch, heads, rows, total))
        if DTYPES[d.kind("U")].is_integer:
            d.same("U", "T1")
        mask = d.noise(d.next_kind(), shape)
        if mask.dtype == np.bool_:
            mask[..., 0] = True
        d.give(mask)
    if past:
        if not masked:
            d.skip()
        d.put((batch, groups, past, size))
        d.put((batch, groups, past, width))
    d.say("is_causal", int(not masked and d.flip()))
    if d.rarely():
        d.say("softcap", 2.0)
    d.say("scale", d.pick(0.3, 1.0))
    if past:
        d.results(3)
    elif d.rarely():
        d.outputs = ["o0", "", "", "o3"]
        # Whether the products alone have the cap is said by the standard, and done otherwise by its evaluator.
        least = 1 if "softcap" in d.attributes else 0
        d.attributes["qk_matmul_output_mode"] = d.between(least, 3)


def rotary(d: Drawing) -> None:
    batch, steps, heads, half = d.between(1, 2), d.between(1, 4), d.between(1, 3), d.between(1, 3)
    size = 2 * half + (2 * d.below(2))
    flat = d.flip()
    part = d.flip() and size > 2 * half
    turned = half if part else size // 2
    d.put((batch, steps, heads * size) if flat else (batch, heads, steps, size), constant=False)
    if d.flip():
        for _ in range(2):
            d.put((8, turned), -1, 1)
        d.give(np.asarray(d.rng.integers(0, 8, (batch, steps))).astype(np.int64))
    else:
        for _ in range(2):
            d.put((batch, steps, turned), -1, 1)
    if flat:
        d.attributes["num_heads"] = heads
    d.say("rotary_embedding_dim", 2 * turned if part else 0, always=part)
    d.say("interleaved", d.below(2))


def quantize(d: Drawing) -> None:
    shape = d.shape(1)
    if 0 in shape:
        raise Impossible
    if d.opset >= 19:
        # Quotients of shorter types are rounded once more, or are not.
        short = ("float16", "bfloat16") if d.op == "DequantizeLinear" else ()
        d.limit(d.schema.inputs[1].letter, "float32", *short)
    if d.op == "QuantizeLinear" and DTYPES[d.kind("T1")].is_float:
        d.limit("T1", "float32")
    axis = d.axis(len(shape)) if d.opset >= 13 else 0
    whole = d.opset < 13 or d.flip()
    own = () if whole else (shape[axis],)
    if d.has("block_size") and d.rarely():
        block = d.pick(*[n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
        d.attributes["block_size"] = block
        own = tuple(extent // block if at == axis % len(shape) else extent for at, extent in enumerate(shape))
        whole = False
    d.put(shape, -100, 100, constant=False)
    kind = DTYPES[d.next_kind()].numpy
    d.give(np.asarray(d.rng.uniform(0.1, 2, own)).astype(kind))
    letter = d.schema.inputs[2].letter
    if d.below(4) or DTYPES[d.kind(letter)].name != "uint8":
        limits = DTYPES[d.kind(letter)]
        zero = 0 if limits.bits > 16 else 9
        d.put(own, -zero, zero)
    if not whole or d.flip():
        d.say("axis", axis, always=True)


def dynamic_quantize(d: Drawing) -> None:
    low = d.pick(-4, 0.5, -4)
    d.put(d.shape(1), low, d.pick(4, low + 0.25), constant=False)
    d.results(3)


def quantised_conv(d: Drawing) -> None:
    window = Window(d)
    group, each, features = d.pick(1, 1, 2), d.between(1, 3), d.between(1, 3)
    many = (group * features,) if d.flip() else ()
    d.same("T3", "T1")
    d.put((1, group * each, *window.pixels), -100, 200, constant=False)
    d.give(np.asarray(0.05, np.float32), constant=True)
    d.put((), -9, 9, constant=True)
    d.put((group * features, each, *window.kernel), -100, 200, constant=True)
    d.give(np.asarray(d.rng.uniform(0.01, 0.1, many), np.float32), constant=True)
    if DTYPES[d.next_kind()].kind == "int":
        d.put(many, 0, 0, constant=True)
    else:
        d.give(np.full(many, d.below(9)).astype(DTYPES[d.next_kind()].numpy), constant=True)
    d.give(np.asarray(d.rng.uniform(0.3, 2), np.float32), constant=True)
    d.put((), -9, 9, constant=True)
    if d.flip():
        d.put((group * features,), -1000, 1000, constant=True)
    window.say(d, kernel=False)
    d.say("group", group, always=group > 1)


def quantised_matmul(d: Drawing) -> None:
    m, k, n = (d.between(1, 6) for _ in range(3))
    lead = d.shape(0, 1)
    if 0 in lead:
        raise Impossible
    d.same("T3", "T1")
    if d.opset >= 21:
        d.limit("TS", "float32")
    kind = DTYPES[d.kind("TS") if d.opset >= 21 else "float32"].numpy
    for shape in ((*lead, m, k), (k, n)):
        d.put(shape, -100, 200)
        d.give(np.asarray(d.rng.uniform(0.01, 0.1)).astype(kind), constant=True)
        d.put((), -9, 9, constant=True)
    d.give(np.asarray(d.rng.uniform(0.3, 2)).astype(kind), constant=True)
    d.put((), -9, 9, constant=True)


def loss(d: Drawing) -> None:
    batch, classes = d.between(1, 3), d.between(1, 5)
    pixels = [d.between(1, 3) for _ in range(d.below(3))]
    d.put((batch, classes, *pixels), constant=False)
    low = -1 if d.flip() else 0
    if low:
        d.attributes["ignore_index"] = -1
    d.give(np.asarray(d.rng.integers(low, classes, (batch, *pixels))).astype(DTYPES[d.next_kind()].numpy))
    if d.flip():
        d.put((classes,), 0.2, 1)
    d.say("reduction", d.pick("none", "mean", "sum"))
    if len(d.schema.outputs) > 1:
        d.results(d.between(1, 2))


def suppression(d: Drawing) -> None:
    batch, boxes, classes = d.between(1, 2), d.between(1, 6), d.between(1, 2)
    corners = np.sort(d.rng.uniform(0, 1, (batch, boxes, 2, 2)), 2).reshape(batch, boxes, 4)
    d.give(corners.astype(np.float32), constant=True)
    d.put((batch, classes, boxes), 0, 1, constant=True)
    d.give(np.asarray([d.between(0, 4)], np.int64), constant=True)
    d.give(np.asarray([d.pick(0.0, 0.2, 0.5)], np.float32), constant=True)
    if d.flip():
        d.give(np.asarray([0.3], np.float32), constant=True)
    d.say("center_point_box", d.below(2))


def causal_conv(d: Drawing) -> None:
    batch, channels, length, width = d.between(1, 2), d.between(1, 4), d.between(1, 5), d.between(1, 4)
    d.put((batch, channels, length), constant=False)
    d.put((channels, 1, width))
    if d.flip():
        d.put((channels,))
    if d.flip() and width > 1:
        if len(d.inputs) == 2:
            d.skip()
        d.put((batch, channels, width - 1))
    d.say("activation", d.pick("none", "silu", "swish"))
    d.results(2)


def window(d: Drawing) -> None:
    d.limit("T2", "float16", "float32", "float64")
    d.numbers(d.between(1, 12))
    d.say("periodic", d.below(2))
    d.say("output_datatype", helper.np_dtype_to_tensor_dtype(DTYPES[d.kind("T2")].numpy))


MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("MatMul", "MatMulInteger"), matmul),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), channel_norm),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_norm),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), recurrent),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), quantize),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), loss),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), window),
    "Attention": attention,
    "BatchNormalization": batch_norm,
    "CausalConvWithState": causal_conv,
    "DynamicQuantizeLinear": dynamic_quantize,
    "Einsum": einsum,
    "Gemm": gemm,
    "LRN": lrn,
    "MeanVarianceNormalization": moments,
    "NonMaxSuppression": suppression,
    "QLinearConv": quantised_conv,
    "QLinearMatMul": quantised_matmul,
    "RotaryEmbedding": rotary,
}
