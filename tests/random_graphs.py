"""Seeded random networks: valid ONNX models over many operators, with much juggling of shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.core.graph import Array

OPSET = 21
LARGEST = 4000
"""Elements of the largest tensor."""

Shape = tuple[int, ...]


class Network:
    """A network that grows by one operator after the other; all tensors it remembers are float32."""

    def __init__(self, seed: int, steps: int = 12) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.shapes: dict[str, Shape] = {}
        self.fed: dict[str, Array] = {}
        for _ in range(self.below(2) + 1):
            name = f"x{len(self.fed)}"
            self.shapes[name] = tuple(self.below(6) + 1 for _ in range(self.below(4) + 1))
            self.fed[name] = self.noise(self.shapes[name])
        while len(self.nodes) < steps:
            grow = MOVES[self.below(len(MOVES))]
            grow(self)

    # Choices

    def below(self, count: int) -> int:
        return int(self.rng.integers(count))

    def flip(self) -> bool:
        return bool(self.below(2))

    def pick(self, *choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def noise(self, shape: Sequence[int]) -> Array:
        return self.rng.normal(size=tuple(shape)).astype(np.float32)

    def tensor(self, low: int = 0, high: int = 6) -> str | None:
        """A tensor of a rank in a range, rather one that was made lately."""
        names = [name for name, shape in self.shapes.items() if low <= len(shape) <= high]
        if not names:
            return None
        return names[-1 - min(self.below(len(names)), self.below(len(names)))]

    # Nodes

    def constant(self, value: Array | float) -> str:
        name = f"c{len(self.weights)}"
        array = value if isinstance(value, np.ndarray) else np.asarray(value, np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def integers(self, values: Sequence[int]) -> str:
        return self.constant(np.asarray(values, np.int64))

    def node(self, op: str, inputs: Sequence[str], shape: Shape | None = None, **attributes: Any) -> str:
        """Adds a node; with a shape, its output is remembered."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        if shape is not None:
            self.shapes[name] = shape
        return name

    def model(self) -> onnx.ModelProto:
        """The network; tensors that nothing reads are outputs, and now and then one that something does."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for name in self.shapes if name not in self.fed]
        results = [name for name in made if name not in read or self.below(8) == 0]
        outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in results]
        inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, self.shapes[name]) for name in self.fed]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


Move = Callable[[Network], None]

SMOOTH = (
    "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSwish", "HardSigmoid", "Softplus", "Abs", "Neg", "Erf",
    "Softsign", "Mish", "Selu", "Celu", "Gelu", "Identity", "ThresholdedRelu", "Sin", "Cos",
)  # fmt: skip


def unary(net: Network) -> None:
    x = net.tensor()
    if x is not None:
        net.node(net.pick(*SMOOTH), [x], net.shapes[x])


def clip(net: Network) -> None:
    x = net.tensor()
    if x is not None:
        low = "" if net.flip() else net.constant(-0.5)
        net.node("Clip", [x, low, net.constant(0.75)], net.shapes[x])


def operand(net: Network, shape: Shape) -> tuple[str, Shape]:
    """Another tensor, or a constant, that broadcasts with a shape."""
    for _ in range(4):
        name = net.tensor()
        if name is not None and (result := common(shape, net.shapes[name])) is not None and prod(result) <= LARGEST:
            return name, result
    own = tuple(extent if net.flip() else 1 for extent in shape)[net.below(len(shape) + 1) :]
    return net.constant(net.noise(own)), shape


def common(left: Shape, right: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        return None


def binary(net: Network) -> None:
    x = net.tensor()
    if x is not None:
        y, shape = operand(net, net.shapes[x])
        pair = [x, y] if net.flip() else [y, x]
        net.node(net.pick("Add", "Sub", "Mul", "Max", "Min", "Add", "Mul"), pair, shape)


def choose(net: Network) -> None:
    x = net.tensor()
    if x is not None:
        y, shape = operand(net, net.shapes[x])
        mask = net.node(net.pick("Greater", "LessOrEqual"), [x, y])
        net.node("Where", [mask, y, x], shape)


def quotient(net: Network) -> None:
    x = net.tensor()
    if x is not None:
        y, shape = operand(net, net.shapes[x])
        safe = net.node("Add", [net.node("Abs", [y]), net.constant(0.5)])
        net.node("Div", [x, safe], shape)


def factors(net: Network, size: int) -> Shape:
    """A random shape of a size."""
    shape: list[int] = []
    while size > 1 and len(shape) < 4:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        shape.append(net.pick(*divisors))
        size //= shape[-1]
    if size > 1 or not shape:
        shape.append(size)
    return tuple(shape)


def reshape(net: Network) -> None:
    x = net.tensor()
    if x is not None:
        shape = factors(net, prod(net.shapes[x]))
        stated = list(shape)
        if net.flip():
            stated[net.below(len(stated))] = -1
        net.node("Reshape", [x, net.integers(stated)], shape)


def transpose(net: Network) -> None:
    x = net.tensor(2)
    if x is not None:
        perm = [int(axis) for axis in net.rng.permutation(len(net.shapes[x]))]
        net.node("Transpose", [x], tuple(net.shapes[x][axis] for axis in perm), perm=perm)


def unsqueeze(net: Network) -> None:
    x = net.tensor(0, 4)
    if x is not None:
        axis = net.below(len(net.shapes[x]) + 1)
        shape = net.shapes[x]
        net.node("Unsqueeze", [x, net.integers([axis])], (*shape[:axis], 1, *shape[axis:]))


def squeeze(net: Network) -> None:
    x = net.tensor(1)
    if x is not None and 1 in net.shapes[x]:
        axis = net.shapes[x].index(1)
        net.node("Squeeze", [x, net.integers([axis])], net.shapes[x][:axis] + net.shapes[x][axis + 1 :])


def expand(net: Network) -> None:
    x = net.tensor(1, 4)
    if x is not None:
        shape = tuple(net.below(3) + 2 if extent == 1 else extent for extent in net.shapes[x])
        if prod(shape) <= LARGEST:
            net.node("Expand", [x, net.integers(shape)], shape)


def tile(net: Network) -> None:
    x = net.tensor(1, 4)
    if x is not None:
        repeats = [net.below(2) + 1 for _ in net.shapes[x]]
        shape = tuple(a * b for a, b in zip(net.shapes[x], repeats, strict=True))
        if prod(shape) <= LARGEST:
            net.node("Tile", [x, net.integers(repeats)], shape)


def concat(net: Network) -> None:
    x = net.tensor(1)
    if x is None:
        return
    shape, axis = net.shapes[x], net.below(len(net.shapes[x]))

    def rest(other: Shape) -> Shape:
        return (*other[:axis], *other[axis + 1 :], len(other))

    others = [name for name, other in net.shapes.items() if len(other) > axis and rest(other) == rest(shape)]
    parts = [x, net.pick(*others), *([net.constant(net.noise(shape))] if net.flip() else [])]
    total = sum(net.shapes.get(name, shape)[axis] for name in parts)
    if prod(shape) // shape[axis] * total <= LARGEST:
        net.node("Concat", parts, (*shape[:axis], total, *shape[axis + 1 :]), axis=axis)


def slices(net: Network) -> None:
    x = net.tensor(1)
    if x is None:
        return
    axis = net.below(len(net.shapes[x]))
    extent = net.shapes[x][axis]
    start, step = net.below(extent), net.pick(1, 1, 2, -1)
    stop = extent if step > 0 else -extent - 1
    indices = range(start, extent, step) if step > 0 else range(start, -1, step)
    shape = (*net.shapes[x][:axis], len(indices), *net.shapes[x][axis + 1 :])
    net.node("Slice", [x, *(net.integers([v]) for v in (start, stop, axis, step))], shape)


def split(net: Network) -> None:
    x = net.tensor(1)
    if x is None:
        return
    axis = net.below(len(net.shapes[x]))
    extent = net.shapes[x][axis]
    if extent < 2:
        return
    cut = net.below(extent - 1) + 1
    names = [f"t{len(net.nodes)}_{i}" for i in range(2)]
    net.nodes.append(helper.make_node("Split", [x, net.integers([cut, extent - cut])], names, axis=axis))
    for name, part in zip(names, (cut, extent - cut), strict=True):
        net.shapes[name] = (*net.shapes[x][:axis], part, *net.shapes[x][axis + 1 :])


def gather(net: Network) -> None:
    x = net.tensor(1, 4)
    if x is None:
        return
    axis = net.below(len(net.shapes[x]))
    shape: Shape = net.pick((), (2,), (3,), (2, 2))
    indices = net.rng.integers(-net.shapes[x][axis], net.shapes[x][axis], shape)
    result = (*net.shapes[x][:axis], *shape, *net.shapes[x][axis + 1 :])
    if prod(result) <= LARGEST:
        net.node("Gather", [x, net.constant(np.asarray(indices, np.int64))], result, axis=axis)


def pad(net: Network) -> None:
    x = net.tensor(1, 4)
    if x is None:
        return
    shape = net.shapes[x]
    mode = net.pick("constant", "edge", "reflect")
    pads = [net.below(2) if mode != "reflect" or extent > 1 else 0 for extent in (*shape, *shape)]
    result = tuple(extent + pads[i] + pads[len(shape) + i] for i, extent in enumerate(shape))
    value = [net.constant(0.5)] if mode == "constant" and net.flip() else []
    if prod(result) <= LARGEST:
        net.node("Pad", [x, net.integers(pads), *value], result, mode=mode)


def reduce(net: Network) -> None:
    x = net.tensor(1)
    if x is None:
        return
    shape, keep = net.shapes[x], net.below(2)
    axes = [axis for axis in range(len(shape)) if net.flip()]
    kept = [extent if axis not in axes else 1 for axis, extent in enumerate(shape) if keep or axis not in axes]
    op = net.pick("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp")
    if axes:
        stated = [axis - len(shape) if net.flip() else axis for axis in axes]
        net.node(op, [x, net.integers(stated)], tuple(kept), keepdims=keep)


def pick_index(net: Network) -> None:
    x = net.tensor(1)
    if x is not None:
        axis = net.below(len(net.shapes[x]))
        shape = tuple(1 if i == axis else extent for i, extent in enumerate(net.shapes[x]))
        # Of numbers that are almost equal, any may be the largest; rounded ones are equal or not.
        best = net.node(net.pick("ArgMax", "ArgMin"), [net.node("Round", [x])], axis=axis, keepdims=1)
        net.node("Cast", [best], shape, to=onnx.TensorProto.FLOAT)


def along_axis(net: Network) -> None:
    x = net.tensor(1)
    if x is not None:
        axis = net.below(len(net.shapes[x])) - (len(net.shapes[x]) if net.flip() else 0)
        net.node(net.pick("Softmax", "LogSoftmax", "Softmax"), [x], net.shapes[x], axis=axis)


def cumulate(net: Network) -> None:
    x = net.tensor(1)
    if x is not None:
        axis = net.integers([net.below(len(net.shapes[x]))])
        net.node("CumSum", [x, axis], net.shapes[x], exclusive=net.below(2), reverse=net.below(2))


def layer_norm(net: Network) -> None:
    x = net.tensor(1)
    if x is not None:
        axis = net.below(len(net.shapes[x]))
        weights = [net.constant(net.noise(net.shapes[x][axis:])) for _ in range(net.below(2) + 1)]
        net.node("LayerNormalization", [x, *weights], net.shapes[x], axis=axis, epsilon=0.01)


def per_channel_norm(net: Network) -> None:
    x = net.tensor(3, 4)
    if x is None:
        return
    channels = net.shapes[x][1]
    scale, bias, mean = (net.constant(net.noise((channels,))) for _ in range(3))
    if net.flip():
        variance = net.constant(np.abs(net.noise((channels,))) + np.float32(0.5))
        net.node("BatchNormalization", [x, scale, bias, mean, variance], net.shapes[x])
    else:
        net.node("InstanceNormalization", [x, scale, bias], net.shapes[x], epsilon=0.01)


def matmul(net: Network) -> None:
    x = net.tensor(2)
    if x is None:
        return
    *lead, rows, inner = net.shapes[x]
    other = net.tensor(2)
    if other is not None and net.shapes[other][-1] == inner and net.flip():
        batch = common(tuple(lead), net.shapes[other][:-2])
        perm = [*range(len(net.shapes[other]) - 2), len(net.shapes[other]) - 1, len(net.shapes[other]) - 2]
        if batch is not None and prod(batch) * rows * net.shapes[other][-2] <= LARGEST:
            turned = net.node("Transpose", [other], perm=perm)
            net.node("MatMul", [x, turned], (*batch, rows, net.shapes[other][-2]))
        return
    columns = net.pick(1, 3, 8, 17)
    weights = net.constant(net.noise((inner, columns)) / np.float32(np.sqrt(inner)))
    if prod(lead) * rows * columns <= LARGEST:
        net.node("MatMul", [x, weights], (*lead, rows, columns))


def gemm(net: Network) -> None:
    x = net.tensor(2, 2)
    if x is None:
        return
    first, second = net.flip(), net.flip()
    rows, inner = net.shapes[x][::-1] if first else net.shapes[x]
    columns = net.pick(1, 5, 16)
    weights = net.constant(net.noise((columns, inner) if second else (inner, columns)) / np.float32(np.sqrt(inner)))
    bias = [net.constant(net.noise(net.pick((columns,), (rows, 1), (1,), (rows, columns))))] if net.flip() else []
    attributes = {"transA": int(first), "transB": int(second), "alpha": net.pick(1.0, 0.5), "beta": net.pick(1.0, 2.0)}
    net.node("Gemm", [x, weights, *bias], (rows, columns), **attributes)


def conv(net: Network) -> None:
    x = net.tensor(3, 4)
    if x is None:
        return
    batch, channels, *pixels = net.shapes[x]
    kernel = [min(extent, net.pick(1, 2, 3)) for extent in pixels]
    pads = [net.below(2) for _ in (*pixels, *pixels)]
    strides = [net.pick(1, 2) for _ in pixels]
    group = net.pick(1, 1, channels)
    features = group * net.pick(1, 2, 5)
    weights = net.noise((features, channels // group, *kernel)) / np.float32(np.sqrt(channels * prod(kernel)))
    bias = [net.constant(net.noise((features,)))] if net.flip() else []
    shape = [
        (extent + pads[i] + pads[len(pixels) + i] - kernel[i]) // strides[i] + 1 for i, extent in enumerate(pixels)
    ]
    if batch * features * prod(shape) <= LARGEST:
        attributes = {"pads": pads, "strides": strides, "group": group}
        net.node("Conv", [x, net.constant(weights), *bias], (batch, features, *shape), **attributes)


def conv_transpose(net: Network) -> None:
    x = net.tensor(3, 4)
    if x is None:
        return
    batch, channels, *pixels = net.shapes[x]
    stride, kernel, features = net.pick(1, 2), net.pick(2, 3), net.pick(1, 4)
    weights = net.constant(net.noise((channels, features, *(kernel for _ in pixels))))
    shape = [stride * (extent - 1) + kernel for extent in pixels]
    if batch * features * prod(shape) <= LARGEST:
        net.node("ConvTranspose", [x, weights], (batch, features, *shape), strides=[stride] * len(pixels))


def pool(net: Network) -> None:
    x = net.tensor(3, 4)
    if x is None:
        return
    *lead, kernel = net.shapes[x][0], net.shapes[x][1], net.pick(1, 2, 3)
    pixels = net.shapes[x][2:]
    if any(extent < kernel for extent in pixels):
        net.node(net.pick("GlobalAveragePool", "GlobalMaxPool"), [x], (*lead, *(1 for _ in pixels)))
        return
    edge = net.below(2) if kernel > 1 else 0
    shape = [(extent + 2 * edge - kernel) // 2 + 1 for extent in pixels]
    attributes = {
        "kernel_shape": [kernel] * len(pixels),
        "strides": [2] * len(pixels),
        "pads": [edge] * 2 * len(pixels),
    }
    net.node(net.pick("MaxPool", "AveragePool"), [x], (*lead, *shape), **attributes)


def resize(net: Network) -> None:
    x = net.tensor(4, 4)
    if x is None:
        return
    shape = (*net.shapes[x][:2], *(2 * extent for extent in net.shapes[x][2:]))
    scales = net.constant(np.asarray([1, 1, 2, 2], np.float32))
    if prod(shape) <= LARGEST:
        attributes = {"mode": net.pick("nearest", "linear"), "coordinate_transformation_mode": "asymmetric"}
        net.node("Resize", [x, "", scales], shape, nearest_mode="floor", **attributes)


def spelled_out(net: Network) -> None:
    """What exporters write instead of one operator."""
    x = net.tensor(1)
    if x is None:
        return
    shape, last = net.shapes[x], net.integers([-1])
    half, one = net.constant(0.5), net.constant(1)
    match net.below(4):
        case 0:  # Gelu
            scaled = net.node("Div", [x, net.constant(np.sqrt(2))])
            inner = net.node("Add", [net.node("Erf", [scaled]), one])
            net.node("Mul", [net.node("Mul", [x, inner]), half], shape)
        case 1:  # SiLU
            net.node("Mul", [x, net.node("Sigmoid", [x])], shape)
        case 2:  # RMSNorm
            mean = net.node("ReduceMean", [net.node("Pow", [x, net.constant(2)]), last])
            root = net.node("Sqrt", [net.node("Add", [mean, half])])
            net.node("Mul", [net.node("Div", [x, root]), net.constant(net.noise(shape[-1:]))], shape)
        case _:  # LayerNorm
            centred = net.node("Sub", [x, net.node("ReduceMean", [x, last])])
            power = net.node("Pow", [centred, net.constant(2)])
            spread = net.node("Sqrt", [net.node("Add", [net.node("ReduceMean", [power, last]), half])])
            net.node("Div", [centred, spread], shape)


MOVES: tuple[Move, ...] = (
    unary, unary, clip, binary, binary, choose, quotient, reshape, reshape, transpose, transpose, unsqueeze, squeeze,
    expand, tile, concat, slices, split, gather, pad, reduce, reduce, pick_index, along_axis, cumulate, layer_norm,
    per_channel_norm, matmul, matmul, gemm, conv, conv, conv_transpose, pool, resize, spelled_out, spelled_out,
)  # fmt: skip
