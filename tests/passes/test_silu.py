"""Swish written out."""

from __future__ import annotations

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.silu import silu


def test_silu(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3]")
    golden("passes/silu.txt", text(b.graph(b.op("Mul", b.op("Sigmoid", x), x, name="y")), silu))


def test_a_factor_inside() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3]")
    result = applied(b.graph(b.op("Mul", x, b.op("Sigmoid", b.op("Mul", x, 1.5)), name="y")), silu)
    assert ops(result) == ["Swish"]
    assert result.nodes[0].attrs["alpha"] == 1.5


def test_a_quotient() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3]")
    graph = b.graph(b.op("Div", x, b.op("Add", b.op("Exp", b.op("Neg", x)), 1.0), name="y"))
    assert ops(applied(graph, silu)) == ["Swish"]


def test_the_gate_of_another_tensor_stays() -> None:
    b = Builder()
    gate = b.op("Sigmoid", b.input("g", "float32[2,3]"))
    assert ops(applied(b.graph(b.op("Mul", b.input("x", "float32[2,3]"), gate, name="y")), silu)) == ["Sigmoid", "Mul"]
