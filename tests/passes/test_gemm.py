"""Gemm as MatMul and Add."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.gemm import gemm


def test_gemm(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[3,5]")
    hidden = b.op("Gemm", x, b.weights(4, 5), b.weights(4), transB=1, alpha=0.5, beta=2.0)
    golden("passes/gemm.txt", text(b.graph(b.op("Gemm", hidden, b.weights(4, 2), name="y")), gemm))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"transB": 1}, ["MatMul", "Add"]),
        ({"transA": 1, "transB": 1}, ["Transpose", "MatMul", "Add"]),
        ({"transB": 1, "alpha": 0.3}, ["MatMul", "Mul", "Add"]),
        ({"transB": 1, "beta": 0.3}, ["MatMul", "Mul", "Add"]),
        ({"transB": 1, "beta": 0.0}, ["MatMul"]),
    ],
)
def test_runtime_operands(attributes: dict[str, float], expected: list[str]) -> None:
    b = Builder()
    a = b.input("a", "float32[5,3]" if "transA" in attributes else "float32[3,5]")
    y = b.op("Gemm", a, b.input("b", "float32[4,5]"), b.input("c", "float32[4]"), name="y", **attributes)
    assert ops(applied(b.graph(y), gemm)) == expected


def test_integers_fold_exactly() -> None:
    b = Builder()
    a = b.input("a", "int8[3,5]")
    y = b.op("Gemm", a, b.weights(5, 4, dtype="int8"), b.weights(4, dtype="int8"), alpha=3.0, beta=-2.0, name="y")
    assert ops(applied(b.graph(y), gemm)) == ["MatMul", "Add"]


def test_a_factor_that_does_not_fit_the_weights_is_applied_behind() -> None:
    b = Builder()
    weights = np.full((5, 4), 100, np.int8)
    y = b.op("Gemm", b.input("a", "int8[3,5]"), weights, alpha=3.0, name="y")
    assert ops(applied(b.graph(y), gemm)) == ["MatMul", "Mul"]
