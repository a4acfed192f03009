"""The search for an allocation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from schedule.small import chain, pair, random_task
from tilewright.core.split import OperationSplit
from tilewright.errors import TilewrightError
from tilewright.schedule.bounds import least_latency
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.genetic import crowding, fronts, ranking
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import NodeCosts, Scheduling
from tilewright.schedule.search import OBJECTIVES, Objective, SearchOptions, Tried, choices, search


def _task() -> tuple[Scheduling, NodeCosts]:
    fabric = fabric_of(pair())
    nodes = split_network(chain(6), {f"c{i}": OperationSplit(within=(("OY", 3),)) for i in range(6)}, fabric.slots)
    numbers = np.random.default_rng(1)
    shape = (len(nodes.kinds), len(fabric.places))
    costs = NodeCosts(
        numbers.integers(20, 300, shape), 1e3 * numbers.random(shape), np.zeros(shape), np.zeros(shape, np.uint32)
    )
    return Scheduling(nodes, fabric, costs), costs


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_few_allocations_are_all_tried_and_many_are_searched(objective: Objective) -> None:
    scheduling, costs = _task()
    allowed = choices(scheduling, costs, {})
    every = search(scheduling, costs, allowed, SearchOptions(objective, 64))
    assert every.exhaustive
    assert every.evaluated == 64
    summaries = [(places, scheduling.evaluate(np.array(places))) for places in product(*allowed)]
    tried = [Tried(p, s.latency, s.energy, s.memory(scheduling.fabric)) for p, s in summaries]
    assert every.best in tried
    best = min(each.value(objective) for each in tried)
    assert every.best.value(objective) == best
    assert least_latency(scheduling.nodes, costs, allowed) <= every.front[0].latency
    assert set(every.front) == {one for one in tried if not any(_beats(other, one) for other in tried)}
    some = search(scheduling, costs, allowed, SearchOptions(objective, 50))
    assert not some.exhaustive
    assert some.evaluated <= 50
    assert some.best.value(objective) <= 1.02 * best
    for workers in (2, 5):
        assert some == search(scheduling, costs, allowed, SearchOptions(objective, 50, workers=workers))


def _beats(one: Tried, other: Tried) -> bool:
    mine, its = ((each.latency, each.energy, each.memory) for each in (one, other))
    return mine != its and all(a <= b for a, b in zip(mine, its, strict=True))


def test_limits_are_kept() -> None:
    scheduling, costs = _task()
    allowed = choices(scheduling, costs, {})
    free = search(scheduling, costs, allowed, SearchOptions(evaluations=64))
    frugal = min(free.front, key=lambda tried: tried.energy)
    for evaluations in (50, 64):
        options = SearchOptions(evaluations=evaluations, limits={"energy": 1.05 * frugal.energy})
        found = search(scheduling, costs, allowed, options)
        assert free.best.energy > 1.05 * frugal.energy >= found.best.energy
        options.check(found.best)


def test_fronts_and_who_stands_apart() -> None:
    values = np.array([[1.0, 4.0], [2.0, 2.0], [4.0, 1.0], [3.0, 3.0], [4.0, 4.0], [0.0, 0.0]])
    violation = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
    assert fronts(values, violation).tolist() == [0, 0, 0, 1, 2, 3]
    assert crowding(values[:3]).tolist() == [np.inf, 2.0, np.inf]
    assert ranking(values, violation) == [0, 2, 1, 3, 4, 5]


def test_allocations_that_cannot_be_are_passed_over() -> None:
    task = random_task(3)
    allowed = choices(task.scheduling, task.costs, {})
    assert search(task.scheduling, task.costs, allowed, SearchOptions(evaluations=30)).best.latency > 0


def test_engines_of_slices_are_given_in_their_order() -> None:
    fabric = fabric_of(pair())
    nodes = split_network(chain(2), {"c0": OperationSplit((("K", 2),))}, fabric.slots)
    shape = (len(nodes.kinds), len(fabric.places))
    costs = NodeCosts(np.ones(shape, np.int64), np.ones(shape), np.ones(shape), np.zeros(shape, np.uint32))
    scheduling = Scheduling(nodes, fabric, costs)
    assert choices(scheduling, costs, {"c0": ("b", "a"), "c1": ("b",)}, {"c0"}) == [(1,), (0,), (1,)]
    assert choices(scheduling, costs, {"c0": ("b", "a"), "c1": ("b",)}) == [(1, 0), (1, 0), (1,)]
    with pytest.raises(TilewrightError) as caught:
        choices(scheduling, costs, {"c1": ("q",)})
    assert caught.value.code == "unknown-engine"


def test_no_schedule_takes_less_than_the_longest_chain() -> None:
    fabric = fabric_of(pair())
    nodes = split_network(chain(3), {}, fabric.slots)
    shape = (len(nodes.kinds), len(fabric.places))
    cycles = np.array([[10, 20, -1], [30, 5, -1], [7, 7, -1]])
    costs = NodeCosts(cycles, np.ones(shape), np.ones(shape), np.zeros(shape, np.uint32))
    assert least_latency(nodes, costs, [(0, 1)] * 3) == 10 + 5 + 7
    assert least_latency(nodes, costs, [(0,), (0,), (1,)]) == 10 + 30 + 7
