"""What a point of a loop nest costs where strides, or the ends of loops, are known at run time only."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest

from passes.build import Builder
from tilewright.core.graph import Graph
from tilewright.cost.grid import Cut, Grid
from tilewright.cost.nests import nest_cycles
from tilewright.cost.tiles import part_sizes, task


def points(graph: Graph, cuts: list[Cut], kind: str, whole: Collection[str] = ()) -> float:
    """How many operations of a kind the first tile has."""
    mine = task(graph, graph.nodes[-1], None)
    grid = Grid([mine.member], cuts)
    sizes = part_sizes(grid, 0, "", 0)
    ranges = grid.projection.ranges[0]
    found = nest_cycles(grid, ranges, mine.call, mine.domain, mine.nest, sizes, "", whole, {kind: 1.0})
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


@pytest.mark.parametrize(("cuts", "compared"), [([], 0), ([Cut("D1", 8, (4,))], 1)])
def test_choices_by_index_split_loops_whose_ends_are_known(cuts: list[Cut], compared: int) -> None:
    build = Builder()
    x, value = build.input("x", "float32[4,6]"), 1.0
    graph = build.graph(build.op("Pad", x, np.array([0, 1, 0, 1]), value))
    assert points(graph, cuts, "split") == compared * 4 * 4


def test_tiles_have_other_origins_than_a_result_in_its_tensor() -> None:
    graph = added("float32[4,6]", "float32[4,6]")
    assert points(graph, [Cut("D0", 4, (2,))], "apart", {"Y"}) == 2 * 2 * 6
    assert points(graph, [Cut("D0", 4, (2,))], "apart", {"A", "B", "Y"}) == 0
    assert points(graph, [], "apart", {"Y"}) == 0
