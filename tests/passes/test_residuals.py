"""Sums that are scaled back and added to what goes along the layers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from passes.build import Builder, applied, ops
from tilewright.core.graph import Graph
from tilewright.machine.target import Target, load_platform
from tilewright.passes.residuals import residuals

CHIP = load_platform("siracusa")


def on(platform: Target, graph: Graph, _default: Target) -> Graph:
    return residuals(graph, platform)


def added(
    levels: int = 1 << 24,
    limit: int = 1 << 20,
    div: int = 1,
    mul: int = 1,
    *,
    rows: tuple[int, ...] = (2,),
    turned: bool = False,
    twice: bool = False,
) -> Graph:
    b, shape = Builder(), ",".join(map(str, (*rows, 16)))
    sums = b.op("Cast", b.input("x", f"int8[{shape}]"), to=6)
    factors = np.arange(1, 17, dtype=np.int32), np.arange(16, dtype=np.int32)
    scaled = b.op("RequantShift", sums, *factors, div=8, n_levels=levels, axis=-1, x_limit=limit)
    residual = b.input("a", f"int16[{shape}]")
    total = b.op("Add", *((scaled, residual) if turned else (residual, scaled)), widen=1)
    result = b.op("RequantShift", total, np.asarray(mul, np.int32), np.asarray(0, np.int32), div=div, n_levels=1 << 16)
    return b.graph(result, scaled) if twice else b.graph(result)


@pytest.mark.parametrize("turned", [False, True])
def test_at_once_where_there_is_a_kernel(turned: bool) -> None:
    found = applied(added(turned=turned), partial(on, CHIP))
    assert ops(found)[1:] == ["RequantAdd"]
    assert dict(found.nodes[-1].attrs) == {"div": 8, "n_levels": 1 << 24}
    apart = applied(added(turned=turned), partial(on, load_platform("generic")))
    assert ops(apart)[1:] == ["RequantShift", "Add", "RequantShift"]


@pytest.mark.parametrize(
    "graph",
    [added(levels=1 << 32), added(rows=(1, 2)), added(limit=0), added(div=2), added(mul=2), added(twice=True)],
    ids=[
        "an odd number of levels",
        "too many",
        "more than 32 bits",
        "a shift behind it",
        "a factor behind it",
        "sums that others read",
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert ops(applied(graph, partial(on, CHIP)))[1:] == ["RequantShift", "Add", "RequantShift"]
