"""Cycles of steps behind kernels are found again from what layers took."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.price.step_terms import LEAST_LAYERS, StepsSeen, solved_steps

COSTS = {"begin step": 50.0, "load": 2.0, "alone load": 1.0, "tw_expf": 30.0}
USUAL = {"sinf": 150.0}
KERNELS = {"slow.c": 1.2, "fast.c": 0.8}
"""Kernels with how much longer than known they take."""


def seen(number: int, *, times: float = 1.0, sines: int = 0) -> StepsSeen:
    """A layer of several steps that takes `times` what its operations do."""
    random = np.random.default_rng(number)
    kernel = [*KERNELS][number % 2]
    results, known, steps = (int(random.integers(*ends)) for ends in ((100, 2000), (2000, 20000), (2, 9)))
    name = "load" if number % 3 else "alone load"
    each = {name: float(results * random.integers(1, 4)), "tw_expf": float(results * (number % 5 == 0)), "sinf": sines}
    counts = {"begin step": 1.0, **each}, {own: count * (steps - 1) for own, count in each.items()}
    cost = {**COSTS, **USUAL}
    cycles = [
        round(times * (KERNELS[kernel] * known * part + sum(cost[own] * count for own, count in mine.items())))
        for part, mine in zip((1, steps - 1), counts, strict=True)
    ]
    return StepsSeen(kernel, (known, known * (steps - 1.0)), counts, (cycles[0], cycles[1]))


def test_costs_are_found() -> None:
    found = solved_steps([seen(number) for number in range(60)], USUAL)
    assert found == pytest.approx(COSTS, rel=0.05, abs=5)


def test_rare_operations_take_as_long_as_elsewhere() -> None:
    layers = [seen(number) for number in range(60)]
    rare = [seen(number, sines=100) for number in range(100, 100 + LEAST_LAYERS - 1)]
    assert solved_steps([*layers, *rare], USUAL)["sinf"] == USUAL["sinf"]


def test_layers_that_are_far_off_decide_nothing() -> None:
    layers = [seen(number) for number in range(60)]
    found = solved_steps([*layers, seen(60, times=9), seen(61, times=0.1)], USUAL)
    assert found == pytest.approx(COSTS, rel=0.05, abs=5)
