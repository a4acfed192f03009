"""How often operations occur in loop nests."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from tilewright.core.graph import Graph
from tilewright.price.grid import Cut, Grid
from tilewright.price.nests import nest_cycles
from tilewright.price.tasks import task
from tilewright.price.tiles import part_sizes


def points(graph: Graph, cuts: list[Cut], kind: str, split: str = "") -> float:
    """How many operations of a kind the first tile has, or of one that is `split` so that a core has one turn of it."""
    mine = task(graph, graph.nodes[-1], None)
    grid = Grid([mine.member], cuts)
    sizes = part_sizes(grid, 0, split, 1)
    ranges = grid.projection.ranges[0]
    return float(np.max(nest_cycles(grid, ranges, mine.call, mine.domain, mine.nest, sizes, split, {kind: 1.0})))


def added(*shapes: str) -> Graph:
    build = Builder()
    return build.graph(build.op("Add", *(build.input(f"x{n}", shape) for n, shape in enumerate(shapes))))


def test_loops_that_all_operands_walk_as_one_start_once() -> None:
    assert points(added("float32[4,6]", "float32[4,6]"), [], "loop") == 1
    assert points(added("float32[4,6]", "float32[6]"), [], "loop") == 1 + 4
    assert points(added("float32[4,6]", "float32[4,6]"), [Cut("D1", 6, (3,))], "loop") == 1 + 4


@pytest.mark.parametrize(("cuts", "points_of_tile"), [([], 4 * 8), ([Cut("D1", 8, (4,))], 4 * 4)])
def test_borders_are_loops_of_their_own_so_that_no_point_is_compared(cuts: list[Cut], points_of_tile: int) -> None:
    build = Builder()
    graph = build.graph(build.op("Pad", build.input("x", "float32[4,6]"), np.array([0, 1, 0, 1]), 1.0))
    assert points(graph, cuts, "copy") == points_of_tile
    assert points(graph, cuts, "choose") == points(graph, cuts, "guard") == points(graph, cuts, "load") == 0


@pytest.mark.parametrize(("pads", "starts"), [((0, 1, 0, 1), 1 + 4 * 3), ((1, 0, 1, 0), 3), ((0, 0, 0, 2), 1 + 4 * 2)])
def test_borders_are_loops_that_start(pads: tuple[int, ...], starts: int) -> None:
    build = Builder()
    graph = build.graph(build.op("Pad", build.input("x", "float32[4,6]"), np.array(pads), 1.0))
    assert points(graph, [], "loop") == starts


def test_each_part_of_a_result_reads_one_operand() -> None:
    build = Builder()
    a, b = build.input("a", "float32[4,6]"), build.input("b", "float32[4,2]")
    assert points(build.graph(build.op("Concat", a, b, axis=1)), [], "copy") == 4 * 8


def test_operands_that_stay_the_same_are_loaded_before_the_innermost_loop() -> None:
    assert points(added("float32[4,6]", "float32[4,1]"), [], "load") == 4 * 6 + 4
    assert points(added("float32[4,6]", "float32[1,6]"), [], "load") == 2 * 4 * 6


def test_what_is_copied_and_what_is_done_to_it() -> None:
    build = Builder()
    copied = build.op("Transpose", build.input("x", "float32[4,6]"), perm=(1, 0))
    assert points(build.graph(copied), [], "copy") == 4 * 6
    build = Builder()
    negated = build.op("Neg", build.input("x", "float32[4,6]"))
    graph = build.graph(negated)
    assert points(graph, [], "copy") == 0
    assert points(graph, [], "load") == points(graph, [], "point") == 4 * 6


def test_cores_meet_at_what_they_share() -> None:
    graph = added("float32[4,6]", "float32[4,6]")
    assert points(graph, [], "meet", split="D0") == 3 * 6
    assert points(graph, [], "meet real", split="D0") == 6
    assert points(graph, [], "meet divide", split="D0") == points(graph, [], "meet") == 0


def test_the_second_of_two_limits_is_seldom_compared() -> None:
    build = Builder()
    graph = build.graph(build.op("Clip", build.input("x", "int32[4,6]"), np.array(0, np.int32), np.array(6, np.int32)))
    assert points(graph, [], "choose") == points(graph, [], "either") == 4 * 6


def test_integers_become_floats() -> None:
    build = Builder()
    x, scale, zero = build.input("x", "int8[4,6]"), np.array(0.1, np.float32), np.array(3, np.int8)
    graph = build.graph(build.op("DequantizeLinear", x, scale, zero))
    assert points(graph, [], "real") == 4 * 6


@pytest.mark.parametrize("terms", [1, 2])
def test_sums_of_two_are_written_out(terms: int) -> None:
    build = Builder()
    graph = build.graph(build.op("ReduceSum", build.input("x", f"float32[{terms},6]"), np.array([0]), keepdims=0))
    assert points(graph, [], "term") == 0
    assert points(graph, [], "load") == terms * 6
    assert points(graph, [], "real plain") == terms * 6


def test_what_lies_outside_is_left_out() -> None:
    build = Builder()
    x = build.input("x", "float32[1,1,4,4]")
    graph = build.graph(build.op("MaxPool", x, kernel_shape=(3, 3), pads=(1, 1, 1, 1)))
    assert points(graph, [], "term") == pytest.approx(10 * 10)
    assert points(graph, [], "end") == 2 * 4 * 4


def test_an_index_is_worked_out_for_all_results_that_it_selects() -> None:
    build = Builder()
    graph = build.graph(build.op("Gather", build.input("x", "float32[5,6]"), build.input("i", "int32[3]"), axis=0))
    assert points(graph, [], "lookup") == 3 * 6
    assert points(graph, [], "load") == 3


def test_numbers_that_are_known_are_computed_before_loops() -> None:
    build = Builder()
    x, one, zero = build.input("x", "int8[4,6]"), np.array(0.1, np.float32), np.array(3, np.int8)
    graph = build.graph(build.op("QLinearMul", x, one, zero, x, one, zero, one, zero))
    assert points(graph, [], "real divide") == 0


def test_floats_are_divided_by_one_number_as_by_any() -> None:
    build = Builder()
    x, one, zero = build.input("x", "int8[4,6]"), np.array(0.1, np.float32), np.array(3, np.int8)
    graph = build.graph(build.op("QLinearAdd", x, one, zero, x, one, zero, one, zero))
    assert points(graph, [], "real divide") == 4 * 6
