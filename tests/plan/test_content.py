"""Nodes that are alike to a planner: it plans them once."""

from __future__ import annotations

import numpy as np

from passes.build import Builder
from tilewright.machine.target import load_platform
from tilewright.plan.content import Contents
from tilewright.plan.select import select
from tilewright.price.tasks import task


def test_numbers_count_by_what_follows_from_them() -> None:
    b = Builder()
    x = b.input("x", "int8[16,32]")
    # The kernel asks whether the largest weight is at least 1 << 22.
    weights = [np.full(32, largest, np.int32) for largest in (3, 700, 1 << 22)]
    graph = b.graph(*(b.op("iRMSNorm", x, weight, D=1 << 10) for weight in weights))
    platform, contents = load_platform("siracusa"), Contents()
    tasks = [task(graph, node, select(graph, node, platform).kernel) for node in graph.nodes]
    small, other, large = map(contents.of, tasks)
    assert small == other
    assert small != large


def test_padding_counts() -> None:
    b = Builder()
    x = b.input("x", "int8[1,8,8,16]")
    pads = ((0, 0, 1, 1), (0, 0, 2, 2))
    outputs = [b.op("MaxPool", x, kernel_shape=(3, 3), strides=(2, 2), pads=p, channels_last=1) for p in pads]
    graph = b.graph(*outputs)
    platform, contents = load_platform("siracusa"), Contents()
    one, other = (contents.of(task(graph, node, select(graph, node, platform).kernel)) for node in graph.nodes)
    assert one != other
