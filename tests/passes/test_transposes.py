"""Transposes merged, moved and removed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.core.graph import Graph
from tilewright.machine.target import Target
from tilewright.passes import layout, simplify, transposes

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
Form = Callable[[Builder, str], str]


def _laid_out(graph: Graph, machine: Target) -> Graph:
    return simplify(transposes(layout(graph, machine), machine), machine)


def test_transposes(golden: Golden) -> None:
    """A residual block: of six Transposes the one of the input is left, and one of the output."""
    b = Builder()
    x = b.input("x", "float32[1,2,6,6]")
    first = b.op("Relu", b.op("Conv", x, b.weights(4, 2, 3, 3), b.weights(4), pads=(1, 1, 1, 1)))
    second = b.op("Mul", b.op("Conv", first, b.weights(4, 4, 3, 3), pads=(1, 1, 1, 1)), b.weights(4, 1, 1))
    golden("passes/transposes.txt", text(b.graph(b.op("Relu", b.op("Add", first, second), name="y")), _laid_out))


def test_equal_shapes_are_no_inverse_pair() -> None:
    b = Builder()
    x = b.input("x", "float32[3,3,3]")
    turned = b.op("Transpose", b.op("Transpose", x, perm=(1, 2, 0)), perm=(1, 2, 0), name="y")
    result = applied(b.graph(turned), transposes)
    assert ops(result) == ["Transpose"]
    assert result.nodes[0].attrs["perm"] == (2, 0, 1)


def test_no_order_is_the_reverse_one() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,4]")
    result = applied(b.graph(b.op("Transpose", b.op("Abs", x), perm=(), name="y")), transposes)
    assert ops(result) == ["Abs", "Transpose"]


def test_an_inverse_pair_at_the_border_is_an_identity() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,4]")
    graph = b.graph(b.op("Transpose", b.op("Transpose", x, perm=(1, 2, 0)), perm=(2, 0, 1), name="y"))
    assert ops(applied(graph, transposes)) == ["Identity"]


THROUGH: dict[str, Form] = {
    "binary": lambda b, x: b.op("Add", b.weights(3, 1, 1), x),
    "scalar": lambda b, x: b.op("Mul", x, 2.0),
    "slope": lambda b, x: b.op("PRelu", x, b.weights(3, 1, 1)),
    "clip": lambda b, x: b.op("Clip", x, 0.0, 6.0),
    "where": lambda b, x: b.op("Where", b.op("Greater", x, b.weights(5)), x, b.weights(1)),
    "softmax": lambda b, x: b.op("Softmax", x, axis=1),
    "log softmax": lambda b, x: b.op("LogSoftmax", x, axis=-1),
    "concat": lambda b, x: b.op("Concat", x, b.op("Exp", x), b.weights(2, 1, 4, 5), axis=1),
    "pad": lambda b, x: b.op("Pad", x, [0, 1, 0, 2, 0, 0, 3, 0]),
    "pad some axes": lambda b, x: b.op("Pad", x, [1, 2, 0, 1], "", [-1, 1], mode="reflect"),
    "slice": lambda b, x: b.op("Slice", x, [1, 4], [3, 0], [1, -1], [1, -2]),
    "slice without axes": lambda b, x: b.op("Slice", x, [0, 1], [1, 3]),
    "mean": lambda b, x: b.op("ReduceMean", x, [-3]),
    "tile": lambda b, x: b.op("Tile", x, [1, 2, 1, 3]),
    "gather": lambda b, x: b.op("Gather", x, np.array([2, 0]), axis=1),
    "resize": lambda b, x: b.op("Resize", x, "", np.array([1, 1, 2, 3], np.float32)),
    "largest": lambda b, x: b.op("Cast", b.op("ArgMax", x, axis=2), to=1),
}


@pytest.mark.parametrize("form", THROUGH)
def test_through(form: str) -> None:
    b = Builder()
    x = b.op("Transpose", b.input("x", "float32[2,4,5,3]"), perm=FIRST)
    result = applied(b.graph(b.op("Transpose", THROUGH[form](b, x), perm=LAST, name="y")), transposes)
    assert "Transpose" not in ops(result)


def test_axes_that_go_away() -> None:
    b = Builder()
    x = b.op("Transpose", b.input("x", "float32[2,4,5,3]"), perm=FIRST)
    total = b.op("ReduceSum", x, [2], keepdims=0)
    picked = b.op("Gather", x, np.array(1), axis=2)
    outputs = [b.op("Transpose", name, perm=(0, 2, 1)) for name in (total, picked)]
    assert "Transpose" not in ops(applied(b.graph(*outputs), transposes))


def test_parts_of_a_split() -> None:
    b = Builder()
    x = b.op("Transpose", b.input("x", "float32[2,4,5,3]"), perm=FIRST)
    parts = b.ops("Split", x, np.array([1, 2]), names=("", "second"), axis=1)
    graph = b.graph(*(b.op("Transpose", part, perm=LAST) for part in parts))
    assert ops(applied(graph, transposes)) == ["Split"]


@pytest.mark.parametrize("shape", [(3,), (3, 1, 1), (1, 3, 1, 1)])
def test_factors_of_a_requantisation_follow_their_channels(shape: tuple[int, ...]) -> None:
    b = Builder()
    # Height and channels have one extent, so that a wrong axis would go unnoticed by shapes.
    x = b.op("Transpose", b.input("x", "int32[2,3,5,3]"), perm=FIRST)
    factors = np.array([1, 20, 3], np.int32)
    scaled = b.op("RequantShift", x, factors.reshape(shape), factors, div=4)
    assert ops(applied(b.graph(b.op("Transpose", scaled, perm=LAST, name="y")), transposes)) == ["RequantShift"]


def test_scales_per_channel() -> None:
    b = Builder()
    x = b.op("Transpose", b.input("x", "int8[2,4,5,3]"), perm=FIRST)
    real = b.op("DequantizeLinear", x, np.array([0.5, 1, 2], np.float32), axis=1)
    assert ops(applied(b.graph(b.op("Transpose", real, perm=LAST, name="y")), transposes)) == ["DequantizeLinear"]


def test_scales_of_blocks() -> None:
    """They have all axes, two of which are as long here, so that a wrong order would go unnoticed by shapes."""
    b = Builder()
    x = b.op("Transpose", b.input("x", "int8[2,4,6]"), perm=(0, 2, 1))
    scales = np.abs(b.weights(2, 6, 2)) + np.float32(0.1)
    real = b.op("DequantizeLinear", x, scales, axis=2, block_size=2)
    assert ops(applied(b.graph(b.op("Transpose", real, perm=(0, 2, 1), name="y")), transposes)) == ["DequantizeLinear"]
    table = b.op("Transpose", b.input("z", "int8[3,2]"), perm=(1, 0))
    applied(
        b.graph(b.op("DequantizeLinear", table, np.abs(b.weights(2, 3)) + np.float32(0.1), axis=1, block_size=1)),
        transposes,
    )


def test_a_cache_keeps_its_order() -> None:
    """Whatever is appended is transposed, even where that is as much as the cache."""
    b = Builder()
    rows = b.op("Transpose", b.input("rows", "int8[3,1,3]"), perm=(1, 2, 0))
    grown = b.op("Append", b.input("cache", "int8[1,3,3]"), rows, np.asarray(0, np.int32), axis=2)
    assert ops(applied(b.graph(grown), transposes)) == ["Transpose", "Append"]


RESHAPES: dict[str, tuple[list[int], tuple[int, ...], list[str]]] = {
    "merged pixels": ([2, 3, 20], (0, 2, 1), ["Reshape"]),
    "a new axis": ([2, 3, 4, 1, 5], (0, 2, 3, 4, 1), ["Reshape"]),
    "a split axis": ([2, 3, 2, 2, 5], (0, 2, 3, 4, 1), ["Reshape"]),
    "channels with height": ([2, 12, 5], (0, 2, 1), ["Transpose", "Reshape", "Transpose"]),
}


@pytest.mark.parametrize("form", RESHAPES)
def test_reshapes(form: str) -> None:
    shape, perm, expected = RESHAPES[form]
    b = Builder()
    x = b.op("Transpose", b.input("x", "float32[2,4,5,3]"), perm=FIRST)
    graph = b.graph(b.op("Transpose", b.op("Reshape", x, shape), perm=perm, name="y"))
    assert ops(applied(graph, transposes)) == expected


@pytest.mark.parametrize("shape", ["float32[1,1,4,5]", "float32[1,3,1,1]"])
def test_axes_of_extent_one_move_for_free(shape: str) -> None:
    b = Builder()
    graph = b.graph(b.op("Transpose", b.input("x", shape), perm=LAST, name="y"))
    assert ops(applied(graph, transposes)) == ["Reshape"]


def test_rows_of_a_matrix_are_permuted_instead() -> None:
    b = Builder()
    x = b.op("Transpose", b.op("Relu", b.input("x", "float32[2,4,5,3]")), perm=FIRST)
    flat = b.op("Mul", b.op("Reshape", x, [2, 60]), 2.0)
    graph = b.graph(b.op("MatMul", flat, b.weights(60, 7), name="y"))
    assert "Transpose" not in ops(applied(graph, transposes))


def test_a_transpose_stays_where_moving_it_costs_more() -> None:
    b = Builder()
    x = b.op("Transpose", b.input("x", "float32[3,2,1]"), perm=(2, 1, 0))
    graph = b.graph(b.op("Add", x, b.input("z", "float32[9,2,3]"), name="y"))
    assert ops(applied(graph, transposes)) == ["Transpose", "Add"]


def test_wide_results_are_passed_where_they_are_narrowed_soon() -> None:
    b = Builder()
    x = b.op("Transpose", b.input("x", "int8[2,4,5,3]"), perm=FIRST)
    branches = [b.op("Mul", b.op("Relu", x), b.weights(5, dtype="int8"), widen=1) for _ in range(2)]
    total = b.op("Add", *branches)
    one = np.array(1, np.int32)
    result = applied(b.graph(b.op("RequantShift", total, one, one, div=16, name="y")), transposes)
    assert ops(result) == ["Relu", "Mul", "Relu", "Mul", "Add", "RequantShift", "Transpose"]


def test_a_mixed_sum_turns_where_the_transposes_below_vanish() -> None:
    b = Builder()
    x = b.op("Transpose", b.input("x", "float32[2,4,5,3]"), perm=FIRST)
    total = b.op("Relu", b.op("Add", x, b.input("z", "float32[2,3,4,5]")))
    graph = b.graph(b.op("Transpose", total, perm=LAST, name="y"))
    assert ops(applied(graph, transposes)).count("Transpose") == 1
