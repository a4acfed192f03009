"""Code that is still in the caches."""

from __future__ import annotations

import pytest
from msgspec import structs
from msgspec.structs import replace

from plan.tiled import SCRATCHPAD
from plan.tiled_networks import SINGLE
from tilewright.core.plan import Group, NodeWork
from tilewright.machine.parts import Link
from tilewright.timeline.code import kept_code

FAR = Link("external", ("L3", "L2"), 2, 1.0, 160, cold=400)
CACHE = {"line": 10.0, "sets": 16.0, "ways": 2.0}


def test_code_is_cold_again_behind_much_other_code() -> None:
    network = SINGLE[0]()
    kernels = {choice.kernel.path.name: n for n, choice in enumerate(network.choices) if choice.kernel is not None}
    name, step = next(iter(kernels.items()))
    platform = replace(SCRATCHPAD, operations={**CACHE, f"begin {name}": 300.0}, links={"external": FAR})
    one = Group((NodeWork(step, {}),), (), (), {})

    def saved(*slow: bool) -> list[float]:
        kept = kept_code(network.graph, platform, network.choices, [one] * len(slow), slow)
        return [sum(mine.nodes) for mine in kept]

    assert saved(False, False) == [0, pytest.approx(300.0)]
    # 40 lines of other code fall on 16 sets of two: some of those of before are gone.
    assert 0 < saved(False, True)[1] < 300


def test_something_is_left_where_a_kernel_ran_before() -> None:
    network = SINGLE[0]()
    step, name = next((n, c.kernel.path.name) for n, c in enumerate(network.choices) if c.kernel is not None)
    operations = {**CACHE, f"begin {name}": 300.0, f"begin {name} fused": 300.0, f"again {name}": 100.0}
    platform = replace(SCRATCHPAD, operations=operations)
    groups = [Group((NodeWork(step, {}),), (), (), {})] * 2
    first, second = kept_code(network.graph, platform, network.choices, groups, [False, False])
    assert first.nodes == (0,)
    assert second.nodes == (pytest.approx(200.0),)


def test_code_that_one_node_calls_is_shorter() -> None:
    network = SINGLE[0]()
    step, name = next((n, c.kernel.path.name) for n, c in enumerate(network.choices) if c.kernel is not None)
    operations = {**CACHE, f"begin {name}": 300.0, f"begin {name} fused": 300.0, f"several {name}": 80.0}
    platform = replace(SCRATCHPAD, operations=operations)
    one = Group((NodeWork(step, {}),), (), (), {})

    def saved(calls: int) -> list[tuple[float, ...]]:
        kept = kept_code(network.graph, platform, network.choices, [one] * calls, [False] * calls)
        return [mine.nodes for mine in kept]

    assert saved(1) == [(80,)]
    assert saved(2) == [(0,), (pytest.approx(300.0),)]


def test_nodes_of_a_group_take_the_place_of_each_others_code() -> None:
    network = SINGLE[0]()
    nodes = range(len(network.graph.nodes))
    names = [choice.kernel.path.name for choice in network.choices if choice.kernel is not None]
    begins = {f"begin {name}{fused}": 300.0 for name in names for fused in ("", " fused")}
    platform = replace(SCRATCHPAD, operations={**CACHE, **begins, "begin nest": 300.0})

    def more(*steps: int) -> tuple[float, ...]:
        group = Group(tuple(NodeWork(step, {}) for step in steps), (), (), {})
        return kept_code(network.graph, platform, network.choices, [group], [False])[0].again

    assert more(nodes[-1]) == ()
    assert more(nodes[-1], nodes[-1])[0] == pytest.approx(0.0)
    assert all(0 < cycles < 300 for cycles in more(*nodes)) == (len(nodes) > 1)


def test_code_of_slow_transfers_ages_with_every_group() -> None:
    network = SINGLE[0]()
    step = len(network.graph.nodes) - 1
    platform = replace(
        SCRATCHPAD, operations={**CACHE, "first transfer": 200.0}, links={"external": structs.replace(FAR, cold=200)}
    )
    one = Group((NodeWork(step, {}),), (), (), {})

    def share(between: int) -> float:
        slow = [True, *([False] * between), True]
        return kept_code(network.graph, platform, network.choices, [one] * len(slow), slow)[-1].far

    found = [share(between) for between in (0, 1, 4, 16)]
    assert found == sorted(found, reverse=True)
    assert 0 < found[0] < 1
    assert found[-1] == pytest.approx(0.0, abs=0.01)
