"""The strategies of other tools, against their definition on one order at a time."""

from __future__ import annotations

import pytest

from mapping.brute_force import orders
from mapping.random_problems import possible_problems, random_problem
from tilewright.cost.array import ArrayCost, evaluate
from tilewright.errors import TilewrightError
from tilewright.mapping.allocate import allocate
from tilewright.mapping.search import Search
from tilewright.mapping.strategies import fixed, loma, salsa
from tilewright.mapping.tables import Problem


def one_by_one(found: Problem, even: bool) -> list[ArrayCost]:
    costs: list[ArrayCost] = []
    for order in orders(found.layer, found):
        try:
            mapping = allocate(found.layer, found.engine, found.spatial, order, even=even)
        except TilewrightError:
            continue
        costs.append(evaluate(found.layer, found.engine, found.spatial, mapping))
    return costs


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_loma_tries_every_order(seed: int, even: bool) -> None:
    found = random_problem(seed, 4)
    costs = one_by_one(found, even)
    if not costs:
        with pytest.raises(TilewrightError):
            loma(found, even=even)
        return
    fast = loma(found, "latency", even=even)
    assert fast.evaluated == len(costs)
    best = min((cost.cycles, cost.energy) for cost in costs)
    assert (fast.best.latency, fast.best.energy) == pytest.approx(best)
    frugal = loma(found, "energy", even=even)
    assert (frugal.best.energy, frugal.best.latency) == pytest.approx(min((c.energy, c.cycles) for c in costs))
    assert Search(found, "latency").run().best[0].latency <= fast.best.latency * (1 + 1e-9)


def test_a_limit_joins_the_smallest_factors() -> None:
    found = possible_problems(1, 6)[0]
    few = loma(found, limit=1)
    assert len(few.best.mapping.order) == len(found.spatial.steps(found.layer))
    assert few.tried <= loma(found).tried


def test_fixed_orders() -> None:
    found = possible_problems(1, 4)[0]
    order = tuple(found.spatial.steps(found.layer).items())
    whole = fixed(found, order)
    assert whole.tried == 1
    assert whole.best.mapping.order == order
    inner = fixed(found, [(order[-1][0], None)])
    assert inner.best.mapping.order[0][0] == order[-1][0]
    assert inner.tried < loma(found).tried
    with pytest.raises(TilewrightError, match="steps of"):
        fixed(found, [(order[0][0], 7)])


def test_annealing_is_seeded() -> None:
    found = possible_problems(1, 6)[0]
    one, same = (salsa(found, "energy", seed=3, iterations=40) for _ in range(2))
    assert one == same
    assert Search(found, "energy").run().best[0].energy <= one.best.energy * (1 + 1e-9)
