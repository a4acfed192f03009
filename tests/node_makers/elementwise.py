"""Nodes that compute each result from the elements at its place, or along an axis."""

from __future__ import annotations

import numpy as np
from onnx import helper

from node_makers.drawing import Drawing, Impossible, Maker
from tilewright.base.dtype import DTYPES

RANGES = {
    "Acos": (-1, 1),
    "Acosh": (1, 9),
    "Asin": (-1, 1),
    "Atanh": (-0.95, 0.95),
    "Cosh": (-9, 9),
    "Log": (0.01, 9),
    "Reciprocal": (0.1, 4),
    "Sinh": (-9, 9),
    "Sqrt": (0, 90),
    "Tan": (-1.4, 1.4),
}
"""Where a function is defined and is not too steep; others are asked from -4 to 4."""
UNARY = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Cos", "Cosh", "Erf", "Exp",
    "Floor", "HardSwish", "Identity", "IsNaN", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
)  # fmt: skip
FACTORS = {
    "Celu": ("alpha",),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "Shrink": ("lambd", "bias"),
    "Swish": ("alpha",),
    "ThresholdedRelu": ("alpha",),
}
BINARY = (
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Mod", "Mul", "Or", "PRelu", "Sub", "Xor",
)  # fmt: skip
REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]


FLOATS = ("float16", "bfloat16", "float32", "float64")


def unary(d: Drawing) -> None:
    if d.op == "Erf":
        d.limit("T", *FLOATS)
    low, high = RANGES.get(d.op, (-4, 4))
    values = d.noise(d.next_kind(), d.shape(), low, high)
    if d.op in ("IsNaN", "Abs", "Neg", "Relu", "Ceil") and values.dtype.kind == "f" and values.size and d.flip():
        values.flat[d.below(values.size)] = d.pick(np.nan, np.inf, -np.inf, -0.0)
    d.give(values, constant=False)


def with_factors(d: Drawing) -> None:
    unary(d)
    for name in FACTORS[d.op]:
        d.say(name, round(float(d.rng.uniform(0.1, 2)), 3))


def infinite(d: Drawing) -> None:
    values = d.put(d.shape(), constant=False)
    for _ in range(2):
        if values.size:
            values.flat[d.below(values.size)] = d.pick(np.inf, -np.inf, np.nan)
    d.say("detect_negative", d.below(2))
    d.say("detect_positive", d.below(2))


def gelu(d: Drawing) -> None:
    d.put(d.shape(), constant=False)
    d.say("approximate", d.pick("none", "tanh"))


def binary(d: Drawing) -> None:
    whole = d.shape()
    first = whole if d.op == "PRelu" or d.flip() else d.part(whole)
    kind = DTYPES[d.next_kind()]
    if d.op == "Mod":
        d.say("fmod", 1, always=kind.is_float or d.flip())
    if d.op == "BitShift":
        d.attributes["direction"] = d.pick("LEFT", "RIGHT")
        d.put(first, 0, 100)
        d.put(d.part(whole), 0, 8 * kind.numpy.itemsize - 1)
        return
    reach = 100 if kind.is_float or d.flip() else 2.0**31
    d.put(first, -reach, reach)
    second = d.noise(d.next_kind(), d.part(whole), -reach, reach)
    if d.op in ("Div", "Mod") and kind.kind != "bool":
        second[np.abs(second.astype(np.float64)) < 0.25] = 3
        if not kind.is_float:
            second[second.astype(np.int64) == -1] = 3
    d.give(second)


def power(d: Drawing) -> None:
    whole = d.shape()
    d.put(d.part(whole) if d.flip() else whole, 0.1, 4)
    if d.opset < 12:
        d.same("T1", "T") if "T1" in {p.letter for p in d.schema.inputs} else None
    d.put(d.part(whole) if d.flip() else (), 0, 4)


def several(d: Drawing) -> None:
    whole = d.shape()
    for _ in range(d.between(1, 4)):
        d.put(d.part(whole) if d.flip() else whole)


def where(d: Drawing) -> None:
    whole = d.shape()
    for _ in range(3):
        d.put(d.part(whole))


def clip(d: Drawing) -> None:
    d.put(d.shape(), -9, 9, constant=False)
    low, high = sorted(round(float(end), 2) for end in d.rng.uniform(-5, 5, 2))
    if d.has("min"):
        d.say("min", low)
        d.say("max", high)
        return
    for end in (low, high):
        kind = DTYPES[d.next_kind()]
        if d.flip():
            number = end if kind.is_float else min(max(round(end), kind.lo), kind.hi)
            d.give(np.asarray(number).astype(kind.numpy))
        else:
            d.skip()
    while d.inputs[-1] == "":
        d.inputs.pop()


def cast(d: Drawing) -> None:
    source, target = DTYPES[d.kind("T1")], DTYPES[d.kind("T2")]
    # What does not fit into an integer is undefined where it is a float.
    reach = 100.0
    if source.is_float and not target.is_float:
        low, high = (max(-reach, target.lo), min(reach, target.hi)) if target.kind != "bool" else (-2, 2)
    else:
        low, high = -reach, reach
    if source.kind == "bool":
        low, high = 0, 1
    d.put(d.shape(), low, high, constant=False)
    if d.op == "CastLike":
        d.put(d.shape())
    else:
        d.attributes["to"] = helper.np_dtype_to_tensor_dtype(np.dtype(target.numpy))
    d.say("saturate", d.below(2))


def bit_cast(d: Drawing) -> None:
    source, target = DTYPES[d.kind("T1")], DTYPES[d.kind("T2")]
    if source.numpy.itemsize != target.numpy.itemsize or "bool" in (source.kind, target.kind):
        raise Impossible
    d.put(d.shape(), constant=False)
    d.attributes["to"] = helper.np_dtype_to_tensor_dtype(np.dtype(target.numpy))


def reduction(d: Drawing) -> None:
    shape = d.shape()
    if d.op in ("ReduceLogSum", "ReduceLogSumExp"):
        d.limit("T", *FLOATS)
    low = 0.1 if d.op in ("ReduceLogSum", "ReduceProd") else -3
    d.put(shape, low, 2 if d.op == "ReduceProd" else 3, constant=False)
    if d.below(4) and shape:
        d.either("axes", d.axes(len(shape), 0 if d.takes("axes") else 1))
    d.say("keepdims", d.below(2))
    d.say("noop_with_empty_axes", d.below(2))


def arg_reduction(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, -3, 3, constant=False)
    d.say("axis", d.axis(len(shape)))
    d.say("keepdims", d.below(2))
    d.say("select_last_index", d.below(2))


def along_axis(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, constant=False)
    d.say("axis", d.axis(len(shape)))
    if d.op == "LpNormalization":
        d.say("p", d.between(1, 2))


def cumulative(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, -2, 2, constant=False)
    kind = np.dtype(d.next_kind())
    axis = d.axis(len(shape))
    d.give(np.asarray([axis] if d.flip() else axis, kind), constant=True)
    d.say("exclusive", d.below(2))
    d.say("reverse", d.below(2))


def dropout(d: Drawing) -> None:
    d.put(d.shape(), constant=False)
    d.say("ratio", 0.5)
    # Before, what the mask holds was not said.
    d.results(most=2 if d.opset >= 12 else 1)


MAKERS: dict[str, Maker] = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys(FACTORS, with_factors),
    **dict.fromkeys(BINARY, binary),
    **dict.fromkeys(("Max", "Min", "Mean", "Sum"), several),
    **{f"Reduce{name}": reduction for name in REDUCTIONS},
    **dict.fromkeys(("ArgMax", "ArgMin"), arg_reduction),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"), along_axis),
    **dict.fromkeys(("CumSum", "CumProd"), cumulative),
    **dict.fromkeys(("Cast", "CastLike"), cast),
    "BitCast": bit_cast,
    "Clip": clip,
    "Dropout": dropout,
    "Gelu": gelu,
    "IsInf": infinite,
    "Pow": power,
    "Where": where,
}
