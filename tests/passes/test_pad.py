"""Padding absorbed by windows."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.pad import pad

AROUND = [0, 0, 1, 0, 0, 0, 0, 2]


def test_pad(golden: Golden) -> None:
    b = Builder()
    padded = b.op("Pad", b.input("x", "float32[1,2,6,6]"), AROUND)
    golden(
        "passes/pad.txt", text(b.graph(b.op("Conv", padded, b.weights(3, 2, 3, 3), pads=(1, 1, 1, 1), name="y")), pad)
    )


def test_one_element_of_padding_is_absorbed() -> None:
    b = Builder()
    padded = b.op("Pad", b.input("x", "float32[1,2,6,6]"), [0, 1], 0.0, [-2])
    assert ops(applied(b.graph(b.op("Conv", padded, b.weights(3, 2, 3, 3), name="y")), pad)) == ["Conv"]


def test_a_zero_point_becomes_that_of_the_convolution() -> None:
    b = Builder()
    padded = b.op("Pad", b.input("x", "int8[1,2,6,6]"), AROUND, np.array(-7, np.int8))
    result = applied(b.graph(b.op("Conv", padded, b.weights(3, 2, 3, 3, dtype="int8"), name="y")), pad)
    assert ops(result) == ["Conv"]
    assert result.nodes[0].attrs["x_zero_point"] == -7


@pytest.mark.parametrize("include", [0, 1])
def test_averages_count_the_zeros(include: int) -> None:
    b = Builder()
    padded = b.op("Pad", b.input("x", "float32[1,2,6,6]"), AROUND)
    graph = b.graph(b.op("AveragePool", padded, kernel_shape=(3, 3), count_include_pad=include, name="y"))
    result = applied(graph, pad)
    assert ops(result) == ["AveragePool"]
    assert result.nodes[0].attrs["count_include_pad"] == 1


def test_a_maximum_takes_minus_infinity() -> None:
    b = Builder()
    padded = b.op("Pad", b.input("x", "float32[1,2,6,6]"), AROUND, float("-inf"))
    assert ops(applied(b.graph(b.op("MaxPool", padded, kernel_shape=(3, 3), name="y")), pad)) == ["MaxPool"]


def test_what_would_mean_something_else_stays() -> None:
    b = Builder()
    x = b.input("x", "float32[1,2,6,6]")
    outputs = [
        b.op("Conv", b.op("Pad", x, AROUND, 1.0), b.weights(3, 2, 3, 3)),
        b.op("Conv", b.op("Pad", x, AROUND, mode="reflect"), b.weights(3, 2, 3, 3)),
        b.op("Conv", b.op("Pad", x, [0, 1, 0, 0, 0, 0, 0, 0]), b.weights(3, 3, 3, 3)),
        b.op("Conv", b.op("Pad", x, AROUND), b.weights(3, 2, 3, 3), auto_pad="SAME_UPPER"),
        b.op("MaxPool", b.op("Pad", x, AROUND), kernel_shape=(3, 3)),
        b.op("AveragePool", b.op("Pad", x, AROUND), kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
        b.op("AveragePool", b.op("Pad", x, AROUND), kernel_shape=(3, 3), strides=(2, 2), ceil_mode=1),
    ]
    assert ops(applied(b.graph(*outputs), pad)).count("Pad") == 7
