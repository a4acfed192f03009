"""Softmax written out."""

from __future__ import annotations

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.softmax import softmax


def test_softmax(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,4]")
    powers = b.op("Exp", b.op("Sub", x, b.op("ReduceMax", x, [1])))
    golden("passes/softmax.txt", text(b.graph(b.op("Div", powers, b.op("ReduceSum", powers, [-2]), name="y")), softmax))


def test_without_the_maximum_and_with_a_reciprocal() -> None:
    b = Builder()
    powers = b.op("Exp", b.input("x", "float32[2,3,4]"))
    graph = b.graph(b.op("Mul", powers, b.op("Reciprocal", b.op("ReduceSum", powers, [-1])), name="y"))
    assert ops(applied(graph, softmax)) == ["Softmax"]


def test_a_sum_over_several_axes_is_something_else() -> None:
    b = Builder()
    powers = b.op("Exp", b.input("x", "float32[2,3,4]"))
    graph = b.graph(b.op("Div", powers, b.op("ReduceSum", powers, [1, 2]), name="y"))
    assert "Softmax" not in ops(applied(graph, softmax))
