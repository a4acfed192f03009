"""Cycles of operations are found again from what loop nests took."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.price.nest_terms import NestSeen, solved_nests

COSTS = {"begin nest": 120.0, "call": 40.0, "point": 5.0, "load": 2.0, "tw_expf": 30.0}


def seen(number: int, *, times: float = 1.0) -> NestSeen:
    """A nest of several steps that takes `times` what its operations do."""
    random = np.random.default_rng(number)
    points, steps, loads = (int(random.integers(*ends)) for ends in ((100, 2000), (2, 9), (1, 4)))
    each = {"call": 1.0, "point": points, "load": points * loads, "tw_expf": points * (number % 3)}
    first, others = {"begin nest": 1.0, **each}, {name: count * (steps - 1) for name, count in each.items()}
    cycles = [
        round(times * sum(COSTS[name] * count for name, count in counts.items())) + 45 for counts in (first, others)
    ]
    return NestSeen(first, others, (cycles[0], cycles[1]), (45.0, 45.0))


def test_costs_are_found() -> None:
    found = solved_nests([seen(number) for number in range(20)])
    assert found == pytest.approx(COSTS, rel=0.02, abs=3)
    assert abs(seen(77).error(found)) < 0.01


def test_nests_that_are_far_off_decide_nothing() -> None:
    found = solved_nests([*(seen(number) for number in range(20)), seen(20, times=4), seen(21, times=0.2)])
    assert abs(seen(77).error(found)) < 0.01
