"""Small networks whose groups are tiled in tests."""

from __future__ import annotations

import numpy as np

from passes.build import Builder
from plan.tiled import Network, lowered


def convolution() -> Network:
    """Padding on all sides, a stride, channels that are no multiple of a block."""
    build = Builder()
    x = build.input("x", "float32[1,3,7,5]")
    y = build.op("Conv", x, build.weights(20, 3, 3, 3), build.weights(20), pads=(1, 1, 1, 1), strides=(2, 1))
    return lowered(build.graph(build.op("Relu", y)))


def product() -> Network:
    build = Builder()
    x = build.input("x", "float32[2,6,10]")
    return lowered(build.graph(build.op("MatMul", x, build.weights(10, 20))))


def products() -> Network:
    build = Builder()
    a, b = build.input("a", "float32[3,5,8]"), build.input("b", "float32[3,8,6]")
    return lowered(build.graph(build.op("MatMul", a, b)))


def bytewise() -> Network:
    """The last part of the reduction is no whole block of 16."""
    build = Builder()
    x = build.input("x", "int8[5,40]")
    return lowered(build.graph(build.op("MatMul", x, build.weights(40, 7, dtype="int8"))))


def elementwise() -> Network:
    build = Builder()
    a, b = build.input("a", "float32[5,6,7]"), build.input("b", "float32[6,1]")
    return lowered(build.graph(build.op("Mul", a, b)))


def transposed() -> Network:
    build = Builder()
    return lowered(build.graph(build.op("Transpose", build.input("x", "int8[4,6,5]"), perm=(2, 0, 1))))


def normalised() -> Network:
    build = Builder()
    x = build.input("x", "float32[4,6,8]")
    return lowered(build.graph(build.op("LayerNormalization", x, build.weights(8), build.weights(8), axis=-1)))


def chain(kernel: int = 3, height: int = 11) -> Network:
    """Convolutions behind each other: pointwise, depthwise, pointwise."""
    build = Builder()
    x = build.input("x", f"float32[1,4,{height},5]")
    y = build.op("Relu", build.op("Conv", x, build.weights(8, 4, 1, 1)))
    pad = kernel // 2
    y = build.op("Conv", y, build.weights(8, 1, kernel, kernel), group=8, pads=(pad,) * 4)
    y = build.op("Conv", build.op("Relu", y), build.weights(6, 8, 1, 1))
    return lowered(build.graph(y))


def residual() -> Network:
    """A branch that is added to what it comes from."""
    build = Builder()
    x = build.input("x", "float32[1,4,8,6]")
    y = build.op("Relu", build.op("Conv", x, build.weights(4, 4, 3, 3), pads=(1, 1, 1, 1)))
    y = build.op("Conv", y, build.weights(4, 4, 3, 3), pads=(1, 1, 1, 1))
    return lowered(build.graph(build.op("Add", y, x)))


def skipping() -> Network:
    """Every second line of the first result is used, and the last step of the last needs no new one."""
    build = Builder()
    x = build.input("x", "float32[1,4,6,4]")
    y = build.op("Conv", x, build.weights(3, 4, 3, 3), pads=(1, 1, 1, 1))
    y = build.op("Conv", y, build.weights(3, 3, 1, 1), strides=(2, 2))
    return lowered(build.graph(build.op("Conv", y, build.weights(4, 3, 3, 3), pads=(1, 1, 1, 1))))


def resized() -> Network:
    build = Builder()
    x = build.input("x", "float32[1,2,5,4]")
    sizes = np.asarray([1, 2, 10, 12])
    return lowered(build.graph(build.op("Resize", x, "", "", sizes, mode="nearest")))


def pooled() -> Network:
    build = Builder()
    x = build.input("x", "float32[1,6,7,7]")
    return lowered(build.graph(build.op("MaxPool", x, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))))


SINGLE = (convolution, product, products, bytewise, elementwise, transposed, normalised, resized, pooled)
FUSED = (chain, residual, skipping)
