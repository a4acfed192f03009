"""Transposed right operands."""

from __future__ import annotations

import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.transposed_matmul import transposed_matmul


def test_transposed_matmul(golden: Golden) -> None:
    b = Builder()
    a, k = b.input("a", "float32[2,3,5,4]"), b.input("k", "float32[2,6,3,4]")
    golden(
        "passes/transposed_matmul.txt",
        text(b.graph(b.op("MatMul", a, b.op("Transpose", k, perm=(0, 2, 3, 1)), name="y")), transposed_matmul),
    )


@pytest.mark.parametrize("turned", [0, 1])
def test_a_swap_of_the_last_axes_vanishes(turned: int) -> None:
    b = Builder()
    a, k = b.input("a", "float32[3,5,6]"), b.input("k", "float32[3,6,4]" if turned else "float32[3,4,6]")
    graph = b.graph(b.op("MatMul", a, b.op("Transpose", k, perm=(0, 2, 1)), transB=turned, name="y"))
    assert ops(applied(graph, transposed_matmul)) == ["MatMul"]


def test_a_move_of_rows_stays() -> None:
    b = Builder()
    a, k = b.input("a", "float32[2,3,5,6]"), b.input("k", "float32[2,6,3,4]")
    graph = b.graph(b.op("MatMul", a, b.op("Transpose", k, perm=(0, 2, 1, 3)), name="y"))
    assert ops(applied(graph, transposed_matmul)) == ["Transpose", "MatMul"]
