"""Networks of operators on quantised tensors, and dynamically quantised ones, against onnxruntime."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.api import Ran, run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array
from tilewright.core.program import Invoke

CONTRIBUTED = "com.microsoft"
_runtime: Any = importlib.import_module("onnxruntime")

Quantised = tuple[str, str, str]
"""Names of integers, scale and zero point."""


class Network:
    """Adds nodes one after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def op(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], domain=domain, **attributes))
        return name

    def scheme(self, dtype: str, scale: float, zero: int) -> tuple[str, str]:
        return self.constant(np.asarray(scale, np.float32)), self.constant(np.asarray(zero, dtype))

    def weights(self, dtype: str, *shape: int, zero: int = 0, channels: int = 0) -> Quantised:
        """Integers over their whole range, with one scale or with one per channel."""
        limits = np.iinfo(dtype)
        values = self.rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
        scales = np.asarray(self.rng.uniform(0.004, 0.01, channels or None), np.float32)
        zeros = np.full(scales.shape, zero, dtype)
        return self.constant(values), self.constant(scales), self.constant(zeros)

    def model(self, shape: Sequence[int], outputs: Sequence[str]) -> onnx.ModelProto:
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "quantised", given, made, self.constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIBUTED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def by_onnxruntime(path: Path, x: Array) -> list[Array]:
    options = _runtime.SessionOptions()
    options.graph_optimization_level = _runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = _runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})


def by_onnx(path: Path, x: Array) -> list[Array]:
    """By the onnx package: onnxruntime limits sums of int8 times uint8 to 16 bits on x86 without VNNI."""
    return cast("Any", ReferenceEvaluator(str(path))).run(None, {"x": x})


def ran(
    model: onnx.ModelProto, x: Array, folder: Path, oracle: Callable[[Path, Array], list[Array]] = by_onnxruntime
) -> Ran:
    path = folder / "network.onnx"
    path.write_bytes(model.SerializeToString())
    return run_model(path, inputs=[x], expected=oracle(path, x), flags=(*STRICT, *SANITIZE, "-O1"))


def slow_products(result: Ran) -> list[str]:
    """Convolutions and matrix products that no kernel computes."""
    names = [call.function for call in result.compiled.program.calls if isinstance(call, Invoke)]
    return [name for name in names if "_nest" in name and name.startswith(("conv", "matmul", "qlinear", "qgemm"))]


def operators_on_quantised(activation: str, weight: str) -> onnx.ModelProto:
    """Scales are no simple fractions of each other: ties are rounded in more ways than one, and then add up."""
    n = Network(7)
    zero = 131 if activation == "uint8" else -9
    asymmetric = {"uint8": 90, "int8": 0}[weight]
    x = n.scheme(activation, 0.031171, zero)
    start = n.op("QuantizeLinear", "x", *x)
    first = n.scheme(activation, 0.161723, zero - 7)
    w = n.weights(weight, 6, 3, 3, 3, zero=asymmetric, channels=6 if weight == "int8" else 0)
    bias = n.constant(n.rng.integers(-900, 900, 6).astype(np.int32))
    a = n.op("QLinearConv", start, *x, *w, *first, bias, pads=[1, 1, 1, 1])
    second = n.scheme(activation, 0.112939, zero + 5)
    w = n.weights(weight, 6, 1, 3, 3, zero=asymmetric)
    b = n.op("QLinearConv", a, *first, *w, *second, pads=[1, 0, 1, 2], group=6)
    third = n.scheme(activation, 0.201761, zero)
    c = n.op("QLinearAdd", a, *first, b, *second, *third, domain=CONTRIBUTED)
    c = n.op("QLinearLeakyRelu", c, *third, *third, domain=CONTRIBUTED, alpha=0.1)
    fourth = n.scheme(activation, 0.010337, 0)
    d = n.op("QLinearSigmoid", c, *third, *fourth, domain=CONTRIBUTED)
    e = n.op("QLinearMul", c, *third, d, *fourth, *third, domain=CONTRIBUTED)
    e = n.op("QLinearConcat", *second, e, *third, b, *second, domain=CONTRIBUTED, axis=1)
    e = n.op("QLinearAveragePool", e, *second, *second, domain=CONTRIBUTED, kernel_shape=[2, 2], strides=[2, 2])
    flat = n.op("Reshape", e, n.constant(np.asarray([12, 16], np.int64)))
    w = n.weights(weight, 16, 16, zero=asymmetric)
    f = n.op(
        "QGemm", flat, *second, *w, n.constant(np.arange(16, dtype=np.int32)), *third, domain=CONTRIBUTED, transB=1
    )
    turned = n.op("Transpose", flat, perm=[1, 0])
    g = n.op("QLinearMatMul", f, *third, turned, *second, *(wide := n.scheme(activation, 0.917353, zero)))
    h = n.op("QLinearSoftmax", g, *wide, *fourth, domain=CONTRIBUTED, axis=-1, opset=17)
    pooled = n.op("QLinearGlobalAveragePool", e, *second, *first, domain=CONTRIBUTED)
    ends = ((f, third), (g, wide), (h, fourth), (pooled, first))
    return n.model((1, 3, 8, 8), [n.op("DequantizeLinear", name, *scheme) for name, scheme in ends])


@pytest.mark.parametrize(("activation", "weight"), [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
def test_operators_on_quantised_tensors_become_integer_layers(activation: str, weight: str, tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(size=(1, 3, 8, 8)).astype(np.float32)
    result = ran(operators_on_quantised(activation, weight), x, tmp_path)
    assert [c for c in result.comparisons if c.wrong] == []
    assert slow_products(result) == []


@pytest.mark.parametrize("weight", ["uint8", "int8"])
def test_dynamically_quantised_layers_use_integer_kernels(weight: str, tmp_path: Path) -> None:
    n = Network(5)
    zeros = {"uint8": 100, "int8": 3}[weight]
    n.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "q_scale", "q_zero"]))
    w, scale, zero = n.weights(weight, 6, 3, 3, 3, zero=zeros)
    sums = n.op("ConvInteger", "q", w, "q_zero", zero, pads=[1, 0, 2, 1], strides=[2, 1])
    real = n.op("Mul", n.op("Cast", sums, to=TensorProto.FLOAT), n.op("Mul", "q_scale", scale))
    rows = n.op("Reshape", real, n.constant(np.asarray([6, -1], np.int64)))
    n.nodes.append(helper.make_node("DynamicQuantizeLinear", [rows], ["r", "r_scale", "r_zero"]))
    w, scale, zero = n.weights(weight, 35, 9, zero=zeros, channels=9)
    sums = n.op("MatMulInteger", "r", w, "r_zero", zero)
    n.op("Mul", n.op("Cast", sums, to=TensorProto.FLOAT), n.op("Mul", "r_scale", scale))
    x = np.random.default_rng(3).normal(size=(1, 3, 8, 8)).astype(np.float32)
    result = ran(n.model((1, 3, 8, 8), [real, f"t{len(n.nodes) - 1}"]), x, tmp_path, by_onnx)
    assert [c for c in result.comparisons if c.wrong] == []
    assert slow_products(result) == []
