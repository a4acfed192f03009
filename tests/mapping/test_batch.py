"""Costs of many mappings at once are those of one after the other."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from mapping.brute_force import cuts_that_fit, orders
from mapping.random_problems import random_problem
from tilewright.core.mapping import TemporalMapping
from tilewright.mapping.batch import Evaluator
from tilewright.mapping.lattice import Lattice, prime_factors
from tilewright.mapping.tables import Problem
from tilewright.price.array import evaluate


def random_rows(found: Problem, count: int, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Orders of loops and cuts of each operand, a mapping in a row."""
    rng = np.random.default_rng(seed)
    loops = [index for index, factor in enumerate(found.lattice.factors) for _ in range(factor.count)]
    rows = rng.permuted(np.tile(np.array(loops, dtype=np.int64), (count, 1)), axis=1)
    cuts = [np.sort(rng.integers(0, len(loops) + 1, (count, table.depth)), axis=1) for table in found.operands]
    for cut in cuts:
        cut[:, -1] = len(loops)
    return rows, cuts


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_a_batch_costs_what_its_mappings_cost(seed: int, corrected: bool) -> None:
    found = random_problem(seed, 5, corrected=corrected)
    rows, cuts = random_rows(found, 8, seed)
    evaluator = Evaluator(found)
    costs = evaluator.costs(evaluator.profile(rows, cuts))
    energy, latency = costs.energy + np.zeros(8), costs.latency + np.zeros(8)
    for row in range(8):
        order = tuple(found.lattice.primes[int(loop)] for loop in np.asarray(rows)[row])
        mapping = TemporalMapping(
            order, {t.operand.name: tuple(int(cut) for cut in cuts[t.index][row]) for t in found.operands}
        )
        one = evaluate(found.layer, found.engine, found.spatial, mapping, corrected=corrected)
        assert energy[row] == pytest.approx(one.energy, rel=1e-9)
        assert latency[row] == pytest.approx(one.cycles, rel=1e-9)


class LogarithmsRoundedDown:
    """NumPy, but with logarithms as some devices compute them: those of powers of two may come out too small."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def log2(numbers: np.ndarray) -> np.ndarray:
        return np.nextafter(np.log2(numbers), -np.inf)


def libraries() -> list[Any]:
    """PyTorch is tried where it is installed."""
    here = [importlib.import_module("torch")] if importlib.util.find_spec("torch") else []
    return [LogarithmsRoundedDown(), *here]


@pytest.mark.parametrize("library", libraries())
def test_another_array_library_gives_the_same(library: Any) -> None:
    for seed in range(20):
        found = random_problem(seed, 6, corrected=seed % 2 == 1)
        rows, cuts = random_rows(found, 64, seed)
        here, there = Evaluator(found), Evaluator(found, library)
        ours = here.costs(here.profile(rows, cuts))
        theirs = there.costs(there.profile(library.asarray(rows), [library.asarray(cut) for cut in cuts]))
        for one, other in ((ours.energy, theirs.energy), (ours.latency, theirs.latency)):
            assert np.asarray(other) + np.zeros(64) == pytest.approx(one + np.zeros(64), rel=1e-12)


def test_loops_may_be_products_of_primes() -> None:
    found = random_problem(3, 5)
    order = tuple(found.spatial.steps(found.layer).items())
    primes = tuple((dim, prime) for dim, steps in order for prime in prime_factors(steps))
    evaluator = Evaluator(found)

    def costs(loops: tuple[tuple[str, int], ...]) -> tuple[float, float]:
        cuts = [np.full((1, table.depth), len(loops)) for table in found.operands]
        result = evaluator.costs(evaluator.profile(np.arange(len(loops))[None], cuts, loops))
        return float(np.ravel(result.energy)[0]), float(np.ravel(result.latency)[0])

    assert costs(order) == costs(primes)


def test_nodes_are_sums_of_strides() -> None:
    lattice = Lattice.of({"K": 12, "C": 5})
    assert lattice.size == 3 * 2 * 2
    assert lattice.orders == 4 * 3 * 2 // 2
    node = lattice.stride("K", 6) + lattice.stride("C", 5)
    assert (lattice.extents["K"][node], lattice.extents["C"][node], lattice.periods[node]) == (6, 5, 30)


def test_the_space_has_as_many_mappings_as_counted() -> None:
    found = random_problem(21, 3)
    depths = [table.depth for table in found.operands]
    memories = tuple(replace(memory, bits=10**9) for memory in found.engine.memories)
    roomy_problem = replace(found, engine=replace(found.engine, memories=memories))
    listed = sum(len(list(cuts_that_fit(roomy_problem, order))) for order in orders(found.layer, roomy_problem))
    assert listed == found.lattice.mappings(depths)
