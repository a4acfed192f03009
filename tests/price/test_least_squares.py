"""Non-negative least squares against all choices of columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tilewright.price.grid import Array
from tilewright.price.least_squares import non_negative


def best_of_all(matrix: Array, target: Array) -> float:
    """The smallest distance that any set of columns with positive factors reaches."""
    columns = range(matrix.shape[1])
    best = float(np.linalg.norm(target))
    for count in columns:
        for chosen in combinations(columns, count + 1):
            found = np.linalg.lstsq(matrix[:, chosen], target, rcond=None)[0]
            if (found >= 0).all():
                best = min(best, float(np.linalg.norm(matrix[:, chosen] @ found - target)))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_closer(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(12, 5)) * 10.0 ** random.integers(-3, 4, 5)
    target = random.normal(size=12)
    found = non_negative(matrix, target)
    assert (found >= 0).all()
    assert np.linalg.norm(matrix @ found - target) == pytest.approx(best_of_all(matrix, target), rel=1e-9)


def test_what_was_put_in_comes_out() -> None:
    random = np.random.default_rng(1)
    matrix, factors = random.random((30, 4)), np.array([3.0, 0.0, 0.5, 200.0])
    np.testing.assert_allclose(non_negative(matrix, matrix @ factors), factors, atol=1e-9)


def test_columns_of_zeros_take_nothing() -> None:
    matrix = np.array([[1.0, 0.0, 1.0], [2.0, 0.0, 2.0], [3.0, 0.0, 3.0]])
    found = non_negative(matrix, np.array([2.0, 4.0, 6.0]))
    assert found[1] == 0
    assert found.sum() == pytest.approx(2)
