"""Gates and their partners as one product."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from passes.build import Builder, applied, ops
from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target, load_platform
from tilewright.passes.gates import gates

CHIP = load_platform("siracusa")
APART = ["MatMul", "MatMul", "RequantShift", "iSiLU", "RequantShift", "Mul", "RequantShift"]


def on(platform: Target, graph: Graph, _default: Target) -> Graph:
    return gates(graph, platform)


def gated(
    rows: int = 3, levels: int = 256, limit: int = 1 << 15, mul: int = 1, *, turned: bool = False, shared: bool = False
) -> Graph:
    b = Builder()
    x = b.input("x", f"int8[{rows},5]")
    y = x if not shared else b.input("y", f"int8[{rows},5]")
    weights = [np.arange(30, dtype=np.int8).reshape(5, 6) * factor for factor in (1, -1)]
    factors = np.arange(1, 7, dtype=np.int32), np.arange(6, dtype=np.int32) * 99
    sums = [b.op("MatMul", given, weight) for given, weight in zip((x, y), weights, strict=True)]
    gate = b.op("RequantShift", sums[0], *factors, div=1 << 3, n_levels=1 << 16, axis=-1, x_limit=limit)
    opened = b.op("iSiLU", gate, np.arange(128).astype(np.int16) * 256, step=9)
    partner = b.op("RequantShift", sums[1], *factors[::-1], div=1 << 4, n_levels=1 << 16, axis=-1, x_limit=limit)
    product = b.op("Mul", *((partner, opened) if turned else (opened, partner)), widen=1)
    return b.graph(
        b.op("RequantShift", product, np.asarray(mul, np.int32), np.asarray(0, np.int32), div=1 << 9, n_levels=levels)
    )


@pytest.mark.parametrize("turned", [False, True])
def test_at_once_where_there_is_a_kernel(turned: bool) -> None:
    found = applied(gated(turned=turned), partial(on, CHIP))
    assert ops(found) == ["MatMul", "RequantGate"]
    node: Node = found.nodes[-1]
    assert dict(node.attrs) == {"step": 9, "div": 8, "partner_div": 16, "product_div": 512}
    weights = found.constants[found.nodes[0].inputs[1]]
    np.testing.assert_array_equal(weights[:, ::2], -weights[:, 1::2])
    assert ops(applied(gated(turned=turned), partial(on, load_platform("generic")))) == APART


@pytest.mark.parametrize(
    "graph",
    [gated(rows=1), gated(levels=1 << 16), gated(limit=0), gated(mul=2), gated(shared=True)],
    ids=["one row", "16 bits", "more than 32 bits", "a factor", "other rows"],
)
def test_others_stay(graph: Graph) -> None:
    assert sorted(ops(applied(graph, partial(on, CHIP)))) == sorted(APART)
