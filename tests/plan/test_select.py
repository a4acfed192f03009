"""Which kernel is chosen where predictions do not tell."""

from __future__ import annotations

import pytest

from passes.build import Builder
from tilewright.machine.target import load_platform
from tilewright.plan.select import select


@pytest.mark.parametrize("platform", ["generic", "scratchpad", "cortex-m4", "siracusa"])
def test_of_kernels_that_take_the_same_the_special_one(platform: str) -> None:
    b = Builder()
    graph = b.graph(b.op("LayerNormalization", b.input("x", "float32[3,7]"), b.weights(7)))
    kernel = select(graph, graph.nodes[0], load_platform(platform)).kernel
    assert kernel is not None
    assert kernel.path.name == "layernorm_f32.c"


@pytest.mark.parametrize(("platform", "wanted"), [("generic", "maxpool.c"), ("cortex-m4", "maxpool_s8.c")])
def test_what_was_not_measured_is_not_compared(platform: str, wanted: str) -> None:
    b = Builder()
    pool = b.op("MaxPool", b.input("x", "int8[1,8,8,16]"), kernel_shape=(3, 3), channels_last=1)
    graph = b.graph(pool)
    kernel = select(graph, graph.nodes[0], load_platform(platform)).kernel
    assert kernel is not None
    assert kernel.path.name == wanted
