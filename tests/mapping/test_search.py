"""The search finds what looking at every mapping finds."""

from __future__ import annotations

import numpy as np
import pytest

from mapping.brute_force import all_costs
from mapping.random_problems import possible_problems, random_problem
from tilewright.core.mapping import SpatialMapping
from tilewright.errors import TilewrightError
from tilewright.mapping.best import MappingJob, best_mapping, best_mappings
from tilewright.mapping.goals import Objective, Wanted
from tilewright.mapping.results import Effort, SearchResult
from tilewright.mapping.search import Search
from tilewright.mapping.tables import Floats, Problem
from tilewright.price.array import evaluate

ROUNDING = 1 + 1e-9


def searched(found: Problem, objective: Objective, wanted: Wanted | None = None) -> SearchResult | None:
    try:
        return Search(found, objective, wanted or Wanted()).run()
    except TilewrightError:
        return None


def front(energy: Floats, latency: Floats) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for row in np.lexsort((energy, latency)):
        if not points or energy[row] < points[-1][1] * (1 - 1e-12):
            points.append((float(latency[row]), float(energy[row])))
    return points


def check(found: Problem, objective: Objective, energy: Floats, latency: Floats) -> None:
    result = searched(found, objective)
    if not len(energy):
        assert result is None or not result.best
        return
    assert result is not None
    assert result.proved
    best = result.best[0]
    if objective == "latency":
        assert best.latency == pytest.approx(latency.min())
        assert best.energy == pytest.approx(energy[latency <= latency.min() * ROUNDING].min())
    elif objective == "energy":
        assert best.energy == pytest.approx(energy.min())
        assert best.latency == pytest.approx(latency[energy <= energy.min() * ROUNDING].min())
    elif objective == "edp":
        assert best.energy * best.latency == pytest.approx((energy * latency).min())
    else:
        points = [(one.latency, one.energy) for one in result.best]
        assert np.array(points) == pytest.approx(np.array(front(energy, latency)))
    for one in result.best:
        cost = evaluate(found.layer, found.engine, found.spatial, one.mapping, corrected=found.corrected)
        assert (cost.energy, cost.cycles) == pytest.approx((one.energy, one.latency))


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_equals_brute_force(seed: int, corrected: bool) -> None:
    found = random_problem(seed, 3, corrected=corrected)
    energy, latency = all_costs(found)
    for objective in ("latency", "energy", "edp", "pareto"):
        check(found, objective, energy, latency)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_equals_brute_force_for_200_pairs(seed: int) -> None:
    found = random_problem(seed, 4, corrected=seed % 2 == 1)
    energy, latency = all_costs(found)
    for objective in ("latency", "energy", "edp", "pareto"):
        check(found, objective, energy, latency)


@pytest.mark.parametrize("seed", range(8))
def test_keeps_to_what_is_wanted(seed: int) -> None:
    found = random_problem(seed, 3)
    energy, latency = all_costs(found)
    if not len(energy):
        return
    slow = float(np.median(latency))
    result = searched(found, "energy", Wanted(latency=slow))
    assert result is not None
    assert result.best[0].energy == pytest.approx(energy[latency <= slow].min())
    used = found.ideal / slow
    again = searched(found, "energy", Wanted(utilisation=used))
    assert again is not None
    assert again.best[0].energy == pytest.approx(energy[found.ideal / latency >= used].min())
    none = searched(found, "latency", Wanted(energy=float(energy.min()) / 2))
    assert none is not None
    assert not none.best


@pytest.mark.parametrize("seed", range(8))
def test_less_room_or_bandwidth_is_never_better(seed: int) -> None:
    found = random_problem(seed, 4)
    free = searched(found, "energy")
    if free is None:
        return
    memory = found.engine.memories[-2]
    port = found.engine.memories[-1].ports[0]
    for wanted in (Wanted(room={memory.name: 0.5}), Wanted(bandwidth={("outside", port.name): port.bits / 2})):
        tight = searched(found, "energy", wanted)
        if tight is None or not tight.best:
            continue
        assert tight.best[0].energy >= free.best[0].energy / ROUNDING
        cost = evaluate(found.layer, found.engine, found.spatial, tight.best[0].mapping)
        for operand in found.layer.operands:
            for level, held in enumerate(found.engine.levels(operand.slot)):
                if held.name in wanted.room:
                    assert cost.occupied(operand.name)[level] <= 0.5


def test_stops_early_with_a_bound() -> None:
    found = possible_problems(1, 6)[0]
    whole = Search(found, "latency").run()
    part = Search(found, "latency", effort=Effort(mappings=0)).run()
    assert part.bound <= whole.best[0].latency <= part.best[0].latency
    assert whole.bound == whole.best[0].latency


def test_several_ways_to_unroll() -> None:
    found = possible_problems(1, 4)[0]
    spatials = [found.spatial, SpatialMapping(dict.fromkeys(found.engine.dims, ()))]
    result = best_mapping(found.layer, found.engine, spatials, "edp")
    alone = [best_mapping(found.layer, found.engine, [spatial], "edp") for spatial in spatials]
    assert result.best[0].product == pytest.approx(min(one.best[0].product for one in alone))
    assert result.covered == sum(one.covered for one in alone)


def test_the_number_of_processes_changes_nothing() -> None:
    problems = [*(some := possible_problems(3, 3)), some[0]]
    jobs = [MappingJob(one.layer, one.engine, (one.spatial,), "edp") for one in problems]
    one, two = best_mappings(jobs), best_mappings(jobs, workers=2)
    assert [result.best for result in one] == [result.best for result in two]
    assert one[0] is one[3]


def test_says_which_memory_is_too_small() -> None:
    found = possible_problems(1, 3)[0]
    memory = found.engine.memories[0]
    with pytest.raises(TilewrightError, match=f"memory '{memory.name}' is .* bits too small"):
        best_mapping(found.layer, found.engine, [found.spatial], "energy", Wanted(room={memory.name: 0.01}))
