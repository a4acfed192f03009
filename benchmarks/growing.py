"""Networks of any number of nodes, for `growth`: each grows in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.core.graph import Array

WIDTH = 4


class Growing:
    """An ONNX file while it is made."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._random = np.random.default_rng(0)

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    def input(self, *shape: int) -> str:
        name = f"x{len(self._inputs)}"
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self._random.standard_normal(shape).astype(np.float32))

    def constant(self, array: Array) -> str:
        name = f"w{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, list(inputs), [name], name=f"n{len(self._nodes)}", **attributes))
        return name

    def output(self, name: str) -> None:
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def save(self, path: Path) -> None:
        graph = helper.make_graph(self._nodes, "growing", self._inputs, self._outputs, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        path.write_bytes(model.SerializeToString())


def chain(count: int) -> Growing:
    """Operators of many kinds, one behind the other."""
    made = Growing()
    name = made.input(WIDTH, WIDTH)
    while made.nodes < count:
        name = made.add("MatMul", name, made.weights(WIDTH, WIDTH))
        name = made.add("Add", name, made.weights(WIDTH))
        name = made.add("Softmax", name)
        name = made.add("Transpose", name, perm=[1, 0])
        name = made.add("Reshape", name, made.constant(np.array([2, 2 * WIDTH], np.int64)))
        name = made.add("Sigmoid", name)
        name = made.add("Reshape", name, made.constant(np.array([WIDTH, WIDTH], np.int64)))
        name = made.add("Concat", name, name, axis=0)
        name = made.add("MatMul", made.weights(WIDTH, 2 * WIDTH), name)
        name = made.add("Relu", name)
    made.output(name)
    return made


def pointwise(count: int) -> Growing:
    """Element-wise operators only, which all fuse."""
    made = Growing()
    start = name = made.input(WIDTH, WIDTH)
    while made.nodes < count:
        name = made.add("Add", name, made.weights(WIDTH))
        name = made.add("Sigmoid", name)
        name = made.add("Mul", name, start)
        name = made.add("Mul", name, made.weights(1))
    made.output(name)
    return made


def residual(count: int) -> Growing:
    """Convolutions with additions around every second one."""
    made = Growing()
    name = made.input(1, WIDTH, 6, 6)
    while made.nodes < count:
        inner = name
        for _ in range(2):
            weights = made.weights(WIDTH, WIDTH, 3, 3)
            inner = made.add("Relu", made.add("Conv", inner, weights, pads=[1, 1, 1, 1]))
        name = made.add("Add", name, inner)
    made.output(name)
    return made


def branches(count: int) -> Growing:
    """One input, many products of it, joined by a Concat."""
    made = Growing()
    name = made.input(WIDTH, WIDTH)
    parts = [made.add("MatMul", name, made.weights(WIDTH, WIDTH)) for _ in range(count)]
    made.output(made.add("Concat", *parts, axis=0))
    return made


def concat(count: int) -> Growing:
    """A Concat of inputs."""
    made = Growing()
    made.output(made.add("Concat", *(made.input(WIDTH, 2) for _ in range(count)), axis=0))
    return made


def total(count: int) -> Growing:
    """A Sum of inputs."""
    made = Growing()
    made.output(made.add("Sum", *(made.input(WIDTH) for _ in range(count))))
    return made


def ports(count: int) -> Growing:
    """Many small networks side by side, each with an input, weights and an output."""
    made = Growing()
    for _ in range(count):
        made.output(made.add("MatMul", made.input(WIDTH, WIDTH), made.weights(WIDTH, WIDTH)))
    return made


def pyramid(count: int) -> Growing:
    """Results that are all read once more at the end, in reverse: everything lives at once."""
    made = Growing()
    levels = [made.input(WIDTH, WIDTH)]
    for _ in range(count // 4):
        levels.append(made.add("Softmax", made.add("MatMul", levels[-1], made.weights(WIDTH, WIDTH))))
    name = levels.pop()
    while levels:
        name = made.add("Add", made.add("MatMul", name, made.weights(WIDTH, WIDTH)), levels.pop())
    made.output(name)
    return made


NETWORKS: Mapping[str, Callable[[int], Growing]] = {
    made.__name__: made for made in (chain, pointwise, residual, branches, concat, total, ports, pyramid)
}
