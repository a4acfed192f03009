"""The cost model of groups against sums over every step."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder
from plan.test_tiling import steps_of, tiled
from plan.tiled import Walk, machine, transfers
from plan.tiled_networks import FUSED, SINGLE
from tilewright.core.graph import Array
from tilewright.core.tiles import Extent, member
from tilewright.machine.parts import Link
from tilewright.machine.target import load_platform
from tilewright.machine.terms import weighted
from tilewright.passes.fuse import fuse
from tilewright.plan.select import select
from tilewright.price import group_cost
from tilewright.price.copies import descriptors, route
from tilewright.price.grid import Cut, Grid, Span
from tilewright.price.tasks import step_names, task
from tilewright.price.tiles import kernel_names, names_of, part_sizes


@pytest.mark.parametrize("cores", [1, 8])
def test_a_group_costs_what_its_steps_do(cores: int) -> None:
    platform = machine(cores)
    for build in (*SINGLE, *FUSED):
        network = build()
        for candidate in tiled(network, steps_of(network), platform)[::4]:
            cost = group_cost(network.graph, platform, network.choices, candidate.group, network.source)
            cycles, moved, macs = Walk(network, platform, candidate.group).cycles(network.source)
            assert cost.cycles == pytest.approx(cycles)
            assert (cost.moved, cost.macs) == (moved, macs)
            assert cost.compute <= cost.cycles


def test_transfers_of_every_rank() -> None:
    rng = np.random.default_rng(3)
    network = SINGLE[0]()
    grid = Grid([member(network.graph, network.graph.nodes[-1], None)], [])
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 6)))
        sizes = [int(rng.integers(1, n + 1)) for n in shape]
        block = tuple(Extent(0, size) for size in sizes)
        for rank in (1, 2, 3):
            dma = Link("dma", ("L2", "L1"), rank, 1.0, 1)
            assert descriptors(grid, tuple(Span(-1, 0, size) for size in sizes), shape, rank) == transfers(
                dma, block, shape
            )


def test_operands_that_lie_in_their_tensors_have_the_strides_of_these() -> None:
    b = Builder()
    graph = b.graph(b.op("Transpose", b.input("x", "int8[1,16,16,32]"), perm=(0, 3, 1, 2)))
    mine = task(graph, graph.nodes[0], select(graph, graph.nodes[0], load_platform("siracusa")).kernel)
    grid = Grid([mine.member], [Cut("D1", 32, (6,))])
    for whole, pixel in (((), 6), (("data",), 32)):
        names = names_of(grid, 0, mine, part_sizes(grid, 0, "D2", 2), whole, "D2")
        assert np.max(names["data_sD3"]) == pixel
        assert np.max(names["data_sPART"]) == 2 * 16 * pixel


def test_the_last_core_begins_where_parts_of_others_end() -> None:
    b = Builder()
    graph = b.graph(b.op("Transpose", b.input("x", "int8[20,16]"), perm=(1, 0)))
    platform = load_platform("siracusa")
    mine = task(graph, graph.nodes[0], select(graph, graph.nodes[0], platform).kernel)
    grid = Grid([mine.member], [])
    for part, apart in ((None, 2 * 16), (3, 3 * 16)):
        names = kernel_names(grid, platform, 0, mine, "D1", part_sizes(grid, 0, "D1", 2), (), part)
        assert np.max(names["data_sPART"]) == apart


@pytest.mark.parametrize(("factor", "loads"), [(np.asarray(3, np.int32), 0), (np.arange(16, dtype=np.int32), 1)])
def test_steps_that_read_elements_are_told_from_others(factor: Array, loads: int) -> None:
    b = Builder()
    total = b.op("Add", b.input("x", "int8[20,16]"), b.input("y", "int8[20,16]"), widen=1)
    platform = load_platform("siracusa")
    graph = fuse(b.graph(b.op("RequantShift", total, factor, np.asarray(0, np.int32), div=64, axis=-1)), platform)
    mine = task(graph, graph.nodes[0], select(graph, graph.nodes[0], platform).kernel)
    assert step_names(platform, mine)["LOADS"] == loads
    assert step_names(platform, mine)["STEPS"] == 1


@pytest.mark.parametrize(("div", "shifts", "full"), [(4, 1, 1), (1024, 1, 0)])
def test_steps_that_give_any_byte_are_told_from_those_that_need_no_limits(div: int, shifts: int, full: int) -> None:
    b = Builder()
    total = b.op("Add", b.input("x", "int8[20,16]"), b.input("y", "int8[20,16]"), widen=1)
    factor, added = np.arange(1, 17, dtype=np.int32), np.arange(16, dtype=np.int32)
    platform = load_platform("siracusa")
    scaled = b.op("RequantShift", total, factor, added, div=div, n_levels=256, signed=1, axis=-1, x_limit=256)
    graph = fuse(b.graph(scaled), platform)
    names = step_names(platform, task(graph, graph.nodes[0], select(graph, graph.nodes[0], platform).kernel))
    assert (names["SHIFTS"], names["BYTES"]) == (shifts, full)


@pytest.mark.parametrize(("chunk", "others"), [(2, 1), (4, 0), (3, 1), (16, 0)])
def test_cores_without_a_part_of_the_work_share_no_unit(chunk: int, others: int) -> None:
    b = Builder()
    graph = b.graph(b.op("MatMul", b.input("x", "float32[16,8]"), np.ones((8, 8), np.float32)))
    platform = load_platform("siracusa")
    mine = task(graph, graph.nodes[0], select(graph, graph.nodes[0], platform).kernel)
    assert mine.kernel is not None
    assert "FPU_OTHERS" in mine.kernel.priced_by
    grid = Grid([mine.member], [])
    split = "ROWS" if "ROWS" in mine.domain.dims else "M"
    names = kernel_names(grid, platform, 0, mine, split, part_sizes(grid, 0, split, chunk), ())
    assert np.max(names["FPU_OTHERS"]) == others
    assert np.max(kernel_names(grid, platform, 0, mine, "", part_sizes(grid, 0, "", 0), ())["FPU_OTHERS"]) == 0
    # Also while nothing is known of terms that ask for it.
    nothing = weighted(mine.kernel.terms, dict.fromkeys(mine.kernel.terms, 0.0))
    mine = replace(mine, kernel=replace(mine.kernel, cycles=nothing))
    names = kernel_names(grid, platform, 0, mine, split, part_sizes(grid, 0, split, chunk), ())
    assert np.max(names["FPU_OTHERS"]) == others


def test_a_route_may_have_two_parts() -> None:
    platform = machine()
    assert [dma.name for dma in route(platform, "L2")] == ["cluster"]
    assert [dma.name for dma in route(platform, "L1")] == ["local"]
    assert route(platform, "L3")
