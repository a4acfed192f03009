"""Views behind element-wise operators."""

from __future__ import annotations

import numpy as np

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.views import views


def test_views(golden: Golden) -> None:
    b = Builder()
    made = b.op("Neg", b.input("x", "float32[2,12]"))
    view = b.op("Reshape", made, [2, 1, 3, 4])
    scaled = b.op("Mul", b.op("Relu", view), 2.0)
    golden("passes/views.txt", text(b.graph(b.op("Add", scaled, b.weights(2, 1, 3, 4), name="y")), views))


def test_a_value_per_channel_follows_axes_of_extent_one() -> None:
    b = Builder()
    made = b.op("Neg", b.input("x", "float32[2,1,5,3]"))
    view = b.op("Reshape", made, [2, 5, 3])
    assert ops(applied(b.graph(b.op("Add", view, b.weights(3), name="y")), views)) == ["Neg", "Add", "Reshape"]


def test_a_value_per_part_of_an_axis_keeps_the_view_before() -> None:
    b = Builder()
    made = b.op("Neg", b.input("x", "float32[2,15]"))
    view = b.op("Reshape", made, [2, 5, 3])
    assert ops(applied(b.graph(b.op("Add", view, b.weights(3), name="y")), views)) == ["Neg", "Reshape", "Add"]


def test_factors_of_a_requantisation() -> None:
    b = Builder()
    made = b.op("Neg", b.input("x", "int32[1,4,1,4]"))
    view = b.op("Reshape", made, [1, 4, 4])
    factors = np.array([1, 2, 3, 4], np.int32)
    graph = b.graph(b.op("RequantShift", view, factors.reshape(1, 4, 1, 1), factors, div=4, name="y"))
    assert ops(applied(graph, views)) == ["Neg", "RequantShift", "Reshape"]
