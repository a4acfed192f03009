"""Reductions larger than the memory of the cores."""

from __future__ import annotations

import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.core.graph import Graph
from tilewright.machine.target import Target, load_platform
from tilewright.passes.reduce_steps import reduce_steps


def with_scratchpads(graph: Graph, _: Target) -> Graph:
    return reduce_steps(graph, load_platform("scratchpad"))


def reduction(op: str, kind: str, axes: list[int], **attributes: int) -> Graph:
    b = Builder()
    return b.graph(b.op(op, b.input("x", kind), axes, name="y", **attributes))


def test_reduce_steps(golden: Golden) -> None:
    graph = reduction("ReduceMean", "float32[2,3,30,40]", [1, 2, 3], keepdims=0)
    golden("passes/reduce_steps.txt", text(graph, with_scratchpads))


@pytest.mark.parametrize(
    ("op", "kind", "axes", "steps"),
    [
        ("ReduceSum", "float32[32,64]", [0, 1], 2),
        ("ReduceMax", "int8[10000]", [0], 2),
        ("ReduceMin", "float32[3,20000]", [1], 2),
        ("ReduceSum", "int32[2,1300,3]", [1], 2),
        ("ReduceSum", "float32[16,64]", [0, 1], 1),
        ("ReduceMean", "int32[32,64]", [0, 1], 1),
        ("ReduceSum", "float32[2017]", [0], 1),
    ],
)
def test_as_many_steps_as_it_takes(op: str, kind: str, axes: list[int], steps: int) -> None:
    result = applied(reduction(op, kind, axes), with_scratchpads)
    assert ops(result).count(op) == steps


def test_one_memory_holds_everything() -> None:
    assert ops(applied(reduction("ReduceSum", "float32[400,64]", [0, 1]), reduce_steps)) == ["ReduceSum"]
