"""The platforms of many small cores: one description, three sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Options, run_model
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import load_platform


@pytest.mark.parametrize(
    ("name", "cores", "tiles"), [("mempool", 256, 64), ("mempool-16", 16, 4), ("mempool-1024", 1024, 128)]
)
def test_sizes(name: str, cores: int, tiles: int) -> None:
    platform = load_platform(name)
    group = platform.timings["rtl"].harts["pool"]
    assert group.tiles is not None
    assert (platform.cores.count, group.count, group.tiles["tiles"]) == (cores, cores, tiles)
    # What tiles have for themselves is not for networks.
    assert platform.memories["L1"].reserved == tiles * group.tiles["own_bytes"]


def test_products_of_bytes() -> None:
    """Blocks of four by four that cores take in turn, with ragged ends."""
    b = Builder()
    outputs: list[str] = []
    for number, (rows, length, columns) in enumerate([(1, 8, 5), (7, 36, 10), (70, 64, 48)]):
        x = b.input(f"a{number}", f"int8[{rows},{length}]")
        outputs.append(requantised(b, b.op("MatMul", x, random(length, columns))))
    assert kernels_used(b.graph(*outputs), "mempool-16") == {"matmul_pool_s8"}


def test_products_of_halfwords() -> None:
    """The same with two products in a word, whose sums may wrap."""
    b = Builder()
    outputs: list[str] = []
    noise = np.random.default_rng(3)
    for number, (rows, length, columns) in enumerate([(1, 8, 5), (7, 34, 10), (70, 62, 48), (6, 2, 4)]):
        x = b.input(f"a{number}", f"int16[{rows},{length}]")
        weights = noise.integers(-(1 << 15), 1 << 15, (length, columns)).astype(np.int16)
        bias = noise.integers(-(1 << 30), 1 << 30, columns).astype(np.int32)
        product = b.op("MatMul", x, weights)
        outputs.append(b.op("Add", product, bias) if number % 2 else requantised(b, product))
    assert kernels_used(b.graph(*outputs), "mempool-16") == {"matmul_pool_s16"}


@dataclass(frozen=True)
class Conv:
    """A convolution of an image that lies channels last."""

    shape: tuple[int, ...]
    filters: int
    window: tuple[int, int]
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    group: int = 1
    zero: int = 0
    dtype: str = "int8"
    bias: bool = False


CONVOLUTIONS = {
    # Edges on all sides, lines of no multiple of four pixels, ragged channels, taps that lie apart, groups, batches.
    "conv2d_pool_s8": (
        Conv((1, 16, 16, 8), 16, (3, 3), (1, 1, 1, 1)),
        Conv((1, 9, 7, 8), 6, (3, 3), (1, 1, 1, 1), strides=(2, 2), zero=-7, bias=True),
        Conv((2, 5, 3, 12), 9, (3, 2), (2, 1, 0, 1), zero=-128),
        Conv((1, 8, 13, 8), 12, (2, 2), dilations=(2, 2), zero=5),
        Conv((1, 5, 5, 8), 8, (3, 3), (2, 2, 2, 2), group=2, zero=19),
        Conv((1, 3, 3, 64), 20, (1, 1), (1, 0, 0, 1), zero=3, bias=True),
        Conv((1, 6, 5, 8), 8, (3, 5), (1, 2, 1, 2), zero=200, dtype="uint8", bias=True),
        Conv((1, 1, 1, 4), 4, (1, 1), dtype="uint8"),
    ),
    "conv2d_pool_bytes_s8": (
        Conv((1, 16, 16, 3), 16, (3, 3), (1, 1, 1, 1), strides=(2, 2), zero=-128, bias=True),
        Conv((1, 25, 5, 1), 10, (10, 4), (4, 1, 5, 2), strides=(2, 2), zero=4),
        Conv((2, 7, 6, 5), 7, (3, 3), (1, 1, 1, 1), dilations=(2, 1), zero=11, bias=True),
        Conv((1, 4, 5, 6), 12, (2, 3), (1, 1, 0, 2), group=2, zero=255, dtype="uint8", bias=True),
        Conv((1, 1, 1, 7), 1, (1, 1)),
    ),
    "depthwise_3x3_pool_s8": (
        Conv((1, 16, 18, 8), 8, (3, 3), (1, 1, 1, 1), group=8, zero=-128, bias=True),
        Conv((2, 9, 37, 4), 4, (3, 3), (1, 1, 1, 1), strides=(2, 2), group=4, zero=9),
        Conv((1, 7, 5, 12), 12, (3, 3), (2, 2, 2, 2), dilations=(2, 2), group=12, zero=130, dtype="uint8", bias=True),
        Conv((1, 1, 1, 16), 16, (3, 3), (1, 1, 1, 1), group=16, zero=-1),
    ),
    "depthwise_pool_s8": (
        Conv((1, 12, 11, 8), 8, (5, 5), (2, 2, 2, 2), group=8, zero=-128, bias=True),
        Conv((1, 9, 8, 4), 4, (7, 3), (3, 1, 3, 1), strides=(2, 1), group=4, zero=77, dtype="uint8"),
        Conv((1, 5, 20, 4), 4, (2, 4), (1, 3, 0, 3), dilations=(1, 2), group=4, zero=-9),
        Conv((1, 3, 3, 8), 8, (3, 1), group=8, bias=True),
    ),
    "conv2d_pool_s16": (
        Conv((1, 16, 16, 8), 16, (3, 3), (1, 1, 1, 1), dtype="int16"),
        Conv((1, 9, 7, 6), 6, (3, 3), (1, 1, 1, 1), strides=(2, 2), zero=-700, dtype="int16", bias=True),
        Conv((2, 5, 3, 10), 9, (3, 2), (2, 1, 0, 1), zero=-32768, dtype="int16"),
        Conv((1, 8, 13, 2), 12, (2, 2), dilations=(2, 2), dtype="int16", zero=5),
        Conv((1, 5, 5, 8), 8, (3, 3), (2, 2, 2, 2), dtype="int16", group=2, zero=19),
        Conv((1, 3, 3, 64), 20, (1, 1), (1, 0, 0, 1), dtype="int16", zero=3, bias=True),
        Conv((1, 1, 1, 2), 4, (1, 1), dtype="int16"),
    ),
    "conv2d_pool_copied_s16": (
        Conv((1, 16, 16, 3), 16, (3, 3), (1, 1, 1, 1), strides=(2, 2), dtype="int16", zero=-900, bias=True),
        Conv((1, 25, 5, 1), 10, (10, 4), (4, 1, 5, 2), strides=(2, 2), dtype="int16", zero=4),
        Conv((2, 7, 6, 5), 7, (3, 3), (1, 1, 1, 1), dilations=(2, 1), dtype="int16", zero=11, bias=True),
        Conv((1, 4, 5, 6), 12, (3, 3), (1, 1, 0, 2), dtype="int16", group=2, zero=32767, bias=True),
        Conv((1, 1, 1, 7), 1, (1, 1), dtype="int16"),
    ),
    "depthwise_pool_s16": (
        Conv((1, 16, 18, 8), 8, (3, 3), (1, 1, 1, 1), dtype="int16", group=8, zero=-32768, bias=True),
        Conv((2, 9, 37, 4), 4, (3, 3), (1, 1, 1, 1), strides=(2, 2), dtype="int16", group=4, zero=900),
        Conv((1, 9, 8, 12), 12, (4, 3), (3, 1, 3, 1), strides=(2, 1), dtype="int16", group=12),
        Conv((1, 5, 20, 4), 4, (2, 4), (1, 3, 0, 3), dilations=(1, 2), dtype="int16", group=4, zero=-9),
        Conv((1, 7, 5, 8), 8, (5, 1), (2, 0, 2, 0), dtype="int16", group=8, bias=True),
    ),
}


@pytest.mark.sample(every=4, by=("kernel",))
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("platform", ["mempool", "mempool-16"])
@pytest.mark.parametrize("kernel", CONVOLUTIONS)
def test_convolutions(kernel: str, platform: str, scaled: bool) -> None:
    """What lies outside of an image is its zero point; sums are shifted, or scaled by channel."""
    b = Builder()
    outputs: list[str] = []
    for number, conv in enumerate(CONVOLUTIONS[kernel]):
        x = b.input(f"x{number}", f"{conv.dtype}[{','.join(map(str, conv.shape))}]")
        kind = "int16" if conv.dtype == "int16" else "int8"
        constants = [random(conv.filters, conv.shape[-1] // conv.group, *conv.window, kind=kind)]
        if conv.bias:
            constants.append(np.arange(conv.filters, dtype=np.int32) * 3000 - 9000)
        result = b.op(
            "Conv",
            x,
            *constants,
            channels_last=1,
            kernel_shape=conv.window,
            group=conv.group,
            strides=conv.strides,
            pads=conv.pads,
            dilations=conv.dilations,
            x_zero_point=conv.zero,
        )
        outputs.append(scaled_by_channel(b, result, conv.filters, number % 2) if scaled else requantised(b, result))
    assert kernels_used(b.graph(*outputs), platform) == {kernel}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_floats_become_bytes(dtype: str) -> None:
    """Halves, what is too large, infinities and NaN, in sizes that are no multiple of four."""
    b = Builder()
    limits = np.iinfo(dtype)
    x = np.random.default_rng(2).normal(0, 40, 1031).astype(np.float32)
    x[:600] = np.arange(-300, 300) / 2
    x[600:607] = 1e30, -1e30, np.inf, -np.inf, np.nan, 0.0, -0.0
    outputs: list[str] = []
    fed: list[Array] = []
    for number, (size, scale) in enumerate([(1031, 0.5), (1030, 1.0), (3, 0.37), (8, 1.9999999)]):
        name = b.input(f"x{number}", f"float32[{size}]")
        zero = np.asarray(limits.min + 9, dtype)
        outputs.append(b.op("QuantizeLinear", name, np.asarray(scale, np.float32), zero))
        fed.append(x[:size])
    assert kernels_used(b.graph(*outputs), "mempool-16", fed) == {"quantize_f32"}


def kernels_used(graph: Graph, platform: str, fed: Sequence[Array] = ()) -> set[str]:
    """Those of a program whose results are right, of noise where no inputs are given."""
    noise = np.random.default_rng(1)
    types = [graph.types[name] for name in graph.inputs]
    fed = fed or [noise.integers(t.dtype.lo, t.dtype.hi + 1, t.shape).astype(t.dtype.name) for t in types]
    ran = run_model(graph, Options(platform=platform), inputs=fed)
    for name, found, wanted in zip(graph.outputs, ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    return {choice.kernel.function for choice in ran.compiled.plan.choices if choice.kernel is not None}


def random(*shape: int, seed: int = 0, kind: str = "int8") -> Array:
    limits = np.iinfo(kind)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(kind)


def requantised(b: Builder, x: str) -> str:
    return b.op("RequantShift", x, np.asarray(9, np.int32), np.asarray(-5000, np.int32), div=1 << 14)


def scaled_by_channel(b: Builder, x: str, channels: int, signed: int) -> str:
    factors = np.random.default_rng(channels).integers(1 << 18, 1 << 20, channels).astype(np.int32)
    none = np.asarray(0, np.int32)
    return b.op("RequantShift", x, factors, none, div=1 << 28, half_to_even=1, zero_point=3, signed=signed)
