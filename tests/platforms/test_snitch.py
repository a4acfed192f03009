"""Snitch: networks and kernels against the references, on the simulated cluster with all its checks."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Options, run_model
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes

TOLERANCE = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-10}


def random(kind: str, *shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if kind.startswith("float"):
        return rng.normal(size=shape).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max + 1, shape).astype(kind)


def assert_right(graph: Graph, *kernels: str, l1: int = 24_000, cores: int = 8) -> None:
    """The cluster computes what the references do, and with these kernels."""
    fed = [random(graph.types[n].dtype.name, *graph.types[n].shape, seed=i) for i, n in enumerate(graph.inputs)]
    ran = run_model(graph, Options(platform="snitch", sizes=Sizes({"L1": l1}, cores=cores)), inputs=fed)
    for name, found, wanted in zip(graph.outputs, ran.outputs, interpret(graph, fed), strict=True):
        most = TOLERANCE.get(wanted.dtype.name, 0)
        np.testing.assert_allclose(found, wanted, rtol=most, atol=most, err_msg=name)
    used = {choice.kernel.function for choice in ran.compiled.plan.choices if choice.kernel is not None}
    assert used.issuperset(kernels), used


def requantised(b: Builder, x: str, mul: int = 9) -> str:
    return b.op("RequantShift", x, np.asarray(mul, np.int32), np.asarray(-5000, np.int32), div=1 << 14)


@pytest.mark.parametrize("cores", [1, 8])
def test_elements_of_all_types(cores: int) -> None:
    """Loop nests, shared by the cores, with data that comes and goes in tiles."""
    b = Builder()
    outputs: list[str] = []
    for kind in ("int8", "uint8", "int32", "float16", "float32", "float64"):
        x, y = b.input(f"x_{kind}", f"{kind}[37,41]"), b.input(f"y_{kind}", f"{kind}[37,41]")
        outputs.append(b.op("Add", x, y))
        outputs.append(b.op("Transpose", b.op("Max", x, y), perm=(1, 0)))
    assert_right(b.graph(*outputs), l1=8_000, cores=cores)


# Rows by K by N: one row, ragged ends in all directions, large enough to be cut.
PRODUCTS = [(1, 64, 40), (7, 35, 21), (2, 3, 8), (9, 20, 64), (40, 64, 96)]


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_products_with_weights(kind: str) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (rows, length, columns) in enumerate(PRODUCTS):
        x = b.input(f"x{number}", f"{kind}[{rows},{length}]")
        product = b.op("MatMul", x, random(kind, length, columns))
        outputs += [b.op("Relu", product), product] if number % 2 else [product]
    if kind == "float32":
        # Rows that are one stream begin with the same sums each.
        x = b.input("x", "float32[40,64]")
        outputs.append(b.op("Gemm", x, random(kind, 64, 96), random(kind, 96, seed=1)))
    assert_right(b.graph(*outputs), {"float32": "matmul_packed_f32", "float16": "matmul_packed_f16"}[kind])


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_products_of_activations(kind: str, turned: int) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (batch, rows, length, columns) in enumerate([(1, 64, 40, 32), (3, 7, 6, 22), (2, 5, 14, 18)]):
        shape = (columns, length) if turned else (length, columns)
        a = b.input(f"a{number}", f"{kind}[{batch},{rows},{length}]")
        product = b.op("MatMul", a, b.input(f"b{number}", f"{kind}[{batch},{shape[0]},{shape[1]}]"), transB=turned)
        outputs += [b.op("Abs", product), product] if number else [product]
    kernel = "matmul_f64" if kind == "float64" else "matmul_turned_f32" if turned else "matmul_pairs_f32"
    assert_right(b.graph(*outputs), kernel)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_products_of_bytes(kind: str) -> None:
    """Largest sums included: more products than are exact in float32 are added up as integers."""
    b = Builder()
    outputs: list[str] = []
    for number, (rows, length, columns) in enumerate([*PRODUCTS, (16, 1100, 24)]):
        x = b.input(f"x{number}", f"{kind}[{rows},{length}]")
        product = b.op("MatMul", x, random("int8", length, columns))
        outputs += [requantised(b, product), product] if number % 2 else [requantised(b, product)]
    assert_right(b.graph(*outputs), "matmul_halves_s8", l1=100_000)


# Inputs, filters, kernel, strides, pads, dilations, groups.
CONVOLUTIONS = [
    ((1, 8, 8, 16), 24, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ((2, 7, 9, 6), 10, (3, 2), (2, 1), (0, 1, 1, 0), (1, 1), 1),
    ((1, 5, 6, 8), 8, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((1, 9, 9, 8), 12, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 2),
]


@pytest.mark.parametrize("kind", ["float32", "int8", "uint8"])
def test_convolutions(kind: str) -> None:
    b = Builder()
    outputs: list[str] = []
    weights = "float32" if kind == "float32" else "int8"
    for number, (shape, filters, window, strides, pads, dilations, groups) in enumerate(CONVOLUTIONS):
        x = b.input(f"x{number}", f"{kind}[{','.join(map(str, shape))}]")
        w = random(weights, filters, shape[-1] // groups, *window, seed=number)
        result = b.op(
            "Conv",
            x,
            w,
            channels_last=1,
            kernel_shape=window,
            group=groups,
            strides=strides,
            pads=pads,
            dilations=dilations,
        )
        outputs.append(requantised(b, result) if kind != "float32" else b.op("Relu", result) if number else result)
    assert_right(b.graph(*outputs), "conv2d_pairs_f32" if kind == "float32" else "conv2d_halves_s8")


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_convolutions_of_many_products(kind: str) -> None:
    """Sums of a filter's row go beyond what floats are exact for, and of a tap, too."""
    b = Builder()
    outputs: list[str] = []
    for number, (shape, window, pads) in enumerate(
        [("1,4,3,200", (2, 3), (0, 1, 1, 1)), ("1,2,3,1030", (1, 1), (0,) * 4)]
    ):
        x = b.input(f"x{number}", f"{kind}[{shape}]")
        w = random("int8", 9, int(shape.split(",")[-1]), *window, seed=number)
        outputs.append(requantised(b, b.op("Conv", x, w, channels_last=1, kernel_shape=window, pads=pads)))
    assert_right(b.graph(*outputs), "conv2d_halves_s8", l1=120_000, cores=1)


def test_depthwise_convolutions() -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (channels, stride, pad) in enumerate([(16, 1, 1), (36, 2, 1), (18, 1, 0)]):
        x = b.input(f"x{number}", f"float32[1,9,8,{channels}]")
        w = random("float32", channels, 1, 3, 3, seed=number)
        result = b.op(
            "Conv", x, w, channels_last=1, kernel_shape=(3, 3), group=channels, strides=(stride,) * 2, pads=(pad,) * 4
        )
        outputs.append(b.op("Relu", result) if number else result)
    assert_right(b.graph(*outputs), "depthwise_pairs_f32")


@pytest.mark.parametrize(("op", "kernel"), [("MaxPool", "maxpool_pairs_f32"), ("AveragePool", "averagepool_pairs_f32")])
def test_pools(op: str, kernel: str) -> None:
    b = Builder()
    outputs: list[str] = []
    # Windows that step, overlap, reach over edges or leave pixels out; channels by sixteens and others.
    given = [
        ("1,8,8,32", (2, 2), (2, 2), (0, 0, 0, 0), (1, 1)),
        ("2,7,9,18", (3, 2), (2, 3), (1, 0, 0, 1), (2, 1)),
        ("1,6,6,16", (6, 6), (1, 1), (0, 0, 0, 0), (1, 1)),
    ]
    for number, (shape, window, strides, pads, dilations) in enumerate(given):
        x = b.input(f"x{number}", f"float32[{shape}]")
        pooled = b.op(op, x, channels_last=1, kernel_shape=window, strides=strides, pads=pads, dilations=dilations)
        outputs += [pooled, b.op("Relu", pooled)] if number == 1 else [pooled]
    assert_right(b.graph(*outputs), kernel)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_pairs_of_elements(op: str) -> None:
    """Operands of one shape, of odd sizes, and rows that are read again and again."""
    b = Builder()
    outputs: list[str] = []
    for number, (left, right) in enumerate(
        [("64,48", "64,48"), ("13,27", "13,27"), ("9,14", "14"), ("5,3,8", "5,1,8")]
    ):
        operands = b.input(f"a{number}", f"float32[{left}]"), b.input(f"b{number}", f"float32[{right}]")
        outputs.append(b.op(op, *operands))
    assert_right(b.graph(*outputs), "elementwise_pairs_f32")


def test_norms() -> None:
    b = Builder()
    x = b.input("x", "float32[9,48]")
    assert_right(b.graph(b.op("RMSNormalization", x, random("float32", 48), axis=-1)), "rmsnorm_pairs_f32")


def test_layer_norms() -> None:
    """With a bias and without; one block of a row, and rows that come in tiles."""
    b = Builder()
    outputs: list[str] = []
    for rows, columns in ((3, 8), (70, 200)):
        x = b.input(f"x{rows}", f"float32[{rows},{columns}]")
        scale, bias = random("float32", columns, seed=1), random("float32", columns, seed=2)
        outputs += [b.op("LayerNormalization", x, *given, axis=-1) for given in ((scale, bias), (scale,))]
    assert_right(b.graph(*outputs), "layernorm_pairs_f32")


def test_softmax() -> None:
    """Rows with few and many powers that count, with what is masked, and with what gives no numbers."""
    b = Builder()
    graph = b.graph(*(b.op("Softmax", b.input(f"x{n}", f"float32[{n},{n}]"), axis=-1) for n in (8, 72)))
    fed = [random("float32", n, n) * 30 for n in (8, 72)]
    fed[1][3, 10:] = -np.inf
    fed[1][4] = 100.0
    fed[1][5, 7], fed[1][6, 8], fed[1][7] = np.nan, np.inf, -np.inf
    fed[1][8, :2] = 3e38, -3e38
    ran = run_model(graph, Options(platform="snitch", sizes=Sizes({"L1": 24_000})), inputs=fed)
    for found, wanted in zip(ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert {c.kernel.function for c in ran.compiled.plan.choices if c.kernel} == {"softmax_pairs_f32"}
