"""Requantisations are told how large their inputs get."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder, applied
from tilewright.core.graph import Array
from tilewright.passes.requant_limits import requant_limits

SCALE = (np.asarray(3, np.int32), np.asarray(0, np.int32))


def limit_of(b: Builder, x: str) -> int | None:
    graph = applied(b.graph(b.op("RequantShift", x, *SCALE, div=64)), requant_limits)
    found = graph.nodes[-1].attrs.get("x_limit")
    assert found is None or isinstance(found, int)
    return found


def test_known_weights_count_as_they_are() -> None:
    b = Builder()
    weights = np.asarray([[3, -100], [4, 1]], np.int8)
    assert limit_of(b, b.op("MatMul", b.input("x", "int8[5,2]"), weights)) == 128 * 101


def test_columns_have_factors_of_their_own() -> None:
    """The largest sum and the largest factor need not meet."""
    b = Builder()
    weights, mul = np.asarray([[3, -100], [4, 1]], np.int8), np.asarray([1000, 7], np.int32)
    x = b.op("MatMul", b.input("x", "int8[5,2]"), weights)
    scaled = b.op("RequantShift", x, mul, np.asarray([-5, 9], np.int32), div=64, axis=-1)
    graph = applied(b.graph(scaled), requant_limits)
    assert graph.nodes[-1].attrs["total_limit"] == 128 * 7 * 1000 + 5
    assert graph.nodes[-1].attrs["x_limit"] == 128 * 101


def test_factors_that_are_picked_are_no_larger_than_their_table() -> None:
    """A row of a table of bytes, with a factor of its own."""
    b = Builder()
    table, factors = np.asarray([[5, -7], [100, 3]], np.int8), np.asarray([[900], [-4000]], np.int32)
    index = b.input("index", "int32[3]")
    rows, mul = (b.op("Gather", values, index, axis=0) for values in (table, factors))
    graph = applied(b.graph(b.op("RequantShift", rows, mul, SCALE[1], div=64, n_levels=1 << 16)), requant_limits)
    assert graph.nodes[-1].attrs["x_limit"] == 100
    assert graph.nodes[-1].attrs["total_limit"] == 100 * 4000


@pytest.mark.parametrize(("kind", "limit"), [("int8", 7 * 128 * 128), ("uint8", 7 * 255 * 255)])
def test_products_of_activations(kind: str, limit: int) -> None:
    b = Builder()
    assert limit_of(b, b.op("MatMul", b.input("x", f"{kind}[5,7]"), b.input("y", f"{kind}[7,3]"))) == limit


def test_zero_points_count() -> None:
    b = Builder()
    x, y = b.input("x", "int8[5,7]"), b.input("y", "int8[7,3]")
    assert limit_of(b, b.op("MatMul", x, y, a_zero_point=-3, b_zero_point=5)) == 7 * 131 * 133


def test_convolutions_with_a_bias() -> None:
    b = Builder()
    weights: Array = np.full((4, 3, 3, 3), -2, np.int8)
    bias = np.asarray([0, -50, 7, 7], np.int32)
    assert limit_of(b, b.op("Conv", b.input("x", "uint8[1,3,6,6]"), weights, bias)) == 255 * 27 * 2 + 50


def test_sums_and_products() -> None:
    b = Builder()
    x = b.input("x", "int8[4]")
    doubled = b.op("Add", x, x, widen=1)
    assert limit_of(b, b.op("Mul", doubled, np.asarray(-9, np.int32), widen=1)) == 256 * 9


def test_a_type_limits_as_well() -> None:
    b = Builder()
    x = b.input("x", "int32[4]")
    assert limit_of(b, b.op("Mul", x, x)) is None


def test_a_closer_promise_stays() -> None:
    b = Builder()
    x = b.op("Add", b.input("x", "int8[4]"), b.input("y", "int8[4]"), widen=1)
    graph = applied(b.graph(b.op("RequantShift", x, *SCALE, div=64, x_limit=5)), requant_limits)
    assert graph.nodes[-1].attrs["x_limit"] == 5


def test_levels_limit_what_comes_out() -> None:
    b = Builder()
    scaled = b.op("RequantShift", b.input("x", "int32[4]"), *SCALE, div=64, n_levels=1 << 24)
    assert limit_of(b, b.op("Add", scaled, b.input("y", "int16[4]"), widen=1)) == (1 << 23) + (1 << 15)
