"""What the planner expects of layers on Siracusa, against the simulator.

Other shapes than those of the networks; the formula of depthwise layers was corrected by the one here.
"""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from platforms.test_siracusa_kernels import random, requantised
from tilewright.api import Options, run_model
from tilewright.core.graph import Array, Graph
from tilewright.machine.target import Sizes

MOST = 0.15
"""Cycles may be off by this share of those simulated; `python -m benchmarks prediction` looks at many more layers."""


def convolution(height: int, width: int, channels: int, features: int, kernel: int, group: int = 1) -> Graph:
    b = Builder()
    x = b.op("Transpose", b.input("x", f"int8[1,{height},{width},{channels}]"), perm=(0, 3, 1, 2))
    weights = random("int8", features, channels // group, kernel, kernel, seed=1)
    pads = (kernel // 2,) * 4
    sums = b.op("Conv", x, weights, kernel_shape=(kernel, kernel), pads=pads, group=group)
    return b.graph(b.op("Transpose", requantised(b, sums), perm=(0, 2, 3, 1)))


def product(rows: int, depth: int, columns: int) -> Graph:
    b = Builder()
    sums = b.op("MatMul", b.input("x", f"int8[{rows},{depth}]"), random("int8", depth, columns, seed=2))
    return b.graph(requantised(b, sums))


def softmax(rows: int, columns: int) -> Graph:
    b = Builder()
    return b.graph(b.op("Softmax", b.input("x", f"float32[{rows},{columns}]"), axis=-1))


def sums(rows: int, columns: int) -> Graph:
    b = Builder()
    x, y = (b.input(name, f"float32[{rows},{columns}]") for name in "xy")
    return b.graph(b.op("Relu", b.op("Add", x, y)))


LAYERS = {
    "3x3": convolution(18, 14, 24, 40, 3),
    "1x1": convolution(13, 11, 48, 56, 1),
    "depthwise": convolution(15, 17, 40, 40, 3, group=40),
    "product": product(37, 120, 88),
    "vector": product(1, 250, 190),
    "softmax": softmax(12, 70),
    "sums": sums(90, 70),
}


CONVOLUTIONS = ("3x3", "1x1", "depthwise", "product", "vector")


def fed(graph: Graph) -> list[Array]:
    noise = np.random.default_rng(3)
    types = [graph.types[name] for name in graph.inputs]
    return [noise.normal(0, 30, kind.shape).clip(-128, 127).astype(kind.dtype.numpy) for kind in types]


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(("name", "without"), [*((n, ("neureka",)) for n in LAYERS), *((n, ()) for n in CONVOLUTIONS)])
def test_cycles_are_as_predicted(name: str, without: tuple[str, ...]) -> None:
    graph = LAYERS[name]
    options = Options("siracusa", sizes=Sizes({"L1": 65536}, without=without))
    ran = run_model(graph, options, inputs=fed(graph))
    schedule = ran.compiled.plan.schedule
    assert schedule is not None
    assert sum(group.cycles for group in schedule.groups) == pytest.approx(ran.cycles, rel=MOST)
