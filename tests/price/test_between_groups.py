"""What groups wait for because of each other: loads for later ones, copies from a slow home, and code that is cold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from plan.tiled import SCRATCHPAD
from plan.tiled_networks import SINGLE
from tilewright.core.parts import Dma
from tilewright.core.plan import Group, Place, Stage, TileBuffer, Work
from tilewright.core.tiles import TileLoop
from tilewright.price.slow import Brought, fetched
from tilewright.price.tiles import Cost
from tilewright.price.timeline import held_up, repeated
from tilewright.price.transfers import first_work

PLATFORM = replace(SCRATCHPAD, dmas={"cluster": Dma("cluster", ("L2", "L1"), 20, 8.0, 3, issue=30)}, operations={})


def group(*, steps: int = 1, loads: int = 0, early: int = 1, works: int = 1, cycles: float = 0.0) -> Group:
    """A group that loads so many bytes so many groups before it runs."""
    buffers = (TileBuffer("x", 0, loads, 1, early=early),) if loads else ()
    return Group(tuple(Work(0, {}) for _ in range(works)), (TileLoop("M", 1, steps),), buffers, {}, cycles)


def cost(compute: float, *, transfers: float = 0.0, beside: float = 0.0, behind: float = 0.0) -> Cost:
    return Cost(max(compute, transfers), 0, 0, compute, transfers, beside, behind)


def waits(groups: Sequence[Group], costs: Sequence[Cost], **operations: float) -> list[float]:
    return held_up(replace(PLATFORM, operations=operations), groups, costs, lambda _number, _buffer: "L2")


def test_a_load_for_the_next_group_is_hidden_where_there_is_time() -> None:
    assert waits([group(), group(loads=800)], [cost(1000, beside=1000), cost(10)]) == [0, 0]
    # 20 cycles of setup and 100 of bytes.
    assert waits([group(), group(loads=800)], [cost(50, beside=50), cost(10)]) == [70, 0]


def test_a_load_from_two_groups_before_waits_for_both() -> None:
    assert waits([group(), group(), group(loads=800, early=2)], [cost(50, beside=50), cost(50), cost(9)]) == [0, 20, 0]


def test_cores_wait_for_who_starts_loads() -> None:
    later = [group(loads=8, early=1 + n) for n in range(3)]
    # Three starts of 30 cycles beside 40 of work, in which the loads themselves take 3 x 30.
    assert waits([group(), *later], [cost(40, beside=40), *(cost(500, beside=500) for _ in later)])[0] == 50


def test_who_sees_what_has_arrived_does_so_beside_the_last_step() -> None:
    groups = [group(steps=4), group(loads=8)]
    assert waits(groups, [cost(4000, beside=1000, behind=10), cost(10)], seen=25.0) == [15, 0]
    assert waits(groups, [cost(4000, beside=1000, behind=30), cost(10)], seen=25.0) == [0, 0]


def test_own_loads_come_behind_those_for_later_groups() -> None:
    groups = [group(steps=10), group(loads=8000)]
    # The third step's load waits for one of 1020 cycles, in which 1.5 steps of 100 pass that need 40 of the DMA.
    assert waits(groups, [cost(1000, transfers=400, beside=100, behind=100), cost(10)]) == [1020 - 1.5 * 60, 0]
    # With nothing to load there is nothing to wait for, except that all of it is there at the end.
    assert waits(groups, [cost(1000, beside=100, behind=100), cost(10)]) == [20, 0]


def test_nodes_behind_the_first_that_runs_at_a_step_wait_for_it() -> None:
    first, second = np.array([5.0, 0.0]), np.array([7.0, 9.0])
    found = first_work([first, second], ahead=False)
    assert found is not None
    assert found.tolist() == [5.0, 9.0]
    # A node that is alone, or runs ahead on another engine, leaves nobody waiting.
    assert first_work([first], ahead=False) is None
    assert first_work([first, second], ahead=True) is None


# Copies from a slow home

FAR = Dma("external", ("L3", "L2"), 160, 1.0, 2, issue=100, latency=10)
SLOW = replace(PLATFORM, home="L3", dmas={**PLATFORM.dmas, "external": FAR})


def stage(size: int, start: int, first: int) -> Stage:
    return Stage("w", "", Place("L2"), size, start, first, first)


def test_a_copy_for_a_later_group_is_hidden_where_there_is_time() -> None:
    groups = [group(cycles=5000), group(cycles=100)]
    slow = [Brought(1, 5000, beside=5000), Brought(1, 100)]
    assert fetched(SLOW, groups, slow, [stage(1000, 0, 1)]) == [0, 0]
    # Asked for at 0: 110 until it begins, 160 of setup, 6000 of bytes.
    assert fetched(SLOW, groups, slow, [stage(6000, 0, 1)]) == [0, 1270]


def test_cores_wait_for_who_asks_for_copies() -> None:
    groups = [group(cycles=50), group(cycles=9000)]
    slow = [Brought(1, 50, beside=50), Brought(1, 9000)]
    stages = [stage(10, 0, 1) for _ in range(4)]
    asked, _ = fetched(SLOW, groups, slow, stages)
    assert asked == pytest.approx(4 * 100 * 0.7 - 50)


def test_loads_of_a_group_come_behind_copies_that_were_asked_for() -> None:
    groups = [group(cycles=100), group(cycles=300, steps=1), group(cycles=10)]
    slow = [Brought(1, 100, beside=1e9), Brought(1, 200, lead=100, first=90), Brought()]
    alone = fetched(SLOW, groups, slow, [])
    behind = fetched(SLOW, groups, slow, [stage(5000, 0, 2)])
    assert alone[1] == 0
    # The copy is there 110 + 160 + 5000 cycles after the start; the group began at 100 and would load from 110 on.
    assert behind[1] == pytest.approx(5270 - 110)


# Code


def test_code_is_cold_again_behind_much_other_code() -> None:
    network = SINGLE[0]()
    kernels = {choice.kernel.path.name: n for n, choice in enumerate(network.choices) if choice.kernel is not None}
    name, step = next(iter(kernels.items()))
    operations = {"line": 10.0, "sets": 16.0, "ways": 2.0, f"begin {name}": 300.0}
    platform = replace(SLOW, operations=operations, dmas={"external": structs.replace(FAR, cold=400)})
    one = Group((Work(step, {}),), (), (), {})

    def saved(*slow: Brought) -> list[float]:
        return repeated(network.graph, platform, network.choices, [one] * len(slow), slow)

    assert saved(Brought(), Brought()) == [0, pytest.approx(300.0)]
    # 40 lines of other code fall on 16 sets of two: some of those of before are gone.
    assert 0 < saved(Brought(), Brought(1, first=1.0))[1] < 300


def test_code_of_slow_transfers_ages_with_every_group() -> None:
    network = SINGLE[0]()
    step = len(network.graph.nodes) - 1
    operations = {"line": 10.0, "sets": 16.0, "ways": 2.0, "group": 20.0}
    platform = replace(SLOW, operations=operations, dmas={"external": structs.replace(FAR, cold=200)})
    one = Group((Work(step, {}),), (), (), {})

    def saved(between: int) -> float:
        slow = [Brought(1, first=1.0), *([Brought()] * between), Brought(1, first=1.0)]
        return repeated(network.graph, platform, network.choices, [one] * len(slow), slow)[-1]

    found = [saved(between) for between in (0, 1, 4, 16)]
    assert found == sorted(found, reverse=True)
    assert 0 < found[0] < 200
    assert found[-1] == pytest.approx(0.0, abs=1.0)
