"""Seeded random networks of integers: those of quantisers, with an oracle of their own, and QDQ networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

import integer_oracle as oracle
from networks.test_integer_networks import Branches
from onnx_networks import Model
from tilewright.core.graph import Array

Known = tuple[str, Array]
"""A tensor of 8 bits, with its values."""


class Quantiser:
    """A network in the integer dialect that grows by one layer after the other; `values` are the tensors so far."""

    def __init__(self, seed: int, steps: int = 6) -> None:
        self.b = Branches(seed)
        self.rng = self.b.rng
        shape = (1, self.below(12) + 1, self.below(9) + 1, self.below(9) + 1)
        self.values: list[Known] = [self.b.s8(*shape) if self.flip() else self.b.u8(*shape)]
        for _ in range(steps):
            self.pick(*LAYERS)(self)
        read = {name for node in self.b.nodes for name in node.input}
        for name, value in self.values[1:]:
            if name not in read:
                self.b.give(name, value)

    def below(self, count: int) -> int:
        return int(self.rng.integers(count))

    def flip(self) -> bool:
        return bool(self.below(2))

    def pick(self, *choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def tensor(self, rank: int = 4) -> Known | None:
        """A tensor of a rank, rather one that was made lately."""
        found = [known for known in self.values if known[1].ndim == rank and known[1].size]
        return found[-1 - min(self.below(len(found)), self.below(len(found)))] if found else None

    def requantised(self, name: str, sums: Array, lanes: tuple[int, ...]) -> None:
        """A result of 8 bits, by a factor for each lane that leaves most of them inside."""
        signed, k = self.flip(), 8 + self.below(10)
        largest = max(int(np.abs(sums).max(initial=1)), 1)
        reach = max(2, min((300 << k) // largest, 1 << 12))
        mul = self.b.below(1, reach, *lanes)
        add = self.b.below(-20 << k, 20 << k, *lanes)
        made = self.b.requant(name, mul, add, k, signed=signed)
        self.values.append((made, oracle.requant(sums, mul, add, k, signed=signed)))

    @property
    def model(self) -> onnx.ModelProto:
        return self.b.model()


def conv(net: Quantiser) -> None:
    found = net.tensor()
    if found is None:
        return
    name, data = found
    channels, *pixels = data.shape[1:]
    kernel = [min(extent, net.pick(1, 1, 3, 3, 2, 5)) for extent in pixels]
    if net.flip() and min(pixels) >= 3:
        kernel = [3, 3]
    pads, strides = [net.below(2) for _ in range(4)], [net.pick(1, 1, 2) for _ in pixels]
    group = net.pick(1, 1, channels)
    features = group if group > 1 else net.below(20) + 1
    weights = net.b.below(-128, 128, features, channels // group, *kernel)
    bias = net.b.below(-5000, 5000, features) if net.flip() else None
    operands = [name, net.b.constant(weights), *([net.b.constant(bias)] if bias is not None else [])]
    given: dict[str, Any] = {"pads": pads, "strides": strides, "dilations": [1, 1], "group": group}
    total = net.b.op("Conv", *operands, kernel_shape=kernel, **given)
    sums = oracle.conv(data, weights, bias, pads, strides, [1, 1], group)
    net.requantised(total, sums, net.pick((features, 1, 1), (1,)))


def product(net: Quantiser) -> None:
    found = net.tensor(2) or net.tensor()
    if found is None:
        return
    name, data = found
    columns = net.below(40) + 1
    weights = net.b.below(-128, 128, data.shape[-1], columns)
    net.requantised(net.b.op("MatMul", name, net.b.constant(weights)), oracle.wide(data) @ weights, (1,))


def flat(net: Quantiser) -> None:
    found = net.tensor()
    if found is not None:
        name, data = found
        net.values.append((net.b.op("Reshape", name, net.b.list(1, -1)), data.reshape(1, -1)))


def added(net: Quantiser) -> None:
    found = net.tensor()
    if found is None:
        return
    name, data = found
    same = [known for known in net.values if known[1].shape == data.shape]
    other, more = net.pick(*same) if len(same) > 1 else net.b.s8(*data.shape)
    net.requantised(net.b.op("Add", name, other), oracle.wide(data) + oracle.wide(more), (1,))


def moved(net: Quantiser) -> None:
    found = net.tensor()
    if found is None:
        return
    name, data = found
    match net.below(4):
        case 0:
            perm = [0, *(int(axis) + 1 for axis in net.rng.permutation(3))]
            net.values.append((net.b.op("Transpose", name, perm=perm), data.transpose(perm)))
        case 1:
            net.values.append((net.b.op("Concat", name, name, axis=1), np.concatenate([data, data], 1)))
        case 2:
            start = net.below(data.shape[2])
            cut = net.b.op("Slice", name, net.b.list(start), net.b.list(99), net.b.list(2), net.b.list(1))
            net.values.append((cut, data[:, :, start:]))
        case _:
            padded = net.b.op("Pad", name, net.b.list(0, 0, 1, 0, 0, 0, 0, 2), net.b.constant(np.asarray(0)))
            net.values.append((padded, np.pad(data, [(0, 0), (0, 0), (1, 0), (0, 2)])))


def pooled(net: Quantiser) -> None:
    found = net.tensor()
    if found is None:
        return
    name, data = found
    if min(data.shape[2:]) >= 2 and net.flip():
        rows, columns = (extent // 2 for extent in data.shape[2:])
        parts = data[:, :, : 2 * rows, : 2 * columns].reshape(1, -1, rows, 2, columns, 2)
        net.values.append((net.b.op("MaxPool", name, kernel_shape=[2, 2], strides=[2, 2]), parts.max((3, 5))))
    else:
        net.values.append((net.b.op("GlobalAveragePool", name), oracle.mean(data, (2, 3), keep=True)))


LAYERS: tuple[Callable[[Quantiser], None], ...] = (conv, conv, conv, conv, product, flat, added, moved, pooled)


def qdq(seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A chain of layers between quantisations, now and then with a branch that comes back."""
    m = Model()
    m.rng = np.random.default_rng(seed)
    rng = m.rng

    def scale() -> float:
        return float(np.float32(rng.uniform(0.01, 0.2)))

    kind = ("int8", "uint8")[int(rng.integers(2))]

    def quantised(name: str) -> str:
        return m.qdq(name, scale(), int(rng.integers(-20, 20)) + (128 if kind == "uint8" else 0), kind)

    channels, size = int(rng.integers(1, 9)), int(rng.integers(3, 10))
    x = m.input("x", m.noise(1, channels, size, size))
    last = quantised("x")
    branch = ""
    for _ in range(int(rng.integers(1, 6))):
        match int(rng.integers(7)):
            case 0 | 1:
                features, kernel = int(rng.integers(1, 12)), int(rng.choice((1, 3)))
                pads = [kernel // 2] * 4
                made = m.op("Conv", last, m.stored(features, channels, kernel, kernel), pads=pads)
                channels, branch, last = features, "", ""
            case 2:
                made = m.op("Conv", last, m.stored(channels, 1, 3, 3), pads=[1, 1, 1, 1], group=channels)
            case 3:
                made = m.op("Add" if rng.random() < 0.7 else "Mul", last, branch or last)
            case 4:
                made = m.op(("Sigmoid", "Relu", "Tanh", "HardSwish", "LeakyRelu")[int(rng.integers(5))], last)
            case 5:
                made = m.op("MaxPool", last, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            case _:
                made = m.op("AveragePool", last, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        before, last = last, quantised(m.op("Relu", made) if rng.random() < 0.3 else made)
        # A tensor with other channels does not come back.
        branch = branch or (before if rng.random() < 0.5 else "")
    if rng.random() < 0.5:
        flat = quantised(m.op("Flatten", m.op("GlobalAveragePool", last)))
        last = quantised(m.op("Gemm", flat, m.stored(5, channels), transB=1))
    model, fed = m.network(last)
    return model, {x: fed[0]}
