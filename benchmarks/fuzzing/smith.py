"""Networks by NNSmith, where it is installed, written as ONNX here: its own way there needs torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from random_types import by_onnxruntime, is_of_onnxruntime
from samples import Sample
from tilewright.core.graph import Array

TYPES = ("float32", "float64", "int32", "int64", "int8", "uint8", "bool")
LARGEST = 2.0**20
"""Values beyond it, and those that are no number, are decided by rounding or by the compiler when they are cast."""
MOST_ELEMENTS = 4096
OPSET = 20
TRIES = 64

SAME = {
    **{name: name for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Where", "MatMul")},
    **{name: name for name in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Abs", "Ceil", "Floor", "Round", "Sqrt")},
    **{name: name for name in ("Neg", "Sigmoid", "Equal", "Greater", "Less", "And", "Or", "Xor")},
    "ReLU": "Relu",
    "GELU": "Gelu",
}
"""Operators of NNSmith that are operators of ONNX without attributes."""
REDUCTIONS = ("ReduceSum", "ReduceMin", "ReduceMax", "ReduceMean", "ReduceProd", "Squeeze")
PADS = {"ConstPad": "constant", "ReplicatePad": "edge", "ReflectPad": "reflect"}
RESIZED = {"NearestInterp": "nearest", "LinearInterp": "linear", "BilinearInterp": "linear", "BicubicInterp": "cubic"}


class Writer:
    """One graph of NNSmith as an ONNX model, with numbers for weights and inputs."""

    def __init__(self, graph: Any, seed: int) -> None:
        self._graph, self._rng = graph, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.fed: dict[str, Array] = {}
        for step in graph.insts:
            self._step(step.iexpr.op, list(step.iexpr.args), step.retval())

    def model(self) -> onnx.ModelProto:
        outputs = [name for name in self._graph.leaf_var() if name not in self.fed and name not in self.weights]
        ports = [
            [helper.make_tensor_value_info(name, *self._type(name)) for name in names] for names in (self.fed, outputs)
        ]
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, "nnsmith", ports[0], ports[1], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 9
        return model

    def _type(self, name: str) -> tuple[int, list[int]]:
        tensor = self._graph.vars[name]
        return helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype.name)), list(tensor.shape)

    def _numbers(self, shape: list[int], dtype: str) -> Array:
        if dtype == "bool":
            return self._rng.integers(0, 2, shape).astype(bool)
        if dtype.startswith("float"):
            return self._rng.uniform(-2, 2, shape).astype(dtype)
        return self._rng.integers(0 if dtype == "uint8" else -8, 9, shape).astype(dtype)

    def _floats(self, *shape: int, least: float = -1.0, most: float = 1.0) -> str:
        return self._constant(self._rng.uniform(least, most, shape).astype(np.float32))

    def _constant(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def _integers(self, *numbers: int) -> str:
        return self._constant(np.asarray(numbers, np.int64))

    def _node(self, op: str, operands: list[str], result: str, **attributes: Any) -> None:
        self.nodes.append(helper.make_node(op, operands, [result], name=f"n{len(self.nodes)}_{op}", **attributes))

    def _step(self, op: Any, given: list[str], result: str) -> None:
        kind = type(op).__name__
        if kind in ("Input", "Constant"):
            into = self.fed if kind == "Input" else self.weights
            into[result] = self._numbers(list(op.abs_tensor.shape), op.abs_tensor.dtype.name)
        elif kind in SAME:
            self._node(SAME[kind], given, result)
        else:
            WAYS[kind](self, op, given, result)

    def dims(self, name: str) -> list[int]:
        return list(self._graph.vars[name].shape)

    def reduction(self, op: Any, given: list[str], result: str) -> None:
        kind, axis = type(op).__name__, op.extra_attrs["reduce_dim"]
        keep = {} if kind == "Squeeze" else {"keepdims": 0}
        self._node(kind, [*given, self._integers(axis)], result, **keep)

    def extreme(self, op: Any, given: list[str], result: str) -> None:
        self._node(type(op).__name__, given, result, axis=op.extra_attrs["reduce_dim"], keepdims=0)

    def cast(self, _op: Any, given: list[str], result: str) -> None:
        self._node("Cast", given, result, to=self._type(result)[0])

    def concat(self, op: Any, given: list[str], result: str) -> None:
        self._node("Concat", given, result, axis=op.extra_attrs["axis"])

    def transpose(self, op: Any, given: list[str], result: str) -> None:
        order = list(range(len(self.dims(result))))
        one, other = op.extra_attrs["dim0"], op.extra_attrs["dim1"]
        order[one], order[other] = order[other], order[one]
        self._node("Transpose", given, result, perm=order)

    def reshape(self, _op: Any, given: list[str], result: str) -> None:
        self._node("Reshape", [*given, self._integers(*self.dims(result))], result)

    def expand(self, _op: Any, given: list[str], result: str) -> None:
        self._node("Expand", [*given, self._integers(*self.dims(result))], result)

    def slice(self, op: Any, given: list[str], result: str) -> None:
        bounds = (op.start, op.end, op.extra_attrs["axis"], op.step)
        self._node("Slice", [*given, *(self._integers(number) for number in bounds)], result)

    def pad(self, op: Any, given: list[str], result: str) -> None:
        count, numbers = len(self.dims(result)), list(op.padding_list)
        ends = [[0] * count, [0] * count]
        for at in range(len(numbers) // 2):
            ends[0][-1 - at], ends[1][-1 - at] = numbers[2 * at : 2 * at + 2]
        self._node("Pad", [*given, self._integers(*ends[0], *ends[1])], result, mode=PADS[type(op).__name__])

    def pool(self, op: Any, given: list[str], result: str) -> None:
        kind = {"MaxPool2d": "MaxPool", "AvgPool2d": "AveragePool"}[type(op).__name__]
        sizes = {"kernel_shape": [op.kernel_h_size, op.kernel_w_size], "strides": [op.stride] * 2}
        counted = {"count_include_pad": 1} if kind == "AveragePool" else {}
        self._node(kind, given, result, pads=[op.padding] * 4, **sizes, **counted)

    def conv(self, op: Any, given: list[str], result: str) -> None:
        flat = type(op).__name__ == "Conv1d"
        kernel = [op.kernel_size] if flat else [op.kernel_h_size, op.kernel_w_size]
        steps = [op.dilation] if flat else [op.dilation_h, op.dilation_w]
        weights = self._floats(op.out_channels, op.in_channels, *kernel), self._floats(op.out_channels)
        sizes = {"kernel_shape": kernel, "strides": [op.stride] * len(kernel), "dilations": steps}
        self._node("Conv", [*given, *weights], result, pads=[op.padding] * 2 * len(kernel), **sizes)

    def batch_norm(self, op: Any, given: list[str], result: str) -> None:
        around = [self._floats(op.nfeat) for _ in range(3)]
        spread = self._floats(op.nfeat, least=0.5, most=2.0)
        self._node("BatchNormalization", [*given, *around, spread], result)

    def resize(self, op: Any, given: list[str], result: str) -> None:
        kind = type(op).__name__
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if "Near" in kind else {}
        self._node("Resize", [*given, "", "", self._integers(*self.dims(result))], result, mode=RESIZED[kind], **how)

    def triangle(self, op: Any, given: list[str], result: str) -> None:
        at = self._constant(np.asarray(op.diagonal, np.int64))
        self._node("Trilu", [*given, at], result, upper=int(type(op).__name__ == "Triu"))

    def softmax(self, op: Any, given: list[str], result: str) -> None:
        self._node("Softmax", given, result, axis=op.dim)

    def log2(self, _op: Any, given: list[str], result: str) -> None:
        factor = np.asarray(np.log2(np.e), self._graph.vars[result].dtype.name)
        self._node("Log", given, f"{result}_log")
        self._node("Mul", [f"{result}_log", self._constant(factor)], result)

    def leaky(self, _op: Any, given: list[str], result: str) -> None:
        self._node("LeakyRelu", given, result, alpha=0.01)

    def slope(self, _op: Any, given: list[str], result: str) -> None:
        self._node("PRelu", [*given, self._constant(np.asarray(0.25, np.float32))], result)

    def clip(self, _op: Any, given: list[str], result: str) -> None:
        dtype = self._graph.vars[result].dtype.name
        bounds = (self._constant(np.asarray(number, dtype)) for number in (0 if dtype == "uint8" else -1, 1))
        self._node("Clip", [*given, *bounds], result)


WAYS: dict[str, Callable[[Writer, Any, list[str], str], None]] = {
    **dict.fromkeys(REDUCTIONS, Writer.reduction),
    **dict.fromkeys(("ArgMin", "ArgMax"), Writer.extreme),
    **dict.fromkeys(("CastF32", "CastF64", "CastI32", "CastI64", "CastBool"), Writer.cast),
    **dict.fromkeys((f"Concat{count}" for count in range(1, 6)), Writer.concat),
    **dict.fromkeys((f"ExpandLast{count}" for count in range(1, 5)), Writer.expand),
    **dict.fromkeys(PADS, Writer.pad),
    **dict.fromkeys(("MaxPool2d", "AvgPool2d"), Writer.pool),
    **dict.fromkeys(("Conv1d", "NCHWConv2d"), Writer.conv),
    **dict.fromkeys(RESIZED, Writer.resize),
    **dict.fromkeys(("Tril", "Triu"), Writer.triangle),
    "Transpose": Writer.transpose,
    "Reshape": Writer.reshape,
    "Slice": Writer.slice,
    "BatchNorm2d": Writer.batch_norm,
    "Softmax": Writer.softmax,
    "Log2": Writer.log2,
    "LeakyReLU": Writer.leaky,
    "PReLU": Writer.slope,
    "Clip": Writer.clip,
}


def smith_sample(seed: int, index: int) -> Sample:
    """The same for the same numbers and release of NNSmith: the first network whose values are all of a usual size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generator, operators = import_module("nnsmith.graph_gen"), import_module("nnsmith.abstract.op")
    offered = (*operators.FULL_OPERATOR_SETS["core"], operators.MatMul)
    known = sorted((op for op in offered if op.__name__ in SAME or op.__name__ in WAYS), key=lambda op: op.__name__)
    rng = Random(seed * (1 << 32) + index)
    for _ in range(TRIES):
        own = rng.randrange(1 << 31)
        # Time ends nothing: networks would depend on how busy a computer is.
        made = generator.model_gen(
            *(known, "symbolic-cinit", 2 + index % 12, own, 10**7),
            max_elem_per_tensor=MOST_ELEMENTS,
            dtype_choices=TYPES,
        ).make_concrete()
        written = Writer(made, own)
        model = written.model()
        if model.graph.output and _usual(model, written.fed):
            return Sample(f"s{seed}_{index}_nnsmith", "graph", model, written.fed)
    raise RuntimeError(f"none of {TRIES} networks of NNSmith for {seed}, {index} has usual values")


def _usual(model: onnx.ModelProto, fed: dict[str, Array]) -> bool:
    """Whether onnxruntime takes the model, and all values on the way are numbers of a usual size."""
    every = onnx.ModelProto()
    every.CopyFrom(onnx.shape_inference.infer_shapes(model))
    every.graph.output.extend(value for value in every.graph.value_info if value.type.tensor_type.elem_type)
    try:
        values = by_onnxruntime(every, fed)
    except Exception as refusal:
        if not is_of_onnxruntime(refusal):
            raise
        return False
    return all(bool(np.all(np.abs(value.astype(np.float64)) < LARGEST)) for value in values)
