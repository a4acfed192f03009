"""Models with numbers that nothing sensible follows from: scales, zero points, divisors, axes, indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from hostile.shapes import ints, one
from onnx_models import Array, model, node, value

SCALES = {
    "0": 0.0,
    "-1": -1.0,
    "nan": np.nan,
    "inf": np.inf,
    "-inf": -np.inf,
    "a denormal": 1e-42,
    "1e-38": 1e-38,
    "1e38": 1e38,
    "3.4e38": 3.4e38,
}
PLACES = ("x", "w", "y")


def scale(number: float) -> Array:
    return np.array(number, np.float32)


def qdq(at: str, number: float | Array) -> onnx.ModelProto:
    """A quantised convolution in QDQ form, with one scale replaced."""
    scales: dict[str, Any] = {f"s{place}": scale(0.5) for place in PLACES} | {f"s{at}": np.asarray(number, np.float32)}
    zeros = {"zx": np.array(0, np.int8), "zw": np.zeros(scales["sw"].shape, np.int8), "zy": np.array(0, np.int8)}
    weights = {"w": np.ones((2, 1, 3, 3), np.int8)}
    nodes = [
        node("QuantizeLinear", "x sx zx", "xq"),
        node("DequantizeLinear", "xq sx zx", "xf"),
        node("DequantizeLinear", "w sw zw", "wf", axis=0),
        node("Conv", "xf wf", "c"),
        node("Relu", "c", "r"),
        node("QuantizeLinear", "r sy zy", "yq"),
        node("DequantizeLinear", "yq sy zy", "y"),
    ]
    return model(nodes, [value("x", (1, 1, 5, 5))], ["y"], constants={**scales, **zeros, **weights})


def qlinear_conv(at: str, number: float | Array) -> onnx.ModelProto:
    scales: dict[str, Any] = {f"s{place}": scale(0.5) for place in PLACES} | {f"s{at}": np.asarray(number, np.float32)}
    zeros = {f"z{place}": np.array(0, np.int8) for place in PLACES}
    zeros["zw"] = np.zeros(scales["sw"].shape, np.int8)
    nodes = [node("QLinearConv", "x sx zx w sw zw sy zy", "y")]
    weights = {"w": np.ones((2, 1, 3, 3), np.int8)}
    return model(nodes, [value("x", (1, 1, 5, 5), TensorProto.INT8)], ["y"], constants={**scales, **zeros, **weights})


def qlinear(op: str, number: float, domain: str = "") -> onnx.ModelProto:
    """QLinearMatMul or QLinearAdd with one scale replaced."""
    constants = {"s": scale(0.5), "bad": scale(number), "z": np.array(0, np.int8), "w": np.ones((3, 3), np.int8)}
    nodes = [node(op, "x bad z w s z s z", "y", domain=domain)]
    return model(nodes, [value("x", (3, 3), TensorProto.INT8)], ["y"], constants=constants, domains=["com.microsoft"])


def quantise(number: float | Array, zero: Array, **attrs: Any) -> onnx.ModelProto:
    constants = {"s": np.asarray(number, np.float32), "z": zero}
    nodes = [node("QuantizeLinear", "x s z", "q", **attrs), node("DequantizeLinear", "q s z", "y", **attrs)]
    return model(nodes, [value("x", (2, 3))], ["y"], constants=constants)


def divide(op: str, dividend: str, divisor: Array) -> onnx.ModelProto:
    """By a constant; a constant dividend is computed at compile time."""
    constants = {"d": divisor, "c": np.array([7, 100, 0], divisor.dtype)}
    kind = onnx.helper.np_dtype_to_tensor_dtype(divisor.dtype)
    nodes = [node(op, f"{dividend} d", "q"), node("Add", "x q", "y")]
    return model(nodes, [value("x", (3,), kind)], ["y"], constants=constants)


def product(*, scale_length: int) -> onnx.ModelProto:
    """A quantised matrix product with scales for other columns than there are."""
    constants = {
        "s": scale(0.5),
        "z": np.array(0, np.int8),
        "w": np.ones((3, 4), np.int8),
        "sw": np.full(scale_length, 0.5, np.float32),
        "zw": np.zeros(scale_length, np.int8),
    }
    nodes = [
        node("QuantizeLinear", "x s z", "xq"),
        node("DequantizeLinear", "xq s z", "xf"),
        node("DequantizeLinear", "w sw zw", "wf", axis=1),
        node("MatMul", "xf wf", "y"),
    ]
    return model(nodes, [value("x", (2, 3))], ["y"], constants=constants)


FLOATS = np.ones((2, 3), np.float32)

ODD: dict[str, Any] = {
    **{f"an axis twice of {op}": one(op, "x a", {"a": ints(0, 0)}) for op in ("ReduceSum", "ReduceMean")},
    "LSTM of no hidden units": one(
        "LSTM",
        "x w r",
        {"w": np.ones((1, 0, 3), np.float32), "r": np.ones((1, 0, 0), np.float32)},
        (4, 1, 3),
        hidden_size=0,
    ),
    **{f"QDQ convolution, scale of {p} {name}": qdq(p, n) for p in PLACES for name, n in SCALES.items()},
    **{f"QLinearConv, scale of {p} {name}": qlinear_conv(p, n) for p in PLACES for name, n in SCALES.items()},
    **{f"QLinearMatMul, scale {name}": qlinear("QLinearMatMul", n) for name, n in SCALES.items()},
    **{f"QLinearAdd, scale {name}": qlinear("QLinearAdd", n, "com.microsoft") for name, n in SCALES.items()},
    **{f"QuantizeLinear, scale {name}": quantise(n, np.array(0, np.int8)) for name, n in SCALES.items()},
    "QDQ convolution, one scale of two 0": qdq("w", np.array([0.5, 0.0], np.float32)),
    "QDQ convolution, one scale of two huge": qdq("w", np.array([0.5, 1e38], np.float32)),
    "QDQ convolution, one scale of two nan": qdq("w", np.array([0.5, np.nan], np.float32)),
    "QLinearConv, one scale of two 0": qlinear_conv("w", np.array([0.5, 0.0], np.float32)),
    "zero point at the end": quantise(0.5, np.array(-128, np.int8)),
    "zero point of a float type": quantise(0.5, np.array(0.0, np.float32)),
    "zero point of int32": quantise(0.5, np.array(1 << 30, np.int32)),
    "zero points in a list of one": quantise(np.array([0.5]), np.array([0], np.int8)),
    "blocked quantisation of block 0": quantise(np.ones((2, 3)), np.zeros((2, 3), np.int8), block_size=0),
    "blocked quantisation of block -1": quantise(np.ones((2, 3)), np.zeros((2, 3), np.int8), block_size=-1),
    **{
        f"{op} of {dividend} by {name}": divide(op, dividend, np.array(divisor, kind))
        for op in ("Div", "Mod")
        for dividend in ("x", "c")
        for name, divisor, kind in (
            ("int32 0", [0, 1, 2], np.int32),
            ("int64 0", [0, 1, 2], np.int64),
            ("uint8 0", [0, 1, 2], np.uint8),
            ("int8 -1", [-1, -1, -1], np.int8),
            ("scalar 0", 0, np.int64),
        )
    },
    "Div of the smallest int64 by -1": model(
        [node("Div", "c d", "q"), node("Add", "x q", "y")],
        [value("x", (1,), TensorProto.INT64)],
        ["y"],
        constants={"c": ints(-(1 << 63)), "d": ints(-1)},
    ),
    "Div by a float 0": one("Div", "x d", {"d": np.zeros(3, np.float32)}),
    "Mod by a float 0": one("Mod", "x d", {"d": np.zeros(3, np.float32)}, fmod=1),
    "BitShift by 200": model(
        [node("BitShift", "x s", "y", direction="LEFT")],
        [value("x", (2,), TensorProto.UINT8)],
        ["y"],
        constants={"s": np.array([200, 200], np.uint8)},
    ),
    "Pow of integers to a negative power": model(
        [node("Pow", "x p", "y")], [value("x", (2,), TensorProto.INT32)], ["y"], constants={"p": np.array([-1, -2])}
    ),
    "Clip to an empty range": one("Clip", "x a b", {"a": scale(1), "b": scale(-1)}),
    "Clip to nan": one("Clip", "x a b", {"a": scale(np.nan), "b": scale(np.nan)}),
    "Cast of nan to integers": model(
        [node("Cast", "c", "i", to=TensorProto.INT8), node("Add", "x i", "y")],
        [value("x", (3,), TensorProto.INT8)],
        ["y"],
        constants={"c": np.array([np.nan, np.inf, 1e30], np.float32)},
    ),
    "Reciprocal of an integer 0": model(
        [node("Reciprocal", "c", "r"), node("Add", "x r", "y")],
        [value("x", (1,))],
        ["y"],
        constants={"c": np.zeros(1, np.float32)},
    ),
    "LayerNormalization of epsilon nan": one(
        "LayerNormalization", "x s", {"s": np.ones(3, np.float32)}, epsilon=np.nan
    ),
    "LayerNormalization of epsilon 0": one("LayerNormalization", "x s", {"s": np.ones(3, np.float32)}, epsilon=0.0),
    "BatchNormalization of variance -1": one(
        "BatchNormalization",
        "x s s s v",
        {"s": np.ones(3, np.float32), "v": -np.ones(3, np.float32)},
    ),
    "LeakyRelu of slope inf": one("LeakyRelu", "x", {}, alpha=np.inf),
    "Gather of an index outside": one("Gather", "x i", {"i": ints(99)}),
    "Gather of the smallest index": one("Gather", "x i", {"i": ints(-(1 << 63))}),
    "GatherElements outside": one("GatherElements", "x i", {"i": np.full((2, 3), 99)}),
    "GatherND outside": one("GatherND", "x i", {"i": np.array([[99, 99]])}),
    "GatherND of too many indices": one("GatherND", "x i", {"i": np.array([[0, 0, 0]])}),
    "ScatterND outside": one("ScatterND", "x i u", {"i": np.array([[99, 99]]), "u": np.ones(1, np.float32)}),
    "ScatterElements outside": one("ScatterElements", "x i u", {"i": np.full((2, 3), -99), "u": FLOATS}),
    "constants gathered outside": model(
        [node("Gather", "c i", "g"), node("Add", "x g", "y")],
        [value("x", (2, 3))],
        ["y"],
        constants={"c": FLOATS, "i": ints(99)},
    ),
    "OneHot of indices outside": one(
        "OneHot", "c d v", {"c": ints(99, -99), "d": np.array(3), "v": np.array([0, 1], np.float32)}
    ),
    "ReverseSequence of long lengths": one("ReverseSequence", "x l", {"l": ints(99, 99, 99)}),
    "constants of nan and infinity": one("Add", "x c", {"c": np.array([np.nan, np.inf, -np.inf], np.float32)}),
    "Resize of a fraction": one("Resize", "x - f", {"f": np.array([1e-30, 1], np.float32)}),
    "Dropout of ratio 7": one("Dropout", "x r", {"r": scale(7)}),
    "Einsum of a trace": one("Einsum", "x", {}, (3, 3), equation="ii"),
}
"""A clear error or a legal program."""

BAD: dict[str, Any] = {
    **{f"scales for {n} columns of 4": product(scale_length=n) for n in (0, 3, 5)},
    "scales of another length": qdq("w", np.full(5, 0.5, np.float32)),
    "QLinearConv, scales of another length": qlinear_conv("w", np.full(5, 0.5, np.float32)),
    "scales of rank 2 without blocks": quantise(np.ones((5, 7)), np.zeros((5, 7), np.int8)),
    "quantised axis outside": quantise(np.ones(3), np.zeros(3, np.int8), axis=9),
    **{
        f"axis {axis} of {op}": one(op, "x", {}, axis=axis)
        for op in ("Softmax", "Flatten", "ArgMax", "LogSoftmax", "Hardmax", "LpNormalization", "Split")
        for axis in (-9, 9, -(1 << 63), (1 << 63) - 1)
    },
    **{
        f"axes {axes} of {op}": one(op, "x a", {"a": ints(*axes)})
        for op in ("ReduceSum", "ReduceMean", "Squeeze", "Unsqueeze")
        for axes in ((9,), (-9,), (1 << 62,))
    },
    **{f"an axis twice of {op}": one(op, "x a", {"a": ints(0, 0)}) for op in ("Squeeze", "Unsqueeze")},
    "axis outside of Concat": one("Concat", "x x", {}, axis=9),
    "axis outside of Gather": one("Gather", "x i", {"i": ints(0)}, axis=9),
    "axis outside of CumSum": one("CumSum", "x a", {"a": np.array(9)}),
    "axis outside of TopK": one("TopK", "x k", {"k": ints(1)}, axis=9),
    "axis outside of LayerNormalization": one("LayerNormalization", "x s", {"s": np.ones(3, np.float32)}, axis=9),
    "Einsum without an equation": one("Einsum", "x", {}),
    "Einsum of an odd equation": one("Einsum", "x", {}, equation="->->"),
    "Einsum of too many operands": one("Einsum", "x", {}, equation="ij,jk->ik"),
    "Cast to nothing": one("Cast", "x", {}, to=0),
    "Cast to type 999": one("Cast", "x", {}, to=999),
    "Cast to text": one("Cast", "x", {}, to=TensorProto.STRING),
    "Pad of an odd mode": one("Pad", "x p", {"p": ints(1, 1, 1, 1)}, mode="sideways"),
    "Resize of an odd mode": one("Resize", "x - f", {"f": np.array([2, 2], np.float32)}, mode="sideways"),
    "Conv of odd auto_pad": one(
        "Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), auto_pad="SIDEWAYS"
    ),
    "LSTM of an odd activation": one(
        "LSTM",
        "x w r",
        {"w": np.ones((1, 8, 3), np.float32), "r": np.ones((1, 8, 2), np.float32)},
        (4, 1, 3),
        hidden_size=2,
        activations=["Odd", "Tanh", "Tanh"],
    ),
}
"""One clear error."""
