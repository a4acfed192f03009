"""Floats on a machine without an FPU: operations to the bit, and products whose sums are integers with an exponent."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Options, run_model
from tilewright.codegen.build import STRICT
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes

EDGES = np.array(
    [
        *(0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x33800000, 0x3F7FFFFF, 0x3F800000),
        *(0x7EFFFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FC00000),
    ],
    np.uint32,
)
"""Zero, smallest and largest of both kinds, around 1, infinity and NaN."""


def ran(graph: Graph, fed: list[Array], *kernels: str, l1: int = 24_000, cores: int = 8) -> list[Array]:
    options = Options(platform="snitch-ita", sizes=Sizes({"L1": l1}, cores=cores))
    result = run_model(graph, options, inputs=fed, flags=STRICT)
    used = {choice.kernel.function for choice in result.compiled.plan.choices if choice.kernel is not None}
    assert used.issuperset(kernels), used
    return list(result.outputs)


def operands() -> tuple[Array, Array]:
    """Edges with edges; numbers of all sizes, near each other, and whose product is near the ends of the range."""
    rng = np.random.default_rng(3)
    signed = np.concatenate([EDGES, EDGES | 0x80000000])
    many = rng.integers(0, 1 << 32, (5, 2000), np.uint32)
    near = many[2] & 0x807FFFFF | (many[1] >> 23 & 255) + rng.integers(-30, 30, 2000).astype(np.uint32) << 23
    opposite = many[2] & 0x807FFFFF | 254 - (many[1] >> 23 & 255) + rng.integers(-2, 3, 2000).astype(np.uint32) << 23
    less = many[1] ^ many[3] & 0x800000FF
    ends = many[2] & 0x807FFFFF | 381 - (many[1] >> 23 & 255) << 23
    a = np.concatenate([np.repeat(signed, len(signed)), many[0], *[many[1]] * 4])
    b = np.concatenate([np.tile(signed, len(signed)), many[4], near, opposite, less, ends])
    return a.view(np.float32), b.view(np.float32)


def test_operations_are_those_of_ieee() -> None:
    """Rounded to the nearest, ties to even; gradual underflow; NaN unordered."""
    b, (x, y) = Builder(), operands()
    size = f"float32[{len(x)}]"
    left, right = b.input("x", size), b.input("y", size)
    found = ran(b.graph(*(b.op(name, left, right) for name in ("Add", "Sub", "Mul", "Less", "Equal"))), [x, y])
    with np.errstate(all="ignore"):
        wanted = [x + y, x - y, x * y, x < y, x == y]
    for got, right_one in zip(found, wanted, strict=True):
        if got.dtype == np.float32:
            nan = np.isnan(right_one)
            np.testing.assert_array_equal(np.isnan(got), nan)
            np.testing.assert_array_equal(got.view(np.uint32)[~nan], right_one.view(np.uint32)[~nan])
        else:
            np.testing.assert_array_equal(got, right_one)


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def assert_right(graph: Graph, kernel: str, l1: int, cores: int = 8) -> None:
    fed = [random(*graph.types[name].shape, seed=i) for i, name in enumerate(graph.inputs)]
    for found, wanted in zip(ran(graph, fed, kernel, l1=l1, cores=cores), interpret(graph, fed), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cores", [1, 8])
def test_products(cores: int) -> None:
    """With weights, biases and steps behind them; of activations, turned and not; sums in parts."""
    b = Builder()
    outputs: list[str] = []
    for number, (rows, length, columns) in enumerate([(1, 64, 40), (7, 35, 21), (2, 3, 1), (24, 300, 32)]):
        x = b.input(f"x{number}", f"float32[{rows},{length}]")
        outputs.append(
            b.op("Relu", b.op("Gemm", x, random(length, columns, seed=number), random(columns, seed=number)))
        )
    for number, turned in enumerate((0, 1)):
        a = b.input(f"a{number}", "float32[3,7,6]")
        other = b.input(f"b{number}", f"float32[3,{'11,6' if turned else '6,11'}]")
        outputs.append(b.op("MatMul", a, other, transB=turned))
    assert_right(b.graph(*outputs), "matmul_soft_f32", 16_000, cores)


@pytest.mark.parametrize("cores", [1, 8])
def test_convolutions(cores: int) -> None:
    """Edges, strides, dilations and groups."""
    b = Builder()
    outputs: list[str] = []
    for number, (shape, filters, window, strides, pads, dilations, groups) in enumerate(
        [
            ((1, 8, 8, 16), 24, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
            ((2, 7, 9, 6), 9, (3, 2), (2, 1), (0, 1, 1, 0), (1, 1), 1),
            ((1, 5, 6, 8), 8, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
            ((1, 9, 9, 8), 12, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 2),
        ]
    ):
        x = b.input(f"x{number}", f"float32[{','.join(map(str, shape))}]")
        weights = random(filters, shape[-1] // groups, *window, seed=number)
        outputs.append(
            b.op(
                *("Conv", x, weights, random(filters)),
                channels_last=1,
                kernel_shape=window,
                group=groups,
                strides=strides,
                pads=pads,
                dilations=dilations,
            )
        )
    assert_right(b.graph(*outputs), "conv2d_soft_f32", 12_000, cores)


def test_sums_of_any_floats() -> None:
    """Of very different sizes, of numbers below all ordinary ones, of zeros, with infinity and NaN."""
    rng = np.random.default_rng(1)
    x = (random(40, 64) * np.exp2(rng.integers(-60, 60, (40, 64)))).astype(np.float32)
    w = (random(64, 10) * np.exp2(rng.integers(-60, 60, (64, 10)))).astype(np.float32)
    x[rng.random(x.shape) < 0.3] = 0
    w[rng.random(w.shape) < 0.1] = 0
    x[0] = 0
    x[1], x[2] = np.float32(1e-40), np.float32(1e-30)
    x[3, 5], x[4, 6], x[5, 7] = np.inf, -np.inf, np.nan
    x[6, 8], w[8, 3] = np.inf, 0
    w[9, 4] = np.inf
    x[7] *= np.float32(1e20)
    b = Builder()
    left, right = b.input("x", "float32[40,64]"), b.input("w", "float32[64,10]")
    (found,) = ran(b.graph(b.op("MatMul", left, right)), [x, w], "matmul_soft_f32")
    with np.errstate(all="ignore"):
        products = x[:, :, None].astype(np.float64) * w[None].astype(np.float64)
        exact, most = products.sum(axis=1), np.abs(products).sum(axis=1)
        wanted = exact.astype(np.float32)
    fine = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])
    off = np.abs(found[fine] - exact[fine])
    assert np.all(off <= 64 * np.maximum(most[fine] * 2.0**-24, 2.0**-149)), "what a sum of 64 floats may be off by"
    assert fine.mean() > 0.7
