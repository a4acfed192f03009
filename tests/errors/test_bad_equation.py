"""error[bad-equation]: a layer's equation does not parse; a caret says where."""

from __future__ import annotations

import pytest

from command_line import refused


@pytest.mark.parametrize(
    ("equation", "expected", "caret"),
    [
        ("O[m][n += A[m]", "expected '+=' or another '[index]'", "O[m][n += A[m]\n      ^"),
        ("O[m] += a[m]", "an operand, which begins with a capital letter", "O[m] += a[m]\n          ^"),
        ("O[m] += A[m] / B[m]", "'*', another '[index]' or the end", "O[m] += A[m] / B[m]\n               ^"),
        ("O[m] += A[x] * B[k], x = 2*m", "'+' and a second dimension", "x = 2*m\n         ^"),
        ("O[m] += A[m] * A[m]", "names an operand twice", ""),
    ],
)
def test_bad_equation(equation: str, expected: str, caret: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("bad-equation", capsys, "map", equation, "--sizes", "M=8,K=8", "--machine", "tpu-like")
    assert expected in text
    assert caret in text


def test_dimension_without_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("unknown-dimension", capsys, "map", "O[m] += A[m][k]", "--sizes", "M=8", "--machine", "tpu-like")
    assert "operand A uses the dimension K, which has no size" in text
    assert "dimensions of this layer: M" in text


def test_order_with_a_dimension_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["map", "O[m] += A[m]", "--sizes", "M=8", "--machine", "tpu-like", "--order", "M,Q"]
    text = refused("unknown-dimension", capsys, *arguments)
    assert "the order names Q, which layer 'layer' does not have" in text


def test_unrolling_along_a_dimension_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["map", "O[m] += A[m]", "--sizes", "M=8", "--machine", "tpu-like", "--unroll", "D7=M:2"]
    text = refused("unknown-dimension", capsys, *arguments)
    assert "array 'tpu-like' has no dimension D7" in text
    assert "dimensions of this array: D1, D2" in text
