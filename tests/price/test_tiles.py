"""The cost model of groups against sums over every step."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from plan.test_tiling import steps_of, tiled
from plan.tiled import Walk, machine, transfers
from plan.tiled_networks import FUSED, SINGLE
from tilewright.core.tiles import Extent, member
from tilewright.machine.parts import Link
from tilewright.machine.target import load_platform
from tilewright.plan.select import select
from tilewright.price import group_cost
from tilewright.price.copies import descriptors, route
from tilewright.price.grid import Cut, Grid, Span
from tilewright.price.tiles import names_of, part_sizes, task


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
            dma = Link("dma", ("L2", "L1"), 1, 1.0, rank)
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


def test_a_route_may_have_two_parts() -> None:
    platform = machine()
    assert [dma.name for dma in route(platform, "L2")] == ["cluster"]
    assert [dma.name for dma in route(platform, "L1")] == ["local"]
    assert route(platform, "L3")
