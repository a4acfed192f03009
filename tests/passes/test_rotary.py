"""Queries and keys that are scaled back and turned."""

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


def turned(rows: int = 1, levels: int = 1 << 16, limit: int = 1 << 20) -> Graph:
    b = Builder()
    x = b.op("Cast", b.input("x", f"int8[{rows},8]"), to=6)
    mul, add = np.arange(1, 9, dtype=np.int32), np.arange(8, dtype=np.int32)
    scaled = b.op("RequantShift", x, mul, add, div=8, n_levels=levels, axis=-1, x_limit=limit)
    tables = (np.arange(6, dtype=np.int16).reshape(3, 2) * 900,) * 2
    return b.graph(b.op("iRotary", scaled, *tables, np.asarray(1, np.int32), heads=2, shift=8, name="q"))


@pytest.mark.parametrize("rows", [1, 2])
def test_at_once_where_there_is_a_kernel(rows: int) -> None:
    found = applied(turned(rows), partial(on, CHIP))
    assert ops(found)[1:] == ["RequantRotary"]
    node: Node = found.nodes[-1]
    assert (node.outputs, node.attrs["heads"], node.attrs["div"]) == (("q",), 2, 8)
    assert ops(applied(turned(rows), partial(on, load_platform("generic"))))[1:] == ["RequantShift", "iRotary"]


@pytest.mark.parametrize("graph", [turned(levels=256), turned(limit=0)], ids=["bytes", "more than 32 bits"])
def test_others_stay(graph: Graph) -> None:
    assert ops(applied(graph, partial(on, CHIP)))[1:] == ["RequantShift", "iRotary"]
