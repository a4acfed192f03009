"""HardSwish written out."""

from __future__ import annotations

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.hard_swish import hard_swish


def _gate(b: Builder, x: str, top: float = 6.0) -> str:
    return b.op("Clip", b.op("Add", x, 3.0), 0.0, top)


def test_hard_swish(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3]")
    golden("passes/hard_swish.txt", text(b.graph(b.op("Div", b.op("Mul", x, _gate(b, x)), 6.0, name="y")), hard_swish))


def test_a_factor_on_either_side() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3]")
    graph = b.graph(b.op("Mul", x, b.op("Mul", _gate(b, x), 1 / 6), name="y"))
    assert ops(applied(graph, hard_swish)) == ["HardSwish"]


def test_a_hard_sigmoid() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3]")
    graph = b.graph(b.op("Mul", x, b.op("HardSigmoid", x, alpha=1 / 6, beta=0.5), name="y"))
    assert ops(applied(graph, hard_swish)) == ["HardSwish"]


def test_other_bounds_are_another_function() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3]")
    graph = b.graph(b.op("Div", b.op("Mul", x, _gate(b, x, 5.0)), 6.0, name="y"))
    assert "HardSwish" not in ops(applied(graph, hard_swish))
