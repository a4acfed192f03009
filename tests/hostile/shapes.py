"""Models whose tensors are too large, too deep or senseless in shape."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_models import Array, model, node, value

INT64 = TensorProto.INT64


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def one(op: str, inputs: str, constants: Mapping[str, Array], shape: tuple[int, ...] = (2, 3), **attrs: Any) -> Any:
    """A node on an input `x`, with constants."""
    return model([node(op, inputs, "y", **attrs)], [value("x", shape)], ["y"], constants=constants)


def alone(op: str, inputs: str, constants: Mapping[str, Array], **attrs: Any) -> Any:
    """A node on constants only, so that it is computed at compile time, with a network behind it."""
    nodes = [node(op, inputs, "made", **attrs), node("Shape", "made", "shape")]
    nodes += [node("Cast", "shape", "y", to=TensorProto.FLOAT)]
    return model(nodes, [value("x", (2, 3))], ["y"], constants=constants)


def declared(*shape: int | None, op: str = "Relu", kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    return model([node(op, "x", "y")], [value("x", shape, kind)], ["y"])


def constant(dims: list[int], **content: Any) -> onnx.ModelProto:
    """A constant of this shape, with data that do not fill it."""
    built = one("Add", "x w", {})
    built.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=dims, **content)
    return built


def chain(count: int, shape: tuple[int, ...]) -> onnx.ModelProto:
    """Each tensor is fine, all together are more than any machine holds."""
    names = ["x", *(f"t{i}" for i in range(count)), "y"]
    nodes = [node("Concat", f"{a} {a}", b, axis=0) for a, b in pairwise(names)]
    return model(nodes, [value("x", shape)], ["y"])


def folded(count: int) -> onnx.ModelProto:
    """Constants that double at every step."""
    names = ["c", *(f"t{i}" for i in range(count))]
    nodes = [node("Concat", f"{a} {a}", b, axis=0) for a, b in pairwise(names)]
    nodes.append(node("Gather", f"{names[-1]} i", "y", axis=0))
    kinds = [value("i", (1,), INT64)]
    return model(nodes, kinds, ["y"], constants={"c": np.ones((2, 3), np.float32)})


HUGE = 1 << 62

TOO_LARGE: dict[str, Any] = {
    **{f"input of 2^{n}": declared(1 << n) for n in (33, 40, 48, 62)},
    "extents whose product overflows": declared(1 << 32, 1 << 32),
    "extents whose product overflows to zero": declared(1 << 32, 1 << 32, 1 << 32),
    "rank 70": declared(*([1] * 70)),
    "rank 70 with elements": declared(*([2] * 70)),
    "huge beside nothing": declared(0, HUGE),
    "huge bytes": declared(1 << 40, kind=TensorProto.INT8),
    "huge input of a reduction": declared(1 << 40, op="ReduceSum"),
    "huge input of a view": declared(1 << 20, 1 << 25, op="Flatten"),
    "doubled 60 times": chain(60, (2, 3)),
    "constants doubled 60 times": folded(60),
    "Range to 2^62": alone("Range", "a b c", {"a": np.array(0), "b": np.array(HUGE), "c": np.array(1)}),
    "Range of tiny steps": alone("Range", "a b c", {"a": np.array(0.0), "b": np.array(1.0), "c": np.array(1e-300)}),
    "ConstantOfShape of 2^62": alone("ConstantOfShape", "s", {"s": ints(HUGE)}),
    "ConstantOfShape of 2^20 by 2^20": alone("ConstantOfShape", "s", {"s": ints(1 << 20, 1 << 20)}),
    "ConstantOfShape of rank 70": alone("ConstantOfShape", "s", {"s": ints(*([1] * 70))}),
    "Expand to 2^62": one("Expand", "x s", {"s": ints(HUGE, 2, 3)}),
    "Expand of a constant to 2^62": alone("Expand", "c s", {"c": np.ones(1, np.float32), "s": ints(HUGE)}),
    "Expand to rank 70": one("Expand", "x s", {"s": ints(*([1] * 68), 2, 3)}),
    "Tile by 2^62": one("Tile", "x r", {"r": ints(HUGE, 1)}),
    "Tile of a constant by 2^40": alone("Tile", "c r", {"c": np.ones((1, 1), np.float32), "r": ints(1 << 40, 1)}),
    "Pad by 2^62": one("Pad", "x p", {"p": ints(HUGE, 0, 0, 0)}),
    "Pad of a constant by 2^40": alone("Pad", "c p", {"c": np.ones(1, np.float32), "p": ints(1 << 40, 0)}),
    "Resize to 2^40": one("Resize", "x - - s", {"s": ints(1 << 40, 3)}),
    "Resize by 1e30": one("Resize", "x - f", {"f": np.array([1e30, 1], np.float32)}),
    "Upsample by 1e30": model(
        [node("Upsample", "x f", "y")],
        [value("x", (1, 1, 2, 3))],
        ["y"],
        constants={"f": np.array([1, 1, 1e30, 1], np.float32)},
        opset=9,
    ),
    "OneHot of depth 2^40": one(
        "OneHot", "c d v", {"c": ints(1, 2), "d": np.array(1 << 40), "v": np.array([0, 1], np.float32)}
    ),
    "EyeLike of 2^20 by 2^20": one("EyeLike", "x", {}, (1 << 20, 1 << 20)),
    "Conv padded by 2^40": one(
        "Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), pads=[1 << 40, 0, 0, 0]
    ),
    "ConvTranspose of stride 2^40": one(
        "ConvTranspose", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), strides=[1 << 40, 1]
    ),
    "MaxPool padded by 2^40": one("MaxPool", "x", {}, (1, 1, 4, 4), kernel_shape=[1, 1], pads=[1 << 40, 0, 0, 0]),
    "Unsqueeze to rank 70": one("Unsqueeze", "x a", {"a": ints(*range(68))}),
    "matrix product of 2^20 by 2^20": model(
        [node("MatMul", "x z", "y")], [value("x", (1 << 20, 1)), value("z", (1, 1 << 22))], ["y"]
    ),
    "broadcast to 2^44": model([node("Add", "x z", "y")], [value("x", (1 << 22, 1)), value("z", (1, 1 << 22))], ["y"]),
    "outer product by Einsum": model(
        [node("Einsum", "x z", "y", equation="i,j->ij")], [value("x", (1 << 22,)), value("z", (1 << 22,))], ["y"]
    ),
    "DepthToSpace of huge blocks": one("DepthToSpace", "x", {}, (1, 1 << 40, 1, 1), blocksize=1 << 20),
    "HannWindow of 2^40": alone("HannWindow", "s", {"s": np.array(1 << 40)}),
    "CumSum of a huge constant": alone(
        "ConstantOfShape", "s", {"s": ints(1 << 36)}, value=helper.make_tensor("v", TensorProto.INT8, [1], [1])
    ),
}
"""One clear error, before anything is allocated."""

BAD: dict[str, Any] = {
    "Range that is not finite": alone(
        "Range", "a b c", {"a": np.array(0.0), "b": np.array(np.inf), "c": np.array(1.0)}
    ),
    "negative extent": declared(-2, 3),
    "smallest extent": declared(-(1 << 63), 3),
    "shape without extents": declared(None, None),
    "constant of rank 70 without data": constant([1] * 70),
    "constant of rank 70": constant([1] * 70, float_data=[1.0]),
    "constant of 2^62 elements": constant([HUGE], float_data=[1.0]),
    "constant of 2^62 raw elements": constant([HUGE], raw_data=b"1234"),
    "constant of negative extents": constant([-2, -3], float_data=[1.0] * 6),
    "constant of extent -1": constant([-1], float_data=[1.0] * 3),
    "constant of no data": constant([2, 3]),
    "constant of odd bytes": constant([2, 3], raw_data=b"12345"),
    "constant of too many bytes": constant([2, 3], raw_data=bytes(25)),
    "constant of too many numbers": constant([2, 3], float_data=[1.0] * 7),
    "Reshape to two unknowns": one("Reshape", "x s", {"s": ints(-1, -1)}),
    "Reshape to negative extents": one("Reshape", "x s", {"s": ints(-2, -3)}),
    "Reshape to another size": one("Reshape", "x s", {"s": ints(7)}),
    "Reshape to 2^62": one("Reshape", "x s", {"s": ints(HUGE, -1)}),
    "Reshape past the rank": one("Reshape", "x s", {"s": ints(0, 0, 0)}),
    "ConstantOfShape of negative extents": alone("ConstantOfShape", "s", {"s": ints(-1, 3)}),
    "Expand to what does not broadcast": one("Expand", "x s", {"s": ints(5, 7)}),
    "Expand to negative extents": one("Expand", "x s", {"s": ints(-1, 3)}),
    "Tile by negative numbers": one("Tile", "x r", {"r": ints(-1, 1)}),
    "Tile by too few numbers": one("Tile", "x r", {"r": ints(2)}),
    "Pad by too few numbers": one("Pad", "x p", {"p": ints(1)}),
    "Pad that cuts too much": one("Pad", "x p", {"p": ints(-5, 0, 0, 0)}),
    "Resize to negative extents": one("Resize", "x - - s", {"s": ints(-1, 3)}),
    "Resize by nan": one("Resize", "x - f", {"f": np.array([np.nan, 1], np.float32)}),
    "Resize by negative numbers": one("Resize", "x - f", {"f": np.array([-1, 1], np.float32)}),
    "Resize by infinity": one("Resize", "x - f", {"f": np.array([np.inf, 1], np.float32)}),
    "Resize by too few numbers": one("Resize", "x - f", {"f": np.array([2], np.float32)}),
    "Range of step zero": alone("Range", "a b c", {"a": np.array(0), "b": np.array(5), "c": np.array(0)}),
    "Range of vectors": alone("Range", "a b c", {"a": ints(0, 1), "b": ints(5, 1), "c": ints(1, 1)}),
    "Range of nothing": alone("Range", "a b c", {n: np.zeros(0, np.int64) for n in "abc"}),
    "OneHot of negative depth": one(
        "OneHot", "c d v", {"c": ints(1, 2), "d": np.array(-1), "v": np.array([0, 1], np.float32)}
    ),
    "Split into too much": one("Split", "x s", {"s": ints(5, 5)}),
    "Split into negative parts": model(
        [node("Split", "x s", "y z")], [value("x", (2, 3))], ["y", "z"], constants={"s": ints(-1, 3)}
    ),
    "Slice of too many axes": one("Slice", "x a b c", {"a": ints(0, 0, 0), "b": ints(1, 1, 1), "c": ints(0, 1, 2)}),
    "Slice of unequal lists": one("Slice", "x a b", {"a": ints(0, 0), "b": ints(1)}),
    "MatMul of scalars": declared(op="MatMul"),
    "MatMul of other extents": one("MatMul", "x w", {"w": np.ones((5, 2), np.float32)}),
    "Conv of rank 2": one("Conv", "x w", {"w": np.ones((1, 1), np.float32)}),
    "Conv of a scalar": one("Conv", "x w", {"w": np.ones((1, 1, 1), np.float32)}, ()),
    "Conv of other channels": one("Conv", "x w", {"w": np.ones((1, 5, 1, 1), np.float32)}, (1, 3, 4, 4)),
    "Conv of a kernel beyond its input": one("Conv", "x w", {"w": np.ones((1, 1, 9, 9), np.float32)}, (1, 1, 4, 4)),
    "Conv of stride zero": one("Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), strides=[0, 0]),
    "Conv of stride -1": one("Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), strides=[-1, 1]),
    "Conv of dilation zero": one(
        "Conv", "x w", {"w": np.ones((1, 1, 2, 2), np.float32)}, (1, 1, 4, 4), dilations=[0, 0]
    ),
    "Conv of too few strides": one("Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), strides=[1]),
    "Conv of too few pads": one("Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), pads=[1]),
    "Conv of negative pads": one(
        "Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), pads=[-9, 0, 0, 0]
    ),
    "Conv of zero groups": one("Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), group=0),
    "Conv of negative groups": one("Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), group=-1),
    "Conv of another kernel_shape": one(
        "Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), kernel_shape=[3, 3]
    ),
    "MaxPool of kernel zero": one("MaxPool", "x", {}, (1, 1, 4, 4), kernel_shape=[0, 0]),
    "MaxPool without kernel": one("MaxPool", "x", {}, (1, 1, 4, 4)),
    "MaxPool of a negative kernel": one("MaxPool", "x", {}, (1, 1, 4, 4), kernel_shape=[-2, 2]),
    "AveragePool of stride zero": one("AveragePool", "x", {}, (1, 1, 4, 4), kernel_shape=[2, 2], strides=[0, 1]),
    "DepthToSpace of blocks of zero": one("DepthToSpace", "x", {}, (1, 4, 2, 2), blocksize=0),
    "DepthToSpace of rank 2": one("DepthToSpace", "x", {}, blocksize=2),
    "BatchNormalization of other channels": one(
        "BatchNormalization", "x c c c c", {"c": np.ones(5, np.float32)}, (1, 3, 4, 4)
    ),
    "Gemm of rank 1": one("Gemm", "x w", {"w": np.ones((3, 2), np.float32)}, (3,)),
    "Squeeze of an axis of 2": one("Squeeze", "x a", {"a": ints(0)}),
    "Transpose by other axes": one("Transpose", "x", {}, perm=[0, 0]),
    "Transpose by too few axes": one("Transpose", "x", {}, perm=[0]),
    "Concat of other extents": one("Concat", "x w", {"w": np.ones((5, 5), np.float32)}, axis=0),
    "Add of other extents": one("Add", "x w", {"w": np.ones((5, 5), np.float32)}),
    "Where of other extents": one("Where", "c x x", {"c": np.ones((4, 4), np.bool_)}),
    "LSTM of other extents": one("LSTM", "x w w", {"w": np.ones((1, 5, 7), np.float32)}, (2, 3, 4), hidden_size=9),
    "TopK of more than there is": one("TopK", "x k", {"k": ints(99)}),
    "TopK of negative k": one("TopK", "x k", {"k": ints(-1)}),
    "SpaceToDepth of blocks of zero": one("SpaceToDepth", "x", {}, (1, 1, 4, 4), blocksize=0),
    "LRN of size zero": one("LRN", "x", {}, (1, 3, 4, 4), size=0),
}
"""One clear error."""

ODD: dict[str, Any] = {
    "Pad by reflection of too much": one("Pad", "x p", {"p": ints(9, 0, 0, 0)}, mode="reflect"),
    "Reshape to floats": one("Reshape", "x s", {"s": np.array([2.0, 3.0])}),
    "Reshape to a matrix of extents": one("Reshape", "x s", {"s": np.array([[2, 3]])}),
    "no elements": declared(0, 3),
    "no elements of rank 0": declared(),
    "billion elements": declared(1_000_000_000, kind=TensorProto.INT8, op="Identity"),
    "billion elements reduced": declared(1000, 1_000_000, op="ReduceMax"),
    "billion elements made": alone("ConstantOfShape", "s", {"s": ints(1_000_000_000)}),
    "billion elements softmaxed": declared(1, 250_000_000, op="Softmax"),
    "billion elements convolved": one("Conv", "x w", {"w": np.ones((1, 1, 3, 3), np.float32)}, (1, 1, 30_000, 30_000)),
    "rank 20": declared(*([1] * 20)),
    "rank 12 with elements": declared(*([2] * 12), op="Softmax"),
    "reduction of nothing": declared(0, 3, op="ReduceMax"),
    "mean of nothing": declared(0, 3, op="ReduceMean"),
    "argmax of nothing": declared(0, 3, op="ArgMax"),
    "softmax of nothing": declared(0, 3, op="Softmax"),
    "Conv of nothing": one("Conv", "x w", {"w": np.ones((1, 1, 3, 3), np.float32)}, (0, 1, 4, 4)),
    "Conv of no channels": one("Conv", "x w", {"w": np.ones((0, 1, 3, 3), np.float32)}, (1, 1, 4, 4)),
    "Conv of no extents": one("Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 0, 0)),
    "MatMul of no inner extent": one("MatMul", "x w", {"w": np.ones((0, 2), np.float32)}, (3, 0)),
    "Gather from nothing": one("Gather", "x i", {"i": ints(0)}, (0, 3)),
    "Concat of nothing": one("Concat", "x x", {}, (0, 3), axis=0),
    "LSTM of no steps": one(
        "LSTM",
        "x w r",
        {"w": np.ones((1, 8, 3), np.float32), "r": np.ones((1, 8, 2), np.float32)},
        (0, 1, 3),
        hidden_size=2,
    ),
    "TopK of nothing": one("TopK", "x k", {"k": ints(0)}),
    "Tile by zero": one("Tile", "x r", {"r": ints(0, 1)}),
    "Resize to nothing": one("Resize", "x - - s", {"s": ints(0, 3)}),
    "Slice of nothing": one("Slice", "x a b", {"a": ints(5), "b": ints(1)}),
    "Slice to the ends of int64": one("Slice", "x a b", {"a": ints(-(1 << 63)), "b": ints((1 << 63) - 1)}),
    "Slice of a huge step": one("Slice", "x a b c d", {"a": ints(0), "b": ints(9), "c": ints(0), "d": ints(1 << 62)}),
    "Slice of the smallest step": one(
        "Slice", "x a b c d", {"a": ints(9), "b": ints(-9), "c": ints(0), "d": ints(-(1 << 63))}
    ),
    "Conv of a huge stride": one(
        "Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), strides=[1 << 62, 1 << 62]
    ),
    "Conv of a huge dilation": one(
        "Conv", "x w", {"w": np.ones((1, 1, 1, 1), np.float32)}, (1, 1, 4, 4), dilations=[1 << 62, 1 << 62]
    ),
    "LRN of a huge size": one("LRN", "x", {}, (1, 3, 4, 4), size=1 << 40),
    "Trilu beyond everything": one("Trilu", "x k", {"k": np.array(1 << 62)}),
    "CumSum of a huge axis": one("CumSum", "x a", {"a": np.array(1 << 62)}),
    "AveragePool padded more than it covers": one(
        "AveragePool", "x", {}, (1, 1, 4, 4), kernel_shape=[2, 2], pads=[7, 7, 7, 7]
    ),
}
"""A clear error or a legal program."""
