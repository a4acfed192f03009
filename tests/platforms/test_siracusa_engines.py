"""Branches and heads on NEUREKA and the cores at the same time, on the simulated chip with all its checks.

`python -m benchmarks engines` has larger networks.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from passes.build import Builder
from platforms.test_siracusa_kernels import random, requantised
from tilewright.api import Options, run_model
from tilewright.api.running import Ran
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.core.plan import Schedule
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions

MORE = 0.04
"""By this share of those simulated, predicted cycles may be further off than with one engine at a time."""


def inception() -> Graph:
    """Branches of an image: 1x1, 3x3 and 5x5 convolutions, the latter behind 1x1 ones, and a pool."""
    b = Builder()
    x = b.op("Transpose", b.input("x", "int8[1,10,10,48]"), perm=(0, 3, 1, 2))

    def conv(image: str, channels: int, features: int, kernel: int) -> str:
        weights, pads = random("int8", features, channels, kernel, kernel, seed=kernel), (kernel // 2,) * 4
        return requantised(b, b.op("Conv", image, weights, kernel_shape=(kernel, kernel), pads=pads), 3)

    pool = b.op("MaxPool", x, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    three, five = conv(conv(x, 48, 40, 1), 40, 40, 3), conv(conv(x, 48, 8, 1), 8, 8, 5)
    y = b.op("Concat", conv(x, 48, 40, 1), three, five, conv(pool, 48, 24, 1), axis=1)
    return b.graph(b.op("Transpose", y, perm=(0, 2, 3, 1)))


def heads() -> Graph:
    """Attention head by head behind a norm: projections, scores, softmax and the sum of values."""
    b = Builder()
    tokens, width, head = 24, 192, 48
    weights = [random("int16", width, seed=n).astype(np.int32) for n in (1, 2)]
    x = b.op("iLayerNorm", b.input("x", f"int8[{tokens},{width}]"), *weights, D=1 << 9)
    found: list[str] = []
    for number in range(4):
        parts = [random("int8", width, head, seed=3 * number + n) for n in range(3)]
        q, k, v = (requantised(b, b.op("MatMul", x, part), 3) for part in parts)
        scores = requantised(b, b.op("MatMul", q, b.op("Transpose", k, perm=(1, 0))), 2)
        chances = b.op("iSoftmax", scores, coeffA=20, coeffB=40, coeffC=7000, log2=20, n_levels=256)
        found.append(requantised(b, b.op("MatMul", chances, v), 2))
    return b.graph(b.op("Concat", *found, axis=1))


NETWORKS = {"inception": inception, "heads": heads}


def simulated(graph: Graph, overlap: Literal["auto", "off"], l1: int = 229_376) -> Ran:
    """A network on the chip, whose results have to be those of the reference."""
    fed = [random(graph.types[name].dtype.name, *graph.types[name].shape) for name in graph.inputs]
    options = Options("siracusa", sizes=Sizes({"L1": l1}), planning=PlanOptions(overlap=overlap))
    ran = run_model(graph, options, inputs=fed, profile=True)
    for found, wanted in zip(ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted)
    return ran


def schedule_of(ran: Ran) -> Schedule:
    schedule = ran.compiled.plan.schedule
    assert schedule is not None
    return schedule


def beside(ran: Ran) -> int:
    """How many groups are computed beside others."""
    return sum(run.wait.group > run.group for run in schedule_of(ran).runs)


def error(ran: Ran) -> float:
    """How far predicted cycles are off."""
    assert ran.cycles is not None
    return abs(schedule_of(ran).cycles / ran.cycles - 1)


@pytest.mark.parametrize("name", NETWORKS)
def test_two_engines_at_a_time_are_faster(name: str) -> None:
    graph = NETWORKS[name]()
    one, both = simulated(graph, "off"), simulated(graph, "auto")
    assert (beside(one), beside(both) > 2) == (0, True)
    assert one.cycles is not None
    assert both.cycles is not None
    assert both.cycles < 0.95 * one.cycles
    # What is done at the same time makes predictions no worse, nor is a group of the timeline lost.
    assert error(both) <= error(one) + MORE
    assert len(both.groups) == len(schedule_of(both).groups)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("l1", [24_000, 48_000])
@pytest.mark.parametrize("name", NETWORKS)
def test_results_are_right_with_little_memory(name: str, l1: int) -> None:
    """Whether or not there are bytes for two at a time."""
    simulated(NETWORKS[name](), "auto", l1)
