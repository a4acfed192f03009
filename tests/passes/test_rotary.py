"""Queries and keys that are scaled back, turned and taken apart."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from passes.build import Builder, applied, ops
from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target, load_platform
from tilewright.passes.rotary import rotary

CHIP = load_platform("siracusa")


def on(platform: Target, graph: Graph, _default: Target) -> Graph:
    return rotary(graph, platform)


def apart(parts: tuple[int, int] = (2, 2), levels: int = 1 << 16, limit: int = 1 << 20, axis: int = 0) -> Graph:
    b = Builder()
    x = b.op("Cast", b.input("x", "int8[1,16]"), to=6)
    mul, add = np.arange(1, 17, dtype=np.int32), np.arange(16, dtype=np.int32)
    scaled = b.op("RequantShift", x, mul, add, div=8, n_levels=levels, axis=-1, x_limit=limit)
    tables = (np.arange(6, dtype=np.int16).reshape(3, 2) * 900,) * 2
    turned = b.op("iRotary", scaled, *tables, np.asarray(1, np.int32), heads=4, shift=8)
    return b.graph(*b.ops("Split", turned, parts, names=("q", "k"), axis=axis))


def test_at_once_where_there_is_a_kernel() -> None:
    found = applied(apart(), partial(on, CHIP))
    assert ops(found)[1:] == ["RequantRotary"]
    node: Node = found.nodes[-1]
    assert (node.outputs, node.attrs["heads"], node.attrs["div"]) == (("q", "k"), 2, 8)
    assert ops(applied(apart(), partial(on, load_platform("generic"))))[1:] == ["RequantShift", "iRotary", "Split"]


@pytest.mark.parametrize("rows", [1, 2])
def test_heads_of_one_kind(rows: int) -> None:
    """Of one row and of many, for which there are kernels."""
    b = Builder()
    x = b.op("Cast", b.input("x", f"int8[{rows},8]"), to=6)
    mul, add = np.arange(1, 9, dtype=np.int32), np.arange(8, dtype=np.int32)
    scaled = b.op("RequantShift", x, mul, add, div=8, n_levels=1 << 16, axis=-1, x_limit=1 << 20)
    tables = (np.arange(6, dtype=np.int16).reshape(3, 2) * 900,) * 2
    graph = b.graph(b.op("iRotary", scaled, *tables, np.asarray(1, np.int32), heads=2, shift=8))
    assert ops(applied(graph, partial(on, CHIP)))[1:] == ["RequantRotary"]


@pytest.mark.parametrize(
    "graph",
    [apart(parts=(1, 3)), apart(levels=256), apart(limit=0), apart(axis=2)],
    ids=["unequal", "bytes", "more than 32 bits", "another axis"],
)
def test_others_stay(graph: Graph) -> None:
    assert ops(applied(graph, partial(on, CHIP)))[1:] == ["RequantShift", "iRotary", "Split"]
