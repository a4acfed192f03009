"""A search that is cut short is no worse than all orders of a few factors, which is what other tools look at."""

from __future__ import annotations

import pytest

from tilewright.core.workload_file import equation_layer
from tilewright.machine.library import load_array
from tilewright.mapping.best import USUAL_FACTORS, best_mapping
from tilewright.mapping.goals import Objective
from tilewright.mapping.results import Effort
from tilewright.mapping.strategies import loma
from tilewright.mapping.tables import problem
from tilewright.mapping.wired import unrollings
from tilewright.price.array import evaluate
from tilewright.price.layers import narrow

LAYERS = (
    ("O[m][n] += A[m][k] * B[k][n]", {"M": 64, "N": 48, "K": 96}),
    (
        "O[k][y][x] += W[k][c][r][s] * I[c][h][w], h = 1*y + 1*r, w = 1*x + 1*s",
        {"K": 32, "C": 24, "Y": 14, "X": 14, "R": 3, "S": 3},
    ),
)


@pytest.mark.parametrize(("equation", "sizes"), LAYERS)
@pytest.mark.parametrize("machine", ["ascend-like", "meta-prototype-like"])
@pytest.mark.parametrize("objective", ["latency", "energy", "edp"])
def test_no_worse_than_a_few_factors(equation: str, sizes: dict[str, int], machine: str, objective: Objective) -> None:
    engine = load_array(machine)
    layer = narrow(equation_layer(equation, sizes), engine.precision)
    spatials = unrollings(layer, engine)[:1]
    result = best_mapping(layer, engine, spatials, objective, effort=Effort(mappings=0, steps=1))
    best = result.best[0]
    other = loma(problem(layer, engine, spatials[0]), objective, USUAL_FACTORS).best
    values = {
        "latency": (best.latency, other.latency),
        "energy": (best.energy, other.energy),
        "edp": (best.product, other.energy * other.latency),
    }
    ours, theirs = values[objective]
    assert not result.proved
    assert result.bound <= ours <= theirs * (1 + 1e-12)
    cost = evaluate(layer, engine, best.spatial, best.temporal)
    assert (best.energy, best.latency) == pytest.approx((cost.energy, cost.cycles))
