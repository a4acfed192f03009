"""The platforms of many small cores: one description, three sizes."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Options, run_model
from tilewright.core.graph import Array
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


def test_products_and_convolutions_of_bytes() -> None:
    """Blocks of four by four that cores take in turn: ragged ends, edges of images, taps that lie apart, groups."""
    b = Builder()
    outputs: list[str] = []
    for number, (rows, length, columns) in enumerate([(1, 8, 5), (7, 36, 10), (70, 64, 48)]):
        x = b.input(f"a{number}", f"int8[{rows},{length}]")
        outputs.append(requantised(b, b.op("MatMul", x, random(length, columns))))
    given = [
        ((1, 16, 16, 8), 16, 3, 1, 1, 1, 1),
        ((2, 9, 7, 8), 6, 3, 2, 1, 1, 1),
        ((1, 8, 13, 8), 12, 2, 1, 0, 2, 1),
        ((1, 5, 5, 8), 8, 3, 1, 2, 1, 2),
    ]
    for number, (shape, filters, window, stride, pad, dilation, groups) in enumerate(given):
        x = b.input(f"x{number}", f"int8[{','.join(map(str, shape))}]")
        w = random(filters, shape[-1] // groups, window, window)
        result = b.op(
            "Conv",
            x,
            w,
            channels_last=1,
            kernel_shape=(window,) * 2,
            group=groups,
            strides=(stride,) * 2,
            pads=(pad,) * 4,
            dilations=(dilation,) * 2,
        )
        outputs.append(requantised(b, result))
    graph = b.graph(*outputs)
    fed = [random(*graph.types[name].shape, seed=number) for number, name in enumerate(graph.inputs)]
    ran = run_model(graph, Options(platform="mempool-16"), inputs=fed)
    for name, found, wanted in zip(graph.outputs, ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    used = {choice.kernel.function for choice in ran.compiled.plan.choices if choice.kernel is not None}
    assert used == {"matmul_pool_s8", "conv2d_pool_s8"}


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def requantised(b: Builder, x: str) -> str:
    return b.op("RequantShift", x, np.asarray(9, np.int32), np.asarray(-5000, np.int32), div=1 << 14)
