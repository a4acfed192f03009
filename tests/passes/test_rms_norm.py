"""Root-mean-square normalisation written out."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.rms_norm import rms_norm


def _root(b: Builder, x: str, *, power: bool = False) -> str:
    squares = b.op("Pow", x, 2.0) if power else b.op("Mul", x, x)
    return b.op("Sqrt", b.op("Add", b.op("ReduceMean", squares, [-1]), 1e-6))


def test_rms_norm(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,8]")
    graph = b.graph(b.op("Mul", b.weights(8), b.op("Div", x, _root(b, x)), name="y"))
    golden("passes/rms_norm.txt", text(graph, rms_norm))


@pytest.mark.parametrize("form", ["Reciprocal", "Div"])
def test_reciprocals(form: str) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,8]")
    root = _root(b, x, power=True)
    inverse = b.op("Reciprocal", root) if form == "Reciprocal" else b.op("Div", 1.0, root)
    graph = b.graph(b.op("Mul", b.op("Mul", x, inverse), b.input("w", "float32[8]"), name="y"))
    assert ops(applied(graph, rms_norm)) == ["RMSNormalization"]


def test_a_mean_by_products_with_ones() -> None:
    b = Builder()
    x = b.input("x", "float32[4,8]")
    total = b.op("MatMul", b.op("Pow", x, 2.0), np.ones((8, 1), np.float32))
    mean = b.op("Mul", total, np.full((4, 1), 1 / 8, np.float32))
    root = b.op("Sqrt", b.op("Add", mean, np.full((4, 1), 1e-6, np.float32)))
    spread = b.op("MatMul", root, np.ones((1, 8), np.float32))
    graph = b.graph(b.op("Mul", b.op("Div", x, spread), np.array([1.5], np.float32), name="y"))
    assert ops(applied(graph, rms_norm)) == ["RMSNormalization"]


def test_a_product_with_other_numbers_is_no_mean() -> None:
    b = Builder()
    x = b.input("x", "float32[4,8]")
    total = b.op("MatMul", b.op("Mul", x, x), np.full((8, 1), 1 / 7, np.float32))
    graph = b.graph(b.op("Div", x, b.op("Sqrt", b.op("Add", total, 1e-6)), name="y"))
    assert "RMSNormalization" not in ops(applied(graph, rms_norm))
