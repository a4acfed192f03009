"""Layers of random sizes, of the kinds that networks have: predictions are checked with shapes that nobody chose."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.siracusa import Chain
from tilewright.core.graph import Array, Graph

Random = np.random.Generator


class Layer(Struct, frozen=True):
    """A graph of one layer, with its inputs."""

    name: str
    graph: Graph
    inputs: tuple[Array, ...]


def size(random: Random, low: int, high: int) -> int:
    """A number, small ones as likely as large ones."""
    return round(low * (high / low) ** random.random())


def chain(random: Random, shape: tuple[int, ...], dtype: str) -> Chain:
    return Chain(shape, dtype, int(random.integers(1 << 30)))


def _bias(made: Chain, features: int, dtype: str) -> Array:
    return made.noise((features,), "float32" if dtype == "float32" else "int32")


def convolution(
    random: Random,
    kernel: tuple[int, int],
    *,
    dtype: str = "int8",
    most: int = 96,
    depthwise: bool = False,
    sums: bool = False,
) -> Chain:
    """A convolution of an image, channels last on both sides; `sums` are left as they are."""
    channels = size(random, 2, most)
    features = channels if depthwise else size(random, 2, most)
    height, width = (max(size(random, 3, 40), k) for k in kernel)
    made = chain(random, (1, height, width, channels), dtype).add("Transpose", perm=(0, 3, 1, 2))
    group = channels if depthwise else 1
    weights = made.noise((features, channels // group, *kernel), "float32" if dtype == "float32" else "int8")
    bias = _bias(made, features, dtype)
    around = tuple(k // 2 for k in kernel) * 2 if random.random() < 0.5 else (0, 0, 0, 0)
    stride = 2 if random.random() < 0.3 else 1
    made.add("Conv", (weights, bias), pads=around, group=group, kernel_shape=kernel, strides=(stride, stride))
    if dtype != "float32" and not sums:
        made.requantised(features)
    return made.add("Transpose", perm=(0, 2, 3, 1))


def product(random: Random, rows: int, dtype: str = "int8") -> Chain:
    depth, columns = size(random, 8, 512), size(random, 4, 512)
    made = chain(random, (rows, depth), dtype)
    made.add("MatMul", (made.noise((depth, columns), dtype),))
    return made if dtype == "float32" else made.requantised(columns)


def activations(random: Random, dtype: str) -> Chain:
    """A product of two matrices that are both computed."""
    batch, (rows, depth, columns) = size(random, 1, 8), (size(random, 4, 96) for _ in range(3))
    made = chain(random, (batch, rows, depth), dtype)
    made.add("MatMul", (made.noise((batch, depth, columns), dtype),))
    return made.requantised(1) if dtype == "int8" and random.random() < 0.7 else made


def transposed(random: Random) -> Chain:
    rank = int(random.integers(2, 5))
    # Powers of two meet in few banks.
    shape = tuple(
        size(random, 4, 30) if random.random() < 0.5 else 1 << int(random.integers(2, 6)) for _ in range(rank)
    )
    perm = tuple(int(axis) for axis in random.permutation(rank))
    return chain(random, shape, "int8" if random.random() < 0.6 else "float32").add("Transpose", perm=perm)


def normalised(random: Random) -> Chain:
    columns = size(random, 8, 300)
    made = chain(random, (size(random, 2, 100), columns), "float32")
    scale, bias = made.noise((columns,), "float32"), made.noise((columns,), "float32")
    if random.random() < 0.5:
        return made.add("LayerNormalization", (scale, bias), axis=-1)
    return made.add("RMSNormalization", (scale,), axis=-1)


def integer_norm(random: Random) -> Chain:
    columns = 4 * size(random, 4, 64)
    made = chain(random, (1, size(random, 1, 64), columns), "int8")
    return made.add("iRMSNorm", (made.random.integers(20, 120, (columns,)).astype(np.int32),), D=64, n_levels=256)


def softmax(random: Random, op: str) -> Chain:
    shape = (1, size(random, 1, 8), size(random, 2, 64), size(random, 4, 200))
    if op == "Softmax":
        return chain(random, shape, "float32").add(op, axis=-1)
    return chain(random, shape, "int8").add(op, coeffA=27, coeffB=3, coeffC=10, log2=20, n_levels=256)


def pooled(random: Random) -> Chain:
    dtype = "int8" if random.random() < 0.5 else "float32"
    shape = (1, size(random, 6, 40), size(random, 6, 40), size(random, 4, 64))
    made = chain(random, shape, dtype).add("Transpose", perm=(0, 3, 1, 2))
    stride = int(random.integers(1, 3))
    made.add("MaxPool", kernel_shape=(2, 2), strides=(stride, stride))
    return made.add("Transpose", perm=(0, 2, 3, 1))


def elements(random: Random) -> Chain:
    shape = (size(random, 16, 200), size(random, 16, 200))
    ops = ("Relu", "Sigmoid", "Exp", "HardSwish", "Gelu", "Add", "Mul", "Sub")
    op = ops[int(random.integers(len(ops)))]
    made = chain(random, shape, "float32")
    return made.add(op, (made.noise(shape, "float32"),) if op in ("Add", "Mul", "Sub") else ())


def reduced(random: Random) -> Chain:
    shape = tuple(size(random, 6, 30) for _ in range(3))
    axes = np.array([int(random.integers(3))], np.int64)
    op = "ReduceMean" if random.random() < 0.5 else "ReduceSum"
    return chain(random, shape, "float32").add(op, (axes,), keepdims=1)


def network(random: Random, dtype: str) -> Chain:
    """Convolutions one behind another as networks for small machines have them, pooled, with a product at the end."""
    channels, side = 8 * size(random, 1, 4), 8 * size(random, 1, 4)
    made = chain(random, (1, channels, side, side), dtype)
    for _ in range(int(random.integers(3, 8))):
        kernel, depthwise = (1, 3)[int(random.random() < 0.6)], random.random() < 0.4
        stride = 2 if side > 4 and random.random() < 0.3 else 1
        group, features = (channels, channels) if depthwise else (1, 8 * size(random, 1, 12))
        weights, bias = made.noise((features, channels // group, kernel, kernel), dtype), _bias(made, features, dtype)
        given = {"pads": (kernel // 2,) * 4, "group": group, "kernel_shape": (kernel, kernel)}
        made.add("Conv", (weights, bias), strides=(stride, stride), **given)
        made = made.add("Relu") if dtype == "float32" else made.requantised(features)
        channels, side = features, -(-side // stride)
        if side % 2 == 0 and side > 4 and random.random() < 0.3:
            made.add("MaxPool", kernel_shape=(2, 2), strides=(2, 2))
            side //= 2
    made.add("Flatten", axis=1)
    classes = size(random, 2, 64)
    made.add("MatMul", (made.noise((channels * side * side, classes), dtype),))
    return made if dtype == "float32" else made.requantised(classes)


KINDS: Mapping[str, Callable[[Random], Chain]] = {
    "conv3x3": lambda r: convolution(r, (3, 3)),
    "conv_any": lambda r: convolution(r, (int(r.integers(1, 8)), int(r.integers(1, 8))), most=48),
    "pointwise": lambda r: convolution(r, (1, 1)),
    "depthwise3x3": lambda r: convolution(r, (3, 3), depthwise=True),
    "depthwise_any": lambda r: convolution(r, (int(r.integers(1, 7)), int(r.integers(1, 7))), depthwise=True),
    "conv_sums": lambda r: convolution(r, (3, 3) if r.random() < 0.5 else (1, 1), sums=True, most=48),
    "depthwise_sums": lambda r: convolution(r, (3, 3), depthwise=True, sums=True),
    "conv_float": lambda r: convolution(r, (3, 3), dtype="float32", most=32),
    "pointwise_float": lambda r: convolution(r, (1, 1), dtype="float32", most=64),
    "depthwise_float": lambda r: convolution(r, (3, 3), dtype="float32", depthwise=True, most=48),
    "matrix_vector": lambda r: product(r, 1),
    "matrix": lambda r: product(r, size(r, 2, 128)),
    "matrix_float": lambda r: product(r, size(r, 1, 64), "float32"),
    "activations": lambda r: activations(r, "int8"),
    "activations_float": lambda r: activations(r, "float32"),
    "transpose": transposed,
    "norm_float": normalised,
    "integer_norm": integer_norm,
    "softmax_float": lambda r: softmax(r, "Softmax"),
    "integer_softmax": lambda r: softmax(r, "iSoftmax"),
    "maxpool": pooled,
    "elements": elements,
    "reduce": reduced,
    "network": lambda r: network(r, "int8"),
    "network_float": lambda r: network(r, "float32"),
}
COMPUTED = frozenset({"activations", "activations_float", "elements"})
"""Kinds whose second operand is an input of the network, too."""


def layer(kind: str, number: int) -> Layer:
    """One of the layers of a kind."""
    made = KINDS[kind](np.random.default_rng([zlib.crc32(kind.encode()), number]))
    graph, inputs = made.graph(), [made.x]
    if kind in COMPUTED:
        second = [name for name in graph.nodes[0].inputs[1:] if name in graph.constants]
        inputs += [graph.constants[name] for name in second]
        left = {name: array for name, array in graph.constants.items() if name not in second}
        graph = replace(graph, inputs=(*graph.inputs, *second), constants=left)
    return Layer(f"{kind}/{number}", graph, tuple(inputs))
