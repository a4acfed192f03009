"""Builds small QDQ networks: real numbers that are quantised and dequantised around every operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from passes.build import Builder
from tilewright.core.graph import Array, Attr, Graph

INPUT = ("uint8", 0.05, 119)
RESULT = ("int8", 0.0717, -11)


@dataclass(frozen=True)
class Case:
    """A network, and the operators its integer form consists of."""

    build: Callable[[], Graph]
    ops: tuple[str, ...]


class Qdq(Builder):
    """A builder that knows how quantised networks are written down."""

    def real(self, *shape: int, dtype: str = INPUT[0], scale: float = INPUT[1], zero: int = INPUT[2]) -> str:
        """An input of the network, quantised and dequantised."""
        name = self.input(f"x{len(shape)}_{dtype}_{zero}", f"float32[{','.join(map(str, shape))}]")
        return self.around(name, dtype, scale, zero)

    def around(self, name: str, dtype: str, scale: float, zero: int) -> str:
        return self.dequantised(self.quantised(name, dtype, scale, zero), scale, zero, dtype)

    def quantised(self, name: str, dtype: str = RESULT[0], scale: float = RESULT[1], zero: int = RESULT[2]) -> str:
        return self.op("QuantizeLinear", name, float(scale), np.array(zero, dtype))

    def dequantised(self, name: str, scale: float, zero: int, dtype: str) -> str:
        return self.op("DequantizeLinear", name, float(scale), np.array(zero, dtype))

    def stored(
        self, *shape: int, dtype: str = "int8", zero: int = 0, axis: int | None = None, scale: float = 0.02
    ) -> str:
        """Constant weights, with one scale per channel of an axis where one is named."""
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = self.weights(*shape) * 40 + zero
        array = np.clip(np.rint(values), max(low, -(2**20)), min(high, 2**20)).astype(dtype)
        if axis is None:
            return self.op("DequantizeLinear", array, float(scale), np.array(zero, dtype))
        scales = np.linspace(scale / 4, scale, shape[axis]).astype(np.float32)
        return self.op("DequantizeLinear", array, scales, np.full(shape[axis], zero, dtype), axis=axis)


def one(op: str, *shapes: tuple[int, ...], **attributes: Attr) -> Callable[[], Graph]:
    """An operator on quantised inputs."""

    def build() -> Graph:
        b = Qdq()
        schemes = (INPUT, ("int8", 0.04, 3), ("uint8", 0.03, 7))
        reals = [b.real(*s, dtype=d, scale=c, zero=z) for s, (d, c, z) in zip(shapes, schemes, strict=False)]
        return b.graph(b.quantised(b.op(op, *reals, name="", **attributes)))

    return build


def conv(
    *,
    dtype: str = "int8",
    zero: int = 0,
    axis: int | None = 0,
    bias: bool = True,
    input_dtype: str = "uint8",
    relu: bool = False,
    result: tuple[str, float, int] = ("int8", 0.3137, -11),
    **attributes: Attr,
) -> Callable[[], Graph]:
    def build() -> Graph:
        b = Qdq()
        x = b.real(1, 4, 6, 6, dtype=input_dtype, zero=119 if input_dtype == "uint8" else -5)
        group = attributes.get("group", 1)
        w = b.stored(6 if group == 1 else 4, 4 if group == 1 else 1, 3, 3, dtype=dtype, zero=zero, axis=axis)
        extra: list[str] = []
        if bias:
            # As quantisers write it: the scale of a bias is that of the input times that of the weights.
            scales = (np.linspace(0.005, 0.02, 6 if group == 1 else 4) * 0.05).astype(np.float32)
            values = (np.arange(scales.size) * 300 - 700).astype(np.int32)
            extra = [b.op("DequantizeLinear", values, scales, np.zeros(scales.size, np.int32), axis=0)]
        y = b.op("Conv", x, w, *extra, name="", pads=(1, 1, 1, 1), **attributes)
        return b.graph(b.quantised(b.op("Relu", y) if relu else y, *result))

    return build


def gemm(*, turned: bool, bias: Array | None = None, alpha: float = 1.0, beta: float = 1.0) -> Callable[[], Graph]:
    def build() -> Graph:
        b = Qdq()
        w = b.stored(*((5, 8) if turned else (8, 5)), axis=0 if turned else 1)
        extra = [bias] if bias is not None else []
        y = b.op("Gemm", b.real(5, 8), w, *extra, transB=int(turned), alpha=alpha, beta=beta)
        return b.graph(b.quantised(y, scale=0.2137))

    return build


def product(*, dtype: str = "int8", zero: int = 0, batch: tuple[int, ...] = ()) -> Callable[[], Graph]:
    """Rows times constant weights."""

    def build() -> Graph:
        b = Qdq()
        x = b.real(*batch, 4, 8)
        return b.graph(b.quantised(b.op("MatMul", x, b.stored(8, 5, dtype=dtype, zero=zero)), scale=0.3137))

    return build


def chain() -> Graph:
    """Element-wise operators in a row are one table."""
    b = Qdq()
    x = b.real(2, 8)
    return b.graph(b.quantised(b.op("Mul", b.op("Sigmoid", x), x)))


def hard_swish() -> Graph:
    b = Qdq()
    x = b.real(2, 8)
    return b.graph(b.quantised(b.op("Div", b.op("Mul", x, b.op("Clip", b.op("Add", x, 3.0), 0.0, 6.0)), 6.0)))


def clip_behind_sum() -> Graph:
    b = Qdq()
    total = b.op("Add", b.real(2, 8), b.real(2, 8, dtype="int8", scale=0.04, zero=3))
    return b.graph(b.quantised(b.op("Clip", total, -1.0, 2.5)))


def moves() -> Graph:
    """Moves and selections work on the integers."""
    b = Qdq()
    x = b.real(1, 4, 6, 6)
    turned = b.op("Transpose", b.op("MaxPool", x, kernel_shape=(2, 2), pads=(1, 1, 1, 1)), perm=(0, 2, 3, 1))
    part = b.op("Slice", b.op("Reshape", turned, [1, -1, 4]), [2], [9], [1])
    return b.graph(b.quantised(part, *INPUT), b.quantised(b.op("ReduceMax", part, [1]), *INPUT))


def padded(*fill: float, zero: int = 119) -> Callable[[], Graph]:
    def build() -> Graph:
        b = Qdq()
        x = b.real(2, 4, zero=zero)
        return b.graph(b.quantised(b.op("Pad", x, [0, 1, 0, 2], *fill), "uint8", 0.05, zero))

    return build


def layer_norm() -> Graph:
    b = Qdq()
    scale, bias = b.weights(8), b.weights(8)
    return b.graph(b.quantised(b.op("LayerNormalization", b.real(3, 8), scale, bias)))


def concat() -> Graph:
    b = Qdq()
    same = b.real(2, 4, dtype=RESULT[0], scale=RESULT[1], zero=RESULT[2])
    return b.graph(b.quantised(b.op("Concat", same, b.real(2, 6), axis=1)))


def turned_weights() -> Graph:
    """Weights with a scale per row that are transposed before the product, as some exporters write linear layers."""
    b = Qdq()
    w = b.op("Transpose", b.stored(5, 8, axis=0), perm=(1, 0))
    return b.graph(b.quantised(b.op("MatMul", b.real(4, 8), w), scale=0.3137))


def requantised() -> Graph:
    b = Qdq()
    return b.graph(b.quantised(b.real(2, 8)))


CASES: dict[str, Case] = {
    "conv": Case(conv(), ("Conv", "RequantShift")),
    "conv_relu": Case(conv(relu=True), ("Conv", "RequantShift", "Clip")),
    "conv_saturating_relu": Case(conv(relu=True, result=("uint8", 0.17, 0)), ("Conv", "RequantShift")),
    "conv_int8_input": Case(conv(input_dtype="int8", axis=None, bias=False), ("Conv", "RequantShift")),
    "conv_depthwise": Case(conv(group=4), ("Conv", "RequantShift")),
    "conv_uint8_weights": Case(conv(dtype="uint8", zero=128), ("Conv", "RequantShift")),
    "conv_asymmetric_weights": Case(conv(dtype="uint8", zero=96, axis=None, bias=False), ("Conv", "RequantShift")),
    "gemm": Case(gemm(turned=True, bias=np.linspace(-1, 1, 5, dtype=np.float32)), ("MatMul", "Add", "RequantShift")),
    "gemm_scaled": Case(
        gemm(turned=False, bias=np.ones((1, 5), np.float32), alpha=0.5, beta=2.0), ("MatMul", "Add", "RequantShift")
    ),
    "matmul_constant": Case(product(), ("MatMul", "Add", "RequantShift")),
    "matmul_asymmetric": Case(product(dtype="uint8", zero=100, batch=(2,)), ("MatMul", "Add", "RequantShift")),
    "matmul_turned": Case(turned_weights, ("MatMul", "Add", "RequantShift")),
    "matmul_dynamic": Case(one("MatMul", (2, 4, 8), (2, 8, 5)), ("MatMul", "RequantShift")),
    "add": Case(one("Add", (2, 3, 4), (3, 4)), ("Mul", "Mul", "Add", "RequantShift")),
    "sub": Case(one("Sub", (2, 4), (2, 4)), ("Mul", "Mul", "Add", "RequantShift")),
    "mul": Case(one("Mul", (2, 3, 4), (1, 4)), ("Sub", "Sub", "Mul", "RequantShift")),
    "average_pool": Case(
        one("AveragePool", (1, 3, 6, 6), kernel_shape=(2, 3), strides=(2, 1)), ("AveragePool", "RequantShift")
    ),
    "global_average_pool": Case(one("GlobalAveragePool", (1, 3, 5, 5)), ("ReduceSum", "RequantShift")),
    "concat": Case(concat, ("Lookup", "Concat")),
    "relu": Case(one("Relu", (2, 8)), ("Lookup",)),
    "table": Case(one("Tanh", (2, 8)), ("Lookup",)),
    "chain": Case(chain, ("Lookup",)),
    "hard_swish": Case(hard_swish, ("Lookup",)),
    "clip": Case(clip_behind_sum, ("Mul", "Mul", "Add", "RequantShift", "Clip")),
    "softmax": Case(one("Softmax", (3, 8), axis=-1), ("Softmax", "QuantizeLinear")),
    "layer_norm": Case(layer_norm, ("LayerNormalization", "QuantizeLinear")),
    "moves": Case(moves, ("MaxPool", "Transpose", "Reshape", "Slice", "ReduceMax")),
    "pad": Case(padded(), ("Pad",)),
    "pad_with_zero": Case(padded(0.0), ("Pad",)),
    "pad_with_a_number": Case(padded(0.5), ("Pad",)),
    "requantised": Case(requantised, ("Lookup",)),
}
"""By name: what the integer form of each has to consist of, besides quantising the inputs."""
