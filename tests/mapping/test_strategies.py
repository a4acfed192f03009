"""The strategies of other tools, against their definition on one order at a time."""

from __future__ import annotations

import pytest

from mapping.brute_force import orders
from mapping.random_problems import possible_problems, random_problem
from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer, Operand
from tilewright.errors import TilewrightError
from tilewright.machine.library import load_array
from tilewright.mapping.allocate import allocate
from tilewright.mapping.search import Search
from tilewright.mapping.strategies import fixed, loma, salsa
from tilewright.mapping.tables import Problem, problem
from tilewright.price.array import ArrayCost, evaluate


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


def test_ties_of_fractions_are_those_of_one_order() -> None:
    """1000 columns on 16 units: equal tiles are told apart by how their extents were rounded."""
    engine = load_array("ascend-like")
    inputs = (Operand("I", "I1", ("C",)), Operand("W", "I2", ("C", "K")))
    layer = Layer("fc", "gemm", {"K": 1000, "C": 512}, Operand("O", "O", ("K",), (), 16, 8), inputs)
    spatial = SpatialMapping({"D1": (("K", 16),), "D2": (("C", 16),), "D3": (), "D4": ()})
    found = problem(layer, engine, spatial)
    order = (("K", 3), ("K", 7), ("K", 3), ("C", 2), ("C", 4), ("C", 4))
    assert fixed(found, order).best.mapping == allocate(layer, engine, spatial, order)


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
