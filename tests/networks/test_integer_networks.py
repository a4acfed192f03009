"""Networks in the integer dialect, from end to end, against an oracle that shares nothing with the package.

Files of such networks declare float32 throughout, store integers as float32 and write attributes as tensors. All
branches of a test are one network, so that it is built once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import integer_oracle as oracle
from tilewright.api import run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array


class Branches:
    """A network of independent branches: inputs, constants, nodes, and what every output must be."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.fed: dict[str, Array] = {}
        self.constants: list[onnx.TensorProto] = []
        self.expected: dict[str, Array] = {}

    def below(self, low: int, high: int, *shape: int) -> Array:
        return self.rng.integers(low, high, shape)

    def input(self, array: Array) -> str:
        name = f"x{len(self.fed)}"
        self.fed[name] = array
        return name

    def s8(self, *shape: int) -> tuple[str, Array]:
        array = self.below(-128, 128, *shape).astype(np.int8)
        return self.input(array), array

    def u8(self, *shape: int) -> tuple[str, Array]:
        array = self.below(0, 256, *shape).astype(np.uint8)
        array.reshape(-1)[:1] = 255
        return self.input(array), array

    def constant(self, array: Array | float) -> str:
        """Integers are stored as floats."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def list(self, *values: int) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, np.int64), name))
        return name

    def op(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{name}", domain=domain, **attributes))
        return name

    def requant(self, x: str, mul: Array, add: Array, k: int, *, signed: bool = True, name: str = "n_levels") -> str:
        """Numbers as tensors, of no axes or of one."""
        attributes = {
            "div": numpy_helper.from_array(np.asarray(2.0**k, np.float32)),
            name: numpy_helper.from_array(np.asarray([256], np.float32)),
            "signed": numpy_helper.from_array(np.asarray([float(signed)], np.float32)),
        }
        return self.op("RequantShift", x, self.constant(mul), self.constant(add), domain="PACTOps", **attributes)

    def give(self, name: str, expected: Array) -> None:
        self.expected[name] = expected

    def model(self) -> onnx.ModelProto:
        """Nodes in reverse, as files need not order them."""
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in self.fed.items()]
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in self.expected.items()]
        graph = helper.make_graph(self.nodes[::-1], "branches", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", 13), *(helper.make_opsetid(d, 1) for d in ("PACTOps", "ai.onnx.contrib"))]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def assert_right(branches: Branches, folder: Path) -> None:
    path = folder / "network.onnx"
    path.write_bytes(branches.model().SerializeToString())
    flags = (*STRICT, *SANITIZE, "-O1")
    fed, expected = list(branches.fed.values()), list(branches.expected.values())
    ran = run_model(path, inputs=fed, expected=expected, flags=flags)
    makers = {output: node for node in branches.nodes for output in node.output}
    wrong = [f"{makers[c.name].op_type} {c.name}: {c.wrong} of {c.size}, {c.worst}" for c in ran.comparisons if c.wrong]
    assert not wrong
    for (name, array), output in zip(branches.expected.items(), ran.outputs, strict=True):
        assert output.shape == array.shape, name


CONVOLUTIONS: tuple[tuple[tuple[int, ...], tuple[int, ...], list[int], list[int], list[int], int], ...] = (
    ((1, 3, 9, 7), (5, 3, 3, 3), [1, 1, 1, 1], [1, 1], [1, 1], 1),
    ((2, 4, 8, 8), (6, 4, 2, 2), [0, 0, 1, 1], [2, 2], [1, 1], 1),
    ((1, 4, 11, 6), (4, 1, 3, 3), [1, 0, 0, 1], [2, 1], [1, 1], 4),
    ((1, 4, 9, 9), (8, 2, 3, 2), [2, 1, 2, 0], [1, 3], [2, 1], 2),
    ((1, 6, 7, 7), (12, 1, 5, 5), [2, 2, 2, 2], [1, 1], [1, 1], 6),
    ((1, 17, 5, 5), (9, 17, 1, 1), [0, 0, 0, 0], [2, 2], [1, 1], 1),
    ((1, 1, 12, 12), (3, 1, 9, 9), [4, 4, 4, 4], [1, 1], [1, 1], 1),
    ((1, 3, 20), (7, 3, 3), [1, 0], [1], [1], 1),
    ((2, 5, 13), (5, 1, 4), [2, 1], [3], [1], 5),
    ((1, 4, 16), (6, 2, 3), [4, 0], [1], [2], 2),
)


def convolutions(b: Branches) -> None:
    for index, (shape, weights, pads, strides, dilations, group) in enumerate(CONVOLUTIONS):
        x, data = b.u8(*shape) if index % 2 else b.s8(*shape)
        w = b.below(-128, 128, *weights)
        bias = b.below(-5000, 5000, weights[0]) if index % 3 else None
        attributes: dict[str, Any] = {"pads": pads, "strides": strides, "dilations": dilations, "group": group}
        operands = [x, b.constant(w), *([b.constant(bias)] if bias is not None else [])]
        total = b.op("Conv", *operands, kernel_shape=list(weights[2:]), **attributes)
        sums = oracle.conv(data, w, bias, pads, strides, dilations, group)
        signed, k = bool(index & 2), 14 + index % 3
        lanes = (weights[0], *(1 for _ in weights[2:]))
        mul, add = b.below(1, 60, *lanes), b.below(-(2**k) * 9, 2**k * 9, *lanes)
        if index == 3:
            mul, add = mul.reshape(-1)[:1].reshape(()), add.reshape(-1)[:1]
        stated = (mul[None], add[None]) if index % 4 == 1 else (mul, add)
        result = b.requant(total, *stated, k, signed=signed, name="n_levels_out" if index & 1 else "n_levels")
        b.give(result, oracle.requant(sums, mul, add, k, signed=signed))
        if index % 5 == 0:
            b.give(total, sums)


def products(b: Branches) -> None:
    for trans_a, trans_b, rows, inner, columns in (
        (0, 0, 5, 19, 7),
        (0, 1, 1, 33, 4),
        (1, 0, 6, 16, 17),
        (1, 1, 3, 8, 5),
    ):
        x, data = b.s8(*((inner, rows) if trans_a else (rows, inner)))
        w = b.below(-128, 128, *((columns, inner) if trans_b else (inner, columns)))
        c = b.below(-900, 900, rows, columns)
        total = b.op("Gemm", x, b.constant(w), b.constant(c), alpha=2.0, beta=3.0, transA=trans_a, transB=trans_b)
        sums = 2 * (oracle.wide(data.T if trans_a else data) @ (w.T if trans_b else w)) + 3 * c
        mul, add = b.below(1, 90, rows, 1), b.below(-60000, 60000, rows, 1)
        b.give(b.requant(total, mul, add, 15), oracle.requant(sums, mul, add, 15))
    x, data = b.u8(2, 3, 9)
    w, bias = b.below(-60, 60, 9, 4), b.below(-99, 99, 4)
    batched = b.op("Gemm", x, b.constant(w), b.constant(bias))
    b.give(batched, oracle.wide(data) @ w + bias)
    p, left = b.s8(2, 3, 5, 9)
    q, right = b.u8(3, 9, 4)
    sums = np.matmul(oracle.wide(left), oracle.wide(right))
    b.give(
        b.requant(b.op("MatMul", p, q), np.asarray(3), np.asarray(-700), 10),
        oracle.requant(sums, np.asarray(3), np.asarray(-700), 10),
    )
    q, right = b.s8(2, 3, 6, 9)
    turned = b.op("Transpose", q, perm=[0, 1, 3, 2])
    b.give(b.op("MatMul", p, turned), np.matmul(oracle.wide(left), oracle.wide(right).swapaxes(-1, -2)))


def attention(b: Branches) -> None:
    """Two heads, a causal past of some length (none at all too), iSoftmax or ITAMax."""
    for past in (0, 3):
        x, data = b.s8(1, 4, 16)
        heads: list[Array] = []
        names: list[str] = []
        for _ in range(3):
            w, bias = b.below(-128, 128, 16, 16), b.below(-500, 500, 16)
            linear = b.op("Add", b.op("MatMul", x, b.constant(w)), b.constant(bias))
            small = b.requant(linear, np.asarray(40), np.asarray(0), 16)
            split = b.op("Reshape", small, b.list(1, 4, 2, 8))
            names.append(b.op("Transpose", split, perm=[0, 2, 1, 3]))
            value = oracle.requant(oracle.wide(data) @ w + bias, np.asarray(40), np.asarray(0), 16)
            heads.append(value.reshape(1, 4, 2, 8).transpose(0, 2, 1, 3))
        for index in (1, 2):
            cache, old = b.s8(1, 2, past, 8)
            names[index] = b.op("Concat", cache, names[index], axis=-2)
            heads[index] = np.concatenate([old, heads[index]], axis=-2)
        b.give(names[1], heads[1])
        scores = b.op("MatMul", names[0], b.op("Transpose", names[1], perm=[0, 1, 3, 2]))
        small = b.requant(scores, np.asarray(11), np.asarray(5), 13)
        logits = oracle.requant(heads[0] @ heads[1].swapaxes(-1, -2), np.asarray(11), np.asarray(5), 13)
        if past:
            soft = b.op("ITAMax", small, domain="ai.onnx.contrib", n_levels=256)
            weights = oracle.ita_max(logits, 256)
        else:
            numbers = {"coeffA": 1, "coeffB": 345, "coeffC": 62395, "log2": 255, "n_levels": 256}
            given = {key: numpy_helper.from_array(np.asarray([v], np.float32)) for key, v in numbers.items()}
            soft = b.op("iSoftmax", small, domain="PACTOps", **given)
            weights = oracle.i_softmax(logits, 1, 345, 62395, 255, 256)
        mixed = b.op("Transpose", b.op("MatMul", soft, names[2]), perm=[0, 2, 1, 3])
        flat = b.op("Reshape", mixed, b.list(1, 4, 16))
        joined = (weights @ heads[2]).transpose(0, 2, 1, 3).reshape(1, 4, 16)
        b.give(
            b.requant(flat, np.asarray(77), np.asarray(-9), 14),
            oracle.requant(joined, np.asarray(77), np.asarray(-9), 14),
        )


def single_operators(b: Branches) -> None:
    x, data = b.s8(2, 3, 21)
    numbers: dict[str, Any] = {"coeffA": 1, "coeffB": 173, "coeffC": 15599, "log2": 127, "n_levels": 256}
    b.give(b.op("iSoftmax", x, **numbers), oracle.i_softmax(data, 1, 173, 15599, 127, 256))
    b.give(b.op("ITAMax", x, n_levels=256), oracle.ita_max(data, 256))
    b.give(b.op("ITAPartialMax", x, n_levels=256, group_width=8), oracle.ita_partial_max(data, 8, 256))
    b.give(b.op("iGELU", x, b=-90, one=8192), oracle.i_gelu(data, -90, 8192))
    b.give(b.op("iHardswish", x, one_over_six=33, three=765, six=1530), oracle.i_hardswish(data, 33, 765, 1530))
    # What the norms do beyond their type is not defined, so they stay inside.
    weight, bias = b.below(-2000, 2000, 21), b.below(-1000, 1000, 21)
    given = b.constant(weight), b.constant(bias)
    norm = b.op("iLayerNorm", x, *given, D=numpy_helper.from_array(np.asarray(64, np.float32)), n_levels=256)
    b.give(norm, oracle.i_layer_norm(data, weight, bias, 6))
    b.give(b.op("iRMSNorm", x, given[0], D=256, n_levels=256), oracle.i_rms_norm(data, weight, 8))
    lanes, rows = b.below(-99, 99, 3, 21), b.below(-2000, 2000, 21)
    no_norm = b.op("iNoNorm", x, b.constant(lanes), b.constant(rows), D=16384, mul=37, n_levels=256)
    b.give(no_norm, oracle.i_no_norm(data, lanes, rows, 14, 37))
    b.give(
        b.op("TrueIntegerDiv", x, Delta=16384, eps=1, eta=200000, y=2),
        oracle.true_integer_div(data, 16384, 1, 200000, 2),
    )
    y, divisor = b.u8(2, 3, 1)
    for op in ("IntegerDiv", "Div"):
        b.give(b.op(op, x, y, Delta=256, eps=1, eta=100), oracle.integer_div(data, divisor, 256, 1, 100))


def reductions(b: Branches) -> None:
    x, data = b.s8(2, 3, 4, 5)
    for axes in ((1,), (2,), (0, 3), (1, 2, 3), (-1,), (0, 1, 2, 3)):
        for keep in (0, 1):
            stated: dict[str, Any] = {"axes": list(axes), "keepdims": keep}
            wanted = tuple(axis % 4 for axis in axes)
            b.give(b.op("ReduceMean", x, **stated), oracle.mean(data, wanted, keep=bool(keep)))
            total = b.op("ReduceSum", x, b.list(*axes), keepdims=keep)
            b.give(total, oracle.wide(data).sum(wanted, keepdims=bool(keep)))
    b.give(b.op("GlobalAveragePool", x), oracle.mean(data, (2, 3), keep=True))
    b.give(b.op("ReduceMax", x, axes=[1, 3], keepdims=0), data.max((1, 3)))


def moves(b: Branches) -> None:
    """Values only change place, and unsigned meets signed."""
    x, data = b.s8(1, 4, 6, 5)
    y, other = b.u8(1, 4, 3, 5)
    both = b.op("Concat", x, y, axis=2)
    joined = np.concatenate([data.astype(int), other.astype(int)], 2)
    b.give(both, joined)
    b.give(b.op("Slice", both, b.list(-1), b.list(-99), b.list(2), b.list(-2)), joined[:, :, ::-2])
    padded = b.op("Pad", x, b.list(0, 0, 1, 0, 0, 0, 0, 2), b.constant(np.asarray(-3)))
    b.give(padded, np.pad(data, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=-3))
    pooled = b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    b.give(pooled, data[:, :, :, :4].reshape(1, 4, 3, 2, 2, 2).max((3, 5)))
    summed = b.op("Add", b.op("Identity", x), x)
    b.give(b.op("Relu", b.op("Sub", summed, b.constant(np.asarray(7)))), np.maximum(2 * data.astype(int) - 7, 0))
    b.give(b.op("Mul", x, b.op("Gather", x, b.list(2), axis=1)), oracle.wide(data) * data[:, 2:3])
    b.give(b.op("Transpose", b.op("Reshape", x, b.list(4, -1)), perm=[1, 0]), data.reshape(4, 30).T)


def real_ends(b: Branches) -> None:
    """Real numbers are quantised, meet an integer layer, and leave as real numbers."""
    data = (b.rng.normal(size=(2, 9)) * 4).astype(np.float32)
    x = b.input(data)
    steps = b.op("Add", b.op("Div", x, b.constant(0.125)), b.constant(3))
    low, high = b.constant(np.asarray(-128)), b.constant(np.asarray(127))
    integers = b.op("Clip", b.op("Round", steps), low, high)
    value = np.clip(np.rint(data / np.float32(0.125) + 3), -128, 127)
    w = b.below(-50, 50, 9, 6)
    small = b.requant(b.op("MatMul", integers, b.constant(w)), np.asarray(21), np.asarray(100), 10)
    kept = oracle.requant(value @ w, np.asarray(21), np.asarray(100), 10)
    shifted = b.op("Sub", small, b.constant(np.asarray(-4)))
    b.give(b.op("Mul", shifted, b.constant(0.37)), ((kept + 4) * np.float32(0.37)).astype(np.float32))


FAMILIES: Sequence[Callable[[Branches], None]] = (
    convolutions,
    products,
    attention,
    single_operators,
    reductions,
    moves,
    real_ends,
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_integer_networks(family: Callable[[Branches], None], tmp_path: Path) -> None:
    branches = Branches(len(family.__name__))
    family(branches)
    assert_right(branches, tmp_path)
