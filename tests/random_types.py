"""Seeded random networks over many element types: wide integers, casts, indices that are computed, scalars, bounds.

Each node is tried alone in onnxruntime. It is kept where onnxruntime takes it and the standard says what it gives:
values are known, so that nothing overflows where that is left open, and nothing meets what onnxruntime gets wrong.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.core.graph import Array

OPSET = 21
LARGEST = 600
"""Elements of the largest tensor."""
EXACT = 2.0**52
"""Below it onnxruntime reduces int64 exactly: it adds them up in float64."""
FLOATS = ("float32", "float64")
INTEGERS = ("int64", "int32", "int8", "uint8", "int16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
TYPES = (*NUMBERS, "int64", "int64", "bool")
_runtime: Any = importlib.import_module("onnxruntime")


def by_onnxruntime(model: onnx.ModelProto, fed: dict[str, Array]) -> list[Array]:
    """The outputs without optimisations, which is the standard but for what is documented as onnxruntime's."""
    options = _runtime.SessionOptions()
    options.graph_optimization_level = _runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = _runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(array) for array in session.run(None, fed)]


def is_of_onnxruntime(error: Exception) -> bool:
    """Whether onnxruntime refuses a model by it."""
    return type(error).__module__.startswith("onnxruntime")


def number_of(array: Array) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)


class Soup:
    """A network that grows by one operator after the other, with the value of every tensor."""

    def __init__(self, seed: int, steps: int = 14) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.values: dict[str, Array] = {}
        self.base = tuple(self.pick(1, 1, 2, 3, 4) for _ in range(self.below(5)))
        for _ in range(2):
            self.source(self.pick(*TYPES), self.part(self.base), constant=False)
        for _ in range(20 * steps):
            if len(self.nodes) == steps:
                break
            self.pick(*MOVES)(self)

    # Choices

    def below(self, count: int) -> int:
        return int(self.rng.integers(count))

    def flip(self) -> bool:
        return bool(self.below(2))

    def pick(self, *choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def part(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to `shape`."""
        kept = tuple(extent if self.below(4) else 1 for extent in shape)
        return kept[self.below(len(kept) + 1) if self.flip() else 0 :]

    def noise(self, kind: str, shape: Sequence[int]) -> Array:
        dtype = np.dtype(kind)
        if dtype == np.bool_:
            return np.asarray(self.rng.random(shape) < 0.5)
        if dtype.kind == "f":
            # Halves are among them, so that it matters how they are rounded.
            return np.asarray(np.round(4 * self.rng.normal(size=shape)) / 2).astype(dtype)
        limits, reach = np.iinfo(dtype), self.pick(8, 100, 2**33)
        low, high = max(limits.min, -reach), min(limits.max, reach)
        return np.asarray(self.rng.integers(low, high, shape, dtype, endpoint=True))

    # Tensors

    def source(self, kind: str, shape: Sequence[int] = (), *, constant: bool | None = None) -> str:
        return self.given(self.noise(kind, shape), constant=constant)

    def given(self, value: Array | Sequence[int], *, constant: bool | None = None) -> str:
        fixed = self.flip() if constant is None else constant
        name = f"{'c' if fixed else 'x'}{len(self.values)}"
        self.values[name] = np.asarray(value)
        if fixed:
            self.constants[name] = self.values[name]
        return name

    def integers(self, *values: int) -> str:
        return self.given(np.asarray(values, np.int64), constant=True)

    def tensor(self, kinds: Sequence[str] = TYPES, low: int = 0) -> str:
        """A tensor of some kinds, rather one that was made lately."""
        names = [
            name
            for name, value in self.values.items()
            if value.dtype.name in kinds and value.ndim >= low and name not in self.constants
        ]
        if not names:
            return self.source(self.pick(*kinds), (2, 3)[: max(low, self.below(3))], constant=False)
        return names[-1 - min(self.below(len(names)), self.below(len(names)))]

    def beside(self, name: str) -> str:
        """Another tensor of its type, or a new one, that broadcasts with it."""
        value = self.values[name]
        for _ in range(3):
            other = self.tensor((value.dtype.name,))
            try:
                shape = np.broadcast_shapes(self.values[other].shape, value.shape)
            except ValueError:
                continue
            if np.prod(shape) <= LARGEST:
                return other
        return self.source(value.dtype.name, self.part(value.shape))

    # Nodes

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> None:
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        node = helper.make_node(op, inputs, names, **attributes)
        try:
            results = by_onnxruntime(self._network([node], names), self._fed([node]))
        except Exception as refusal:
            if not is_of_onnxruntime(refusal):
                raise
            return
        finite = all(np.all(np.isfinite(array)) for array in results if array.dtype.kind == "f")
        if finite and max(array.size for array in results) <= LARGEST:
            self.nodes.append(node)
            self.values.update(zip(names, results, strict=True))

    def _fed(self, nodes: Sequence[onnx.NodeProto]) -> dict[str, Array]:
        made = {name for node in nodes for name in node.output}
        read = dict.fromkeys(name for node in nodes for name in node.input if name)
        return {name: self.values[name] for name in read if name not in made and name not in self.constants}

    def _network(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> onnx.ModelProto:
        read = {name for node in nodes for name in node.input}
        inputs = [helper.make_tensor_value_info(n, number_of(a), a.shape) for n, a in self._fed(nodes).items()]
        weights = [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n in read]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(nodes, "soup", inputs, results, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)

    def model(self) -> tuple[onnx.ModelProto, dict[str, Array]]:
        """The network, of which everything that nothing reads is an output, and its inputs.

        Of some valid networks onnxruntime gets sizes wrong that are computed: those end before.
        """
        while True:
            model, fed = self._whole(), self._fed(self.nodes)
            try:
                by_onnxruntime(model, fed)
            except Exception as refusal:
                if not is_of_onnxruntime(refusal):
                    raise
                self.nodes.pop()
            else:
                return model, fed

    def _whole(self) -> onnx.ModelProto:
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        model = self._network(self.nodes, [name for name in made if name not in read])
        for output in model.graph.output:
            value = self.values[output.name]
            output.CopyFrom(helper.make_tensor_value_info(output.name, number_of(value), value.shape))
        return model


def magnitude(*arrays: Array) -> float:
    return max(float(np.max(np.abs(array.astype(np.float64)), initial=0)) for array in arrays)


def unary(soup: Soup) -> None:
    op = soup.pick("Abs", "Neg", "Sign", "Relu", "Floor", "Ceil", "Round", "Not", "BitwiseNot", "Identity")
    x = soup.tensor(("bool",) if op == "Not" else FLOATS if op in ("Floor", "Ceil", "Round") else NUMBERS)
    if op != "Sign" or magnitude(soup.values[x]) < 2.0**31:
        soup.node(op, x)


def binary(soup: Soup) -> None:
    x = soup.tensor(NUMBERS)
    y = soup.beside(x)
    op = soup.pick("Add", "Sub", "Mul", "Max", "Min", "Equal", "Less", "GreaterOrEqual")
    pair = (x, y) if soup.flip() else (y, x)
    if op not in ("Max", "Min") or magnitude(soup.values[x], soup.values[y]) < 2.0**31:
        soup.node(op, *pair)


def quotient(soup: Soup) -> None:
    x = soup.tensor(INTEGERS)
    y = soup.values[soup.beside(x)]
    divisor = np.where((y == 0) | (y == y.dtype.type(-1 if y.dtype.kind == "i" else 0)), 3, y).astype(y.dtype)
    soup.node(soup.pick("Div", "Mod"), x, soup.given(divisor))


def power(soup: Soup) -> None:
    x, exponent = soup.tensor(("float32", "float64", "int32", "int64")), soup.below(4)
    value = soup.values[x]
    kind = soup.pick("float32", "int64", value.dtype.name)
    if value.dtype.kind == "f" or magnitude(value) ** exponent < (EXACT if value.dtype.itemsize == 8 else 2.0**30):
        soup.node("Pow", x, soup.given(np.asarray(exponent, kind)))


def choose(soup: Soup) -> None:
    x = soup.tensor()
    soup.node("Where", soup.source("bool", soup.part(soup.values[x].shape)), x, soup.beside(x))


def cast(soup: Soup) -> None:
    x, target = soup.tensor(), np.dtype(soup.pick(*TYPES))
    value = soup.values[x]
    if value.dtype.kind == "f" and target.kind in "iu":
        limits = np.iinfo(target)
        if value.size and not (limits.min <= float(value.min()) and float(value.max()) < float(limits.max)):
            return
    soup.node("Cast", x, to=helper.np_dtype_to_tensor_dtype(target))


def clip(soup: Soup) -> None:
    x = soup.tensor(NUMBERS)
    low, high = np.sort(soup.noise(soup.values[x].dtype.name, (2,)))
    if magnitude(soup.values[x], low, high) < 2.0**31:
        soup.node("Clip", x, soup.given(low) if soup.flip() else "", soup.given(high) if soup.flip() else "")


def reduce(soup: Soup) -> None:
    x = soup.tensor(("float32", "float64", "int32", "int64"))
    value, op = soup.values[x], soup.pick("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceSumSquare")
    bits = 2 * np.sum(np.log2(np.maximum(np.abs(value.astype(np.float64)), 1)))
    if value.dtype.kind == "i" and bits >= (np.log2(EXACT) if value.dtype.itemsize == 8 else 30):
        return
    axes = [axis for axis in range(value.ndim) if soup.flip()]
    soup.node(op, x, *([soup.integers(*axes)] if axes else []), keepdims=soup.below(2))


def along_axis(soup: Soup) -> None:
    x = soup.tensor(("float32", "int32", "int64"), 1)
    axis = soup.below(soup.values[x].ndim)
    if not soup.values[x].size:
        return
    match soup.below(3):
        case 0:
            soup.node("CumSum", x, soup.integers(axis), exclusive=soup.below(2), reverse=soup.below(2))
        case 1:
            soup.node(soup.pick("ArgMax", "ArgMin"), x, axis=axis, keepdims=soup.below(2))
        case _:
            count = soup.integers(soup.below(soup.values[x].shape[axis]) + 1)
            soup.node("TopK", x, count, outputs=2, axis=axis, largest=soup.below(2))


def computed_index(soup: Soup) -> None:
    """Any integers modulo the length of an axis are indices."""
    x, index = soup.tensor(TYPES, 1), soup.tensor(("int32", "int64"))
    axis = soup.below(soup.values[x].ndim)
    if not soup.values[x].size:
        return
    length = np.asarray(soup.values[x].shape[axis], soup.values[index].dtype)
    count = len(soup.nodes)
    soup.node("Mod", index, soup.given(length, constant=True))
    if len(soup.nodes) > count:
        soup.node("Gather", x, soup.nodes[-1].output[0], axis=axis)


def sizes(soup: Soup) -> None:
    count = len(soup.nodes)
    soup.node(soup.pick("Shape", "Size"), soup.tensor(TYPES, 1))
    if len(soup.nodes) > count:
        number = soup.given(np.asarray(soup.pick(2, -3, 2**33)), constant=True)
        soup.node(soup.pick("Mul", "Add", "Sub", "Div"), soup.nodes[-1].output[0], number)


def moved(soup: Soup) -> None:
    x = soup.tensor()
    shape = soup.values[x].shape
    match soup.below(4):
        case 0:
            soup.node("Expand", x, soup.integers(*(2 if e == 1 and soup.flip() else e for e in shape)))
        case 1 if shape:
            pads = [soup.below(3) - 1 for _ in (*shape, *shape)]
            soup.node("Pad", x, soup.integers(*pads), soup.source(soup.values[x].dtype.name))
        case 2 if shape:
            soup.node("Slice", x, soup.integers(-1), soup.integers(-(2**63)), soup.integers(0), soup.integers(-1))
        case _:
            soup.node("Unsqueeze", x, soup.integers(soup.below(len(shape) + 1)))


def one_hot(soup: Soup) -> None:
    x = soup.tensor(("int64", "int32", "uint8"))
    depth = soup.given(np.asarray(soup.below(5) + 1), constant=True)
    soup.node("OneHot", x, depth, soup.source(soup.pick("float32", "int64", "uint8"), (2,)))


Move = Callable[[Soup], None]
MOVES: tuple[Move, ...] = (
    unary, unary, binary, binary, binary, quotient, power, choose, cast, cast, clip, reduce, along_axis,
    computed_index, sizes, moved, moved, one_hot,
)  # fmt: skip
