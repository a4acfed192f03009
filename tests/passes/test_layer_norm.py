"""Layer normalisation written out."""

from __future__ import annotations

import numpy as np

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.layer_norm import layer_norm


def _normalised(b: Builder, x: str, axes: list[int], *, reciprocal: bool = False) -> str:
    centred = b.op("Sub", x, b.op("ReduceMean", x, axes))
    squares = b.op("Mul", centred, centred) if reciprocal else b.op("Pow", centred, 2.0)
    deviation = b.op("Sqrt", b.op("Add", b.op("ReduceMean", squares, axes), 1e-5))
    if reciprocal:
        return b.op("Mul", centred, b.op("Reciprocal", deviation))
    return b.op("Div", centred, deviation)


def test_layer_norm(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,8]")
    scaled = b.op("Mul", _normalised(b, x, [-1]), b.weights(8))
    golden("passes/layer_norm.txt", text(b.graph(b.op("Add", b.weights(1, 8), scaled, name="y")), layer_norm))


def test_several_axes_and_a_reciprocal() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,8]")
    scaled = b.op("Mul", b.weights(3, 8), _normalised(b, x, [1, 2], reciprocal=True), name="y")
    result = applied(b.graph(scaled), layer_norm)
    assert ops(result) == ["LayerNormalization"]
    assert result.nodes[0].attrs["axis"] == 1


def test_a_scale_per_row_stays_outside() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,8]")
    graph = b.graph(b.op("Mul", _normalised(b, x, [-1]), b.weights(3, 1), name="y"))
    assert ops(applied(graph, layer_norm)) == ["LayerNormalization", "Mul"]


def test_an_axis_before_the_last_is_no_layer_norm() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,8]")
    graph = b.graph(b.op("Add", _normalised(b, x, [1]), np.zeros(8, np.float32), name="y"))
    assert "LayerNormalization" not in ops(applied(graph, layer_norm))
