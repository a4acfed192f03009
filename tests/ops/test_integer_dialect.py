"""The integer dialect and the training operators against values computed by hand from their definitions.

Every row holds numbers that were worked out on paper, so that a mistake shared by reference and generated code shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import pytest

from support import Case
from tilewright.base.dtype import DTYPES
from tilewright.codegen import build, lower, project_files, write_project
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Attr, Attrs, Graph, Node, type_of_array
from tilewright.core.op import REGISTRY, Call, call_of, evaluate, parse_type
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform
from tilewright.ops import operators
from tilewright.plan import plan
from tilewright.sim import run_on_host


@dataclass(frozen=True)
class Row:
    """One call and its result."""

    op: str
    inputs: tuple[Array, ...]
    expected: Array
    attrs: Attrs
    what: str

    def call(self) -> Call:
        types = [type_of_array(array) for array in self.inputs]
        return call_of(operators()[self.op], types, self.attrs, values=self.inputs, name=self.what)


def array(dtype: str, values: object) -> Array:
    return np.asarray(values, dtype=DTYPES[dtype].numpy)


def s8(values: object) -> Array:
    return array("int8", values)


def s32(values: object) -> Array:
    return array("int32", values)


def f32(values: object) -> Array:
    return array("float32", values)


def row(what: str, op: str, inputs: Sequence[Array], expected: Array, **attrs: Attr) -> Row:
    return Row(op, tuple(inputs), expected, MappingProxyType(attrs), what)


def requant(what: str, x: object, mul: object, add: object, expected: Array, **attrs: Attr) -> Row:
    return row(what, "RequantShift", (s32(x), s32(mul), s32(add)), expected, **attrs)


REQUANT_SHIFT = [
    # (x + 1) >> 1: halves go up, below zero too.
    requant("rounds half up", [-3, -1, 1, 3, 5], 1, 0, s8([-1, 0, 1, 2, 3]), div=2),
    # (4x + 1) / 8: -1.375, -0.875, 0.625, 1.125
    requant("rounds to nearest", [-3, -2, 1, 2], 4, 1, s8([-1, -1, 1, 1]), div=8),
    requant("does not round for a divisor of 1", [7, -7], 2, 1, s8([15, -13]), div=1),
    requant("clips to signed levels", [1000, -1000, 300], 1, 0, s8([127, -128, 75]), div=4, n_levels=256, signed=1),
    requant("clips to unsigned levels", [2000, -1000, 300], 1, 0, array("uint8", [255, 0, 75]), div=4, signed=0),
    requant("takes floats as attributes", [9, -9], 1, 0, s8([5, -4]), div=2.0, n_levels_out=256.0, signed=(1.0,)),
    requant("has few levels", [9, -9, 3], 1, 0, s8([7, -8, 3]), div=1, n_levels=16),
    requant("has 16 bits", [90000, -90000], 1, 0, array("int16", [32767, -32768]), div=1, n_levels=65536),
    requant(
        "has 16 bits without sign", [90000, -1], 1, 0, array("uint16", [65535, 0]), div=1, n_levels=65536, signed=0
    ),
    requant("is per channel", [[[1, 2, 3], [1, 2, 3]]], [1, 10], [0, 5], s8([[[1, 2, 3], [15, 25, 35]]]), div=1),
    requant(
        "is per channel in more axes than x has",
        [[[1, 2, 3], [1, 2, 3]]],
        [[[[1]], [[10]]]],
        [[[[0]], [[5]]]],
        s8([[[1, 2, 3], [15, 25, 35]]]),
        div=1,
    ),
    # Broadcasting comes first: three values meet the last axis although there are three channels.
    requant("broadcasts first", [[[1, 1, 1]] * 3], [1, 2, 3], 0, s8([[[1, 2, 3]] * 3]), div=1),
    requant(
        "moves its channels",
        [[[1, 2], [3, 4], [5, 6]]],
        [[[1], [10]]],
        0,
        s8([[[1, 20], [3, 40], [5, 60]]]),
        div=1,
        axis=2,
    ),
    row(
        "keeps 64 bits",
        "RequantShift",
        # 10^6 * 2 * 10^9 / 2^40 = 1818.99, and 128 more
        (s32([1_000_000]), s32(2_000_000_000), array("int64", 128 << 40)),
        array("uint16", [1947]),
        div=1 << 40,
        n_levels=65536,
        signed=0,
    ),
]

SOFTMAX = [
    # Halved 0, 1 and 2 times: 16, 8, 4 of 28.
    row("halves", "iSoftmax", (s8([0, -4, -8]),), array("uint8", [145, 72, 36]), coeffA=1, coeffB=4, coeffC=0, log2=4),
    # (0 + 4)^2 = 16 and (-1 + 4)^2 = 9 of 25.
    row("interpolates", "iSoftmax", (s8([[5, 4]]),), array("uint8", [[163, 91]]), coeffA=1, coeffB=4, coeffC=0, log2=4),
    # 256, 128 and 64 make 448; 255 * 256 / 448 = 145.7
    row("halves every 32", "ITAMax", (s8([10, -22, -54]),), array("uint8", [145, 72, 36]), n_levels=256),
    # 15 below the maximum is still the maximum, 16 is half of it.
    row("rounds distances", "ITAMax", (s8([0, -15, -16]),), array("uint8", [102, 102, 51]), n_levels=256.0),
    # Groups (0, 0) and (32, 0): 512, halved to 256 when 32 comes, plus 256 and 128; 127 * 256 / 640 = 50.8
    row("halves its sum", "ITAPartialMax", (s8([0, 0, 32, 0]),), s8([25, 25, 50, 25]), group_width=2, n_levels=256),
    # The last group has one element: 256, 256, 256; 127 * 256 / 768 = 42.3
    row("ends in a short group", "ITAPartialMax", (s8([9, 9, 9]),), s8([42, 42, 42]), group_width=2, n_levels=256),
]

ACTIVATIONS = [
    # x = -1: distance -3, erf -(20 - 9) = -11, -1 * ((20 - 11) >> 1) = -4
    row("GELU", "iGELU", (s8([2, -2, 10, -10, -1, 0, 1]),), s32([36, -4, 200, 0, -4, 0, 15]), b=-4, one=20),
    row("GELU of wide x", "iGELU", (s32([100_000, -100_000]),), s32([2_000_000, 0]), b=-4, one=20),
    row("Hardswish", "iHardswish", (s8([-5, -2, 1, 10]),), s32([0, -4, 8, 120]), one_over_six=2, three=3, six=6),
    # -1 >> 3 rounds down; products are kept inside the type.
    row("LeakyReLU", "iLeakyReLU", (s8([-128, -9, -1, 0, 100]),), s8([-16, -2, -1, 0, 100]), mul=1, shift=3),
    row("steep LeakyReLU", "iLeakyReLU", (s8([-128, -9, -1, 5]),), s8([-128, -27, -3, 5]), mul=6, shift=1),
    row("LeakyReLU that turns", "iLeakyReLU", (s8([-128, -9, 7]),), s8([127, 18, 7]), mul=-2, shift=0),
    row("lookup", "Lookup", (s8([-128, 0, 127]), s32(np.arange(256) * 3)), s32([0, 384, 765])),
    row("unsigned lookup", "Lookup", (array("uint8", [0, 255]), s8(np.arange(256) - 128)), s8([-128, 127])),
]

NORMS = [
    # mean 13 / 4 = 3, squares 21 / 4 + 1 = 6, deviation 2: (-20, -10, 0, 40) / 2 + bias, then / 4 rounded down
    row("layer norm", "iLayerNorm", (s8([1, 2, 3, 7]), s32([10] * 4), s32([0, 1, 2, 3])), s8([-3, -1, 0, 5]), D=4),
    # mean -13 / 4 = -3 and -5 / 2 = -2: both toward zero
    row("truncates", "iLayerNorm", (s8([-1, -2, -3, -7]), s32([-5] * 4), s32([0] * 4)), s8([-5, -2, 0, 10]), D=1),
    # (1, -1): deviation sqrt(1 + 1) = 1; 200 and -200 do not fit in 8 bits
    row("wraps", "iLayerNorm", (s8([1, -1]), s32([200, 200]), s32([0, 0])), s8([-56, 56]), D=1),
    # squares 50 / 4 + 1 = 13, deviation 3: 30 / 3, -40 / 3 = -13, 0, 50 / 3 = 16, then / 2 rounded down
    row("RMS norm", "iRMSNorm", (s8([3, -4, 0, 5]), s32([10] * 4)), s8([5, -7, 0, 8]), D=2),
    row("RMS norm clips", "iRMSNorm", (s8([3, -4, 0, 5]), s32([1000] * 4)), s8([127, -128, 0, 127]), D=1),
    # (7, -14) * 3 = (21, -42), / 8 rounded down
    row("no norm", "iNoNorm", (s8([[2, -3]]), s8([[3, 5]]), s32([1, 1])), s32([[2, -6]]), D=8, mul=3),
]

DIVISIONS = [
    row(
        "rounds",
        "IntegerDiv",
        (s32([7, -7, 5, 4, -5]), s32([2, 2, 3, 3, 3])),
        s32([4, -4, 2, 1, -2]),
        Delta=1,
        eps=0,
        eta=1,
    ),
    # 100 * 10 * 3 = 3000 over 10 * 2 + 1 = 21 and over 1
    row("scales", "IntegerDiv", (s8([3, 3]), s8([2, 0])), s32([143, 3000]), Delta=100, eps=1, eta=10),
    # floor(16384 * 200000 / 400001) = 8191
    row("constant", "TrueIntegerDiv", (s8([-3, 5]),), s32([-24573, 40955]), Delta=16384, eps=1, eta=200000, y=2),
    # 2.5 and -2.5 go up
    row("mean of 4", "IntegerMean", (s8([[1, 2, 3, 4], [-1, -2, -3, -4]]),), s8([3, -2]), axes=(1,), keepdims=0),
    # 5/3, -5/3, 4/3
    row("mean of 3", "IntegerMean", (s8([[1, 2, 2], [-1, -2, -2], [1, 1, 2]]),), s8([[2], [-2], [1]]), axes=(-1,)),
    # 1/2 and -1/2 of six values go away from zero
    row("mean of 6", "IntegerMean", (s8([[3, 0, 0, 0, 0, 0], [-3, 0, 0, 0, 0, 0]]),), s8([[1], [-1]]), axes=(1,)),
    row("mean of all", "IntegerMean", (array("uint8", [[250, 255], [255, 255]]),), array("uint8", 254), keepdims=0),
]

TRAINING = [
    row(
        "cross entropy",
        "SoftmaxCrossEntropyLossGrad",
        (f32(np.log([[0.25, 0.75], [0.25, 0.75]])), array("int64", [1, 0])),
        f32([[0.0625, -0.0625], [-0.1875, 0.1875]]),
    ),
    row("softmax", "SoftmaxGrad", (f32([[1, 2]]), f32([[0.25, 0.75]])), f32([[-0.1875, 0.1875]])),
    # variance 2/3, so 1 / deviation = 1.2247449; times (1/6, -1/3, 1/6)
    row(
        "layer norm",
        "LayerNormalizationGrad",
        (f32([1, 0, 0]), f32([1, 0, -1]), f32([1, 1, 1]), f32([0, 0, 0])),
        f32([0.2041241, -0.4082483, 0.2041241]),
        epsilon=0.0,
    ),
    # sigmoid(1.702) = 0.845796, times 1 + 1.702 * 0.154204
    row("GELU", "GeluGrad", (f32([2, 1]), f32([0, 1])), f32([1.0, 1.067779])),
    row("SGD", "SGD", (f32([1, -1]), f32([2, 4])), f32([0.8, -1.4]), lr=0.1),
]

ROWS = [*REQUANT_SHIFT, *SOFTMAX, *ACTIVATIONS, *NORMS, *DIVISIONS, *TRAINING]


def assert_equal(found: Array, row: Row) -> None:
    assert found.dtype == row.expected.dtype, row.what
    if row.expected.dtype.kind == "f":
        np.testing.assert_allclose(found, row.expected, rtol=1e-5, atol=1e-6, err_msg=row.what)
    else:
        np.testing.assert_array_equal(found, row.expected, err_msg=row.what)


@pytest.mark.parametrize("row", ROWS, ids=[f"{r.op}-{r.what.replace(' ', '_')}" for r in ROWS])
def test_the_reference_gives_what_the_definition_says(row: Row) -> None:
    (found,) = evaluate(row.call(), row.inputs)
    assert_equal(found, row)


def test_generated_code_gives_what_the_definition_says(tmp_path: Path) -> None:
    fed = {f"r{i}_{k}": array for i, row in enumerate(ROWS) for k, array in enumerate(row.inputs)}
    nodes = [
        Node(row.op, tuple(f"r{i}_{k}" for k in range(len(row.inputs))), (f"r{i}",), row.attrs)
        for i, row in enumerate(ROWS)
    ]
    types = {name: type_of_array(array) for name, array in fed.items()}
    types |= {f"r{i}": row.call().outputs[0] for i, row in enumerate(ROWS)}
    made = tuple(node.outputs[0] for node in nodes)
    graph = Graph("dialect", tuple(fed), made, tuple(nodes), MappingProxyType(types))
    platform = load_platform("generic")
    write_project(project_files([lower(plan(graph, platform))], platform), tmp_path / "c")
    built = build(tmp_path / "c", platform, flags=(*STRICT, *SANITIZE, "-O1"))
    run = run_on_host(built.executable, list(fed.values()), [types[name] for name in made])
    for found, row in zip(run.outputs, ROWS, strict=True):
        assert_equal(found, row)


@pytest.mark.parametrize(
    ("op", "types", "attrs", "said"),
    [
        ("RequantShift", ("float32[4]", "int32[]", "int32[]"), {"div": 2}, "must hold integers"),
        ("RequantShift", ("int32[4]", "int32[]", "int32[]"), {"div": 3}, "power of two"),
        ("RequantShift", ("int32[2,3,4]", "int32[5]", "int32[]"), {"div": 2}, "one value per channel"),
        ("RequantShift", ("int32[4]", "int32[]", "int32[]"), {"div": 2, "n_levels": 1 << 80}, "levels"),
        ("iGELU", ("int8[4]",), {"b": 3, "one": 5}, "must be negative"),
        ("iLayerNorm", ("int8[4]", "int32[3]", "int32[4]"), {"D": 2}, "must have 4 values"),
        ("IntegerMean", ("int8[4]",), {"axes": (2,)}, "outside a tensor of rank 1"),
        ("Lookup", ("int16[4]", "int8[256]"), {}, "int8 or uint8"),
    ],
)
def test_wrong_calls_are_refused(op: str, types: tuple[str, ...], attrs: dict[str, Attr], said: str) -> None:
    with pytest.raises(TilewrightError, match=said):
        call_of(REGISTRY[op], [parse_type(text) for text in types], attrs, name="wrong")


def attributes(node: onnx.NodeProto) -> dict[str, Attr]:
    found: dict[str, Attr] = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        tensor = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
        numbers = tuple(tensor.reshape(-1).tolist())
        found[attribute.name] = numbers if tensor.ndim else numbers[0]
    return found


@pytest.mark.cases(
    "deeploy/Kernels/Integer/Softmax",
    "deeploy/Kernels/Integer/Hardswish",
    "deeploy/Kernels/Integer/TrueIntegerDiv",
    "deeploy/Kernels/FP32/Softmax/Grad",
)
def test_networks_of_dialect_operators_alone(case: Case) -> None:
    """Goldens of networks that consist of nothing else, node by node through the references."""
    model = onnx.ModelProto.FromString(case.network.read_bytes())
    known = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    fed = np.load(case.network.with_name("inputs.npz"))
    known |= {port.name: fed[key] for port, key in zip(model.graph.input, fed.files, strict=False)}
    integer = "Integer" in case.name
    for node in model.graph.node:
        arrays = [known[name].astype(np.int32) if integer else known[name] for name in node.input]
        call = call_of(REGISTRY[node.op_type], [type_of_array(a) for a in arrays], attributes(node), values=arrays)
        known[node.output[0]] = evaluate(call, arrays)[0]
    golden = np.load(case.network.with_name("outputs.npz"))
    for port, key in zip(model.graph.output, golden.files, strict=True):
        tolerance = 0.0 if integer else 1e-5
        np.testing.assert_allclose(known[port.name], golden[key], rtol=tolerance, atol=tolerance)
