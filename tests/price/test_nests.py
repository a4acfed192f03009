"""What a point of a loop nest costs where strides, or the ends of loops, are known at run time only."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest

from passes.build import Builder
from tilewright.core.graph import Graph
from tilewright.price.grid import Cut, Grid
from tilewright.price.nests import nest_cycles
from tilewright.price.tiles import part_sizes, task


def points(
    graph: Graph,
    cuts: list[Cut],
    kind: str,
    whole: Collection[str] = (),
    shared: Collection[str] = (),
    split: str = "",
) -> float:
    """How many operations of a kind the first tile has, or of one that is `split` so that a core has one turn of it."""
    mine = task(graph, graph.nodes[-1], None)
    grid = Grid([mine.member], cuts)
    sizes = part_sizes(grid, 0, split, 1)
    ranges = grid.projection.ranges[0]
    found = nest_cycles(grid, ranges, mine.call, mine.domain, mine.nest, sizes, split, whole, {kind: 1.0}, shared)
    return float(np.max(found))


def added(*shapes: str) -> Graph:
    build = Builder()
    return build.graph(build.op("Add", *(build.input(f"x{n}", shape) for n, shape in enumerate(shapes))))


def test_operands_in_buffers_have_the_strides_of_the_result() -> None:
    assert points(added("float32[4,6]", "float32[4,6]"), [Cut("D1", 6, (3,))], "skew") == 0


def test_an_operand_that_lies_in_its_tensor_has_others() -> None:
    graph = added("float32[4,6]", "float32[4,6]")
    assert points(graph, [Cut("D1", 6, (3,))], "skew", {"A"}) == 4 * 3
    assert points(graph, [Cut("D0", 4, (2,))], "skew", {"A"}) == 0


def test_so_has_one_that_is_spread() -> None:
    assert points(added("float32[4,6]", "float32[6]"), [], "skew") == 4 * 6


@pytest.mark.parametrize(("size", "counted"), [(3, 0), (4, 1)])
def test_sums_along_strides_that_differ_between_tiles(size: int, counted: int) -> None:
    build = Builder()
    graph = build.graph(build.op("GlobalAveragePool", build.input("x", "float32[1,6,4,4]")))
    assert points(graph, [Cut("C", 6, (size,))], "odd") == 0
    build = Builder()
    graph = build.graph(build.op("ReduceSum", build.input("x", "float32[8,6]"), np.array([0]), keepdims=0))
    assert points(graph, [Cut("D1", 6, (size,))], "odd") == counted * 8 * size


@pytest.mark.parametrize(("cuts", "points_of_tile"), [([], 4 * 8), ([Cut("D1", 8, (4,))], 4 * 4)])
def test_borders_are_loops_of_their_own_so_that_no_point_is_compared(cuts: list[Cut], points_of_tile: int) -> None:
    build = Builder()
    graph = build.graph(build.op("Pad", build.input("x", "float32[4,6]"), np.array([0, 1, 0, 1]), 1.0))
    assert points(graph, cuts, "load") == points(graph, cuts, "point") == points_of_tile
    assert points(graph, cuts, "choose") == points(graph, cuts, "guard") == 0


def test_tiles_have_other_origins_than_a_result_in_its_tensor() -> None:
    graph = added("float32[4,6]", "float32[4,6]")
    assert points(graph, [Cut("D0", 4, (2,))], "apart", {"Y"}) == 2 * 2 * 6
    assert points(graph, [Cut("D0", 4, (2,))], "apart", {"A", "B", "Y"}) == 0
    assert points(graph, [], "apart", {"Y"}) == 0


def test_loops_with_ends_of_a_tile_need_addresses_within_others() -> None:
    graph = added("float32[4,6]", "float32[4,6]")
    assert points(graph, [Cut("D1", 6, (3,))], "cut") == 2 * 4 * 3
    assert points(graph, [Cut("D0", 4, (2,))], "cut") == 0
    assert points(graph, [Cut("D1", 6, (3,))], "cut", shared={"A"}) == 4 * 3
    assert points(graph, [], "in place", shared={"A"}) == -4 * 6


def test_each_part_of_a_result_reads_one_operand() -> None:
    build = Builder()
    a, b = build.input("a", "float32[4,6]"), build.input("b", "float32[4,2]")
    assert points(build.graph(build.op("Concat", a, b, axis=1)), [], "load") == 4 * 8


def test_operands_that_stay_the_same_are_loaded_before_the_innermost_loop() -> None:
    assert points(added("float32[4,6]", "float32[4,1]"), [], "steady") == -4 * 6
    assert points(added("float32[4,6]", "float32[1,6]"), [], "steady") == 0


def test_cores_meet_at_bytes() -> None:
    bytes_, words = added("int8[4,6]", "int8[4,6]"), added("float32[4,6]", "float32[4,6]")
    assert points(bytes_, [], "meet bytes", split="D0") == 3 * 6
    assert points(bytes_, [], "meet bytes") == points(words, [], "meet bytes", split="D0") == 0


@pytest.mark.parametrize(("terms", "axis", "counted"), [(8, 0, 1), (9, 0, 0), (8, 1, 0)])
def test_short_sums_across_rows_have_an_address_for_each_term(terms: int, axis: int, counted: int) -> None:
    build = Builder()
    shape = (terms, 6) if axis == 0 else (6, terms)
    x = build.input("x", f"float32[{shape[0]},{shape[1]}]")
    graph = build.graph(build.op("ReduceSum", x, np.array([axis]), keepdims=0))
    assert points(graph, [], "across") == counted * terms * 6


def test_the_second_of_two_limits_is_seldom_compared() -> None:
    build = Builder()
    graph = build.graph(build.op("Clip", build.input("x", "float32[4,6]"), 0.0, 6.0))
    assert points(graph, [], "choose") == points(graph, [], "either") == 4 * 6


def test_integers_become_floats() -> None:
    build = Builder()
    x, scale, zero = build.input("x", "int8[4,6]"), np.array(0.1, np.float32), np.array(3, np.int8)
    graph = build.graph(build.op("DequantizeLinear", x, scale, zero))
    assert points(graph, [], "real") == 4 * 6


def test_sums_of_two_are_written_out() -> None:
    build = Builder()
    graph = build.graph(build.op("ReduceSum", build.input("x", "float32[2,6]"), np.array([0]), keepdims=0))
    assert points(graph, [], "term") == 0
    assert points(graph, [], "load") == 2 * 6


def test_what_lies_outside_is_left_out() -> None:
    build = Builder()
    x = build.input("x", "float32[1,1,4,4]")
    graph = build.graph(build.op("MaxPool", x, kernel_shape=(3, 3), pads=(1, 1, 1, 1)))
    assert points(graph, [], "term") == pytest.approx(10 * 10)
