"""Small networks of every kind, as ONNX models with inputs: what tests compile, run and compare from end to end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.core.graph import Array

Network = tuple[onnx.ModelProto, list[Array]]
RNG_SEED = 11


class Model:
    """Adds nodes one after the other; arrays among inputs become initializers."""

    def __init__(self, opset: int = 21) -> None:
        self.rng = np.random.default_rng(RNG_SEED)
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._fed: list[Array] = []

    def input(self, name: str, array: Array) -> str:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self._inputs.append(helper.make_tensor_value_info(name, kind, list(array.shape)))
        self._fed.append(array)
        return name

    def noise(self, *shape: int, scale: float = 1.0) -> Array:
        return (self.rng.normal(size=shape) * scale).astype(np.float32)

    def small(self, *shape: int, low: int = -20, high: int = 20, dtype: str = "int8") -> Array:
        return self.rng.integers(low, high, shape).astype(dtype)

    def ops(self, op: str, *inputs: str | Array, outputs: int = 1, domain: str = "", **attributes: Any) -> list[str]:
        names = [self._constant(i) if isinstance(i, np.ndarray) else i for i in inputs]
        made = [f"t{len(self._nodes)}_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(op, names, made, domain=domain, **attributes))
        return made

    def op(self, op: str, *inputs: str | Array, domain: str = "", **attributes: Any) -> str:
        return self.ops(op, *inputs, domain=domain, **attributes)[0]

    def qdq(self, name: str, scale: float, zero: int, dtype: str = "int8") -> str:
        parameters = (np.array(scale, np.float32), np.array(zero, dtype))
        return self.op("DequantizeLinear", self.op("QuantizeLinear", name, *parameters), *parameters)

    def stored(self, *shape: int, scale: float = 0.02) -> str:
        """Constant int8 weights, dequantised."""
        return self.op("DequantizeLinear", self.small(*shape, low=-99, high=99), np.array(scale, np.float32))

    def network(self, *outputs: str, types: Sequence[int] = ()) -> Network:
        kinds = [*types, *[TensorProto.FLOAT] * (len(outputs) - len(types))]
        results = [helper.make_tensor_value_info(n, k, None) for n, k in zip(outputs, kinds, strict=True)]
        graph = helper.make_graph(self._nodes, "network", self._inputs, results, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=10), self._fed

    def _constant(self, array: Array) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name


def float_cnn() -> Network:
    m = Model()
    x = m.input("x", m.noise(1, 3, 12, 12))
    first = m.op("Relu", m.op("Conv", x, m.noise(8, 3, 3, 3), m.noise(8), pads=[1, 1, 1, 1], strides=[2, 2]))
    deep = m.op("Conv", first, m.noise(8, 1, 3, 3), group=8, pads=[1, 1, 1, 1])
    scale, mean = (np.abs(m.noise(8)) + 1, m.noise(8))
    normal = m.op("BatchNormalization", deep, scale, m.noise(8), mean, np.abs(m.noise(8)) + 1)
    total = m.op("Add", first, m.op("Clip", normal, np.array(0, np.float32), np.array(6, np.float32)))
    pooled = m.op("AveragePool", m.op("MaxPool", total, kernel_shape=[2, 2], strides=[2, 2]), kernel_shape=[3, 3])
    return m.network(m.op("Softmax", m.op("Gemm", m.op("Flatten", pooled), m.noise(5, 8), m.noise(5), transB=1)))


def qdq_cnn() -> Network:
    m = Model()
    x = m.qdq(m.input("x", m.noise(1, 3, 8, 8)), 0.03, 5)
    first = m.qdq(m.op("Relu", m.op("Conv", x, m.stored(8, 3, 3, 3), pads=[1, 1, 1, 1])), 0.11, -128)
    deep = m.qdq(m.op("Conv", first, m.stored(8, 1, 3, 3), pads=[1, 1, 1, 1], group=8), 0.25, 3)
    total = m.qdq(m.op("Add", deep, first), 0.23, -7)
    pooled = m.qdq(m.op("GlobalAveragePool", total), 0.09, 1)
    flat = m.qdq(m.op("Sigmoid", m.op("Flatten", pooled)), 1 / 256, -128)
    return m.network(m.qdq(m.op("Gemm", flat, m.stored(4, 8), transB=1), 0.05, 0))


def integer_cnn() -> Network:
    """The integer dialect: convolutions and products followed by shifts."""
    m = Model()
    x = m.input("x", m.small(1, 4, 8, 8, low=-128, high=128).astype(np.float32))

    def requantised(name: str, channels: int, divisor: int) -> str:
        mul = m.small(1, channels, 1, 1, low=1, high=99, dtype="float32")
        add = m.small(1, channels, 1, 1, low=-999, high=999, dtype="float32")
        return m.op(
            "RequantShift", name, mul, add, div=np.array([divisor], np.float32), n_levels_out=[256.0], signed=[1.0]
        )

    weights = m.small(8, 4, 3, 3).astype(np.float32)
    first = requantised(m.op("Conv", x, weights, pads=[1, 1, 1, 1]), 8, 1 << 12)
    deep = m.op("Conv", first, m.small(8, 1, 3, 3).astype(np.float32), group=8)
    return m.network(requantised(deep, 8, 1 << 10))


def attention() -> Network:
    """One step of attention whose cache of keys and values is still empty."""
    m = Model()
    x = m.input("x", m.noise(1, 4, 16))
    keys, values = m.input("keys", m.noise(1, 2, 0, 8)), m.input("values", m.noise(1, 2, 0, 8))

    def heads(name: str) -> str:
        split = m.op("Reshape", m.op("MatMul", name, m.noise(16, 16, scale=0.3)), np.array([1, 4, 2, 8], np.int64))
        return m.op("Transpose", split, perm=[0, 2, 1, 3])

    normal = m.op("LayerNormalization", x, m.noise(16), m.noise(16))
    query, key, value = heads(normal), heads(normal), heads(normal)
    all_keys, all_values = m.op("Concat", keys, key, axis=2), m.op("Concat", values, value, axis=2)
    scores = m.op("MatMul", query, m.op("Transpose", all_keys, perm=[0, 1, 3, 2]))
    weights = m.op("Softmax", m.op("Mul", scores, np.array(8**-0.5, np.float32)))
    mixed = m.op("Transpose", m.op("MatMul", weights, all_values), perm=[0, 2, 1, 3])
    flat = m.op("Reshape", mixed, np.array([1, 4, 16], np.int64))
    return m.network(m.op("Add", x, m.op("MatMul", flat, m.noise(16, 16, scale=0.3))), all_keys, all_values)


def training_step() -> Network:
    """A linear layer, its loss gradient, and the new weights."""
    m = Model()
    x, w = m.input("x", m.noise(6, 4)), m.input("w", m.noise(4, 3))
    wanted = m.input("wanted", np.eye(3, dtype=np.float32)[m.rng.integers(0, 3, 6)])
    error = m.op("Sub", m.op("Softmax", m.op("MatMul", x, w)), wanted)
    slope = m.op("MatMul", m.op("Transpose", x, perm=[1, 0]), error)
    loss = m.op("ReduceMean", m.op("Mul", error, error), keepdims=0)
    return m.network(m.op("Sub", w, m.op("Mul", slope, np.array(0.1, np.float32))), loss)


def conv_1d() -> Network:
    m = Model()
    x = m.input("x", m.noise(1, 4, 32))
    first = m.op("LeakyRelu", m.op("Conv", x, m.noise(8, 4, 5), m.noise(8), pads=[4, 0], dilations=[1]), alpha=0.2)
    second = m.op("Conv", first, m.noise(8, 8, 3), dilations=[4], pads=[8, 0])
    return m.network(m.op("MaxPool", m.op("Tanh", second), kernel_shape=[4], strides=[4]))


def halves(kind: int) -> Callable[[], Network]:
    def build() -> Network:
        m = Model()
        x = m.op("Cast", m.input("x", m.noise(4, 8)), to=kind)
        w = m.op("Cast", m.noise(8, 8), to=kind)
        hidden = m.op("Gelu" if kind == TensorProto.FLOAT16 else "Relu", m.op("MatMul", x, w))
        return m.network(m.op("Cast", m.op("Softmax", m.op("Add", hidden, x)), to=TensorProto.FLOAT))

    return build


def many_outputs() -> Network:
    m = Model()
    x = m.input("x", m.noise(4, 6))
    parts = m.ops("Split", x, np.array([1, 2, 3], np.int64), outputs=3, axis=1)
    values, indices = m.ops("TopK", x, np.array([2], np.int64), outputs=2, axis=1)
    extra = [m.op("ArgMax", x, axis=0), m.op("Exp", x), m.op("ReduceMax", x)]
    integers = [indices, extra[0]]
    return m.network(*integers, *parts, values, *extra[1:], types=[TensorProto.INT64] * 2)


def identity() -> Network:
    m = Model()
    x = m.input("x", m.noise(2, 3))
    return m.network(m.op("Identity", x), m.op("Reshape", x, np.array([3, 2], np.int64)), m.op("Dropout", x))


def recurrent() -> Network:
    m = Model()
    x = m.input("x", m.noise(5, 2, 3))
    y, last = m.ops(
        "LSTM",
        x,
        m.noise(2, 16, 3),
        m.noise(2, 16, 4),
        m.noise(2, 32),
        outputs=2,
        hidden_size=4,
        direction="bidirectional",
    )
    return m.network(m.op("Squeeze", m.op("ReduceMean", y, np.array([1], np.int64))), last)


def old_opset() -> Network:
    """Attributes that later became inputs."""
    m = Model(opset=9)
    x = m.input("x", m.noise(1, 2, 6, 6))
    padded = m.op("Pad", x, pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="reflect")
    grown = m.op("Upsample", padded, np.array([1, 1, 2, 2], np.float32), mode="nearest")
    part = m.op("Slice", m.op("Clip", grown, min=-1.0, max=1.0), axes=[2], starts=[1], ends=[9])
    return m.network(m.op("ReduceSum", m.op("Unsqueeze", part, axes=[0]), axes=[2], keepdims=0))


def images() -> Network:
    m = Model()
    x = m.input("x", m.noise(1, 4, 5, 5))
    bigger = m.op("Resize", x, "", "", np.array([1, 4, 8, 10], np.int64), mode="linear")
    up = m.op("ConvTranspose", x, m.noise(4, 2, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    return m.network(
        m.op("DepthToSpace", bigger, blocksize=2), m.op("InstanceNormalization", up, m.noise(2), m.noise(2))
    )


FLOAT_NETWORKS: dict[str, Callable[[], Network]] = {
    "float_cnn": float_cnn,
    "qdq_cnn": qdq_cnn,
    "attention": attention,
    "training_step": training_step,
    "conv_1d": conv_1d,
    "float16": halves(TensorProto.FLOAT16),
    "bfloat16": halves(TensorProto.BFLOAT16),
    "many_outputs": many_outputs,
    "identity": identity,
    "recurrent": recurrent,
    "old_opset": old_opset,
    "images": images,
}
"""Standard ONNX: another runtime can say what is right."""
