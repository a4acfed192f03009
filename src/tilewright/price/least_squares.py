"""Non-negative least squares, by the active sets of Lawson and Hanson."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from tilewright.price.grid import Array

TOLERANCE = 1e-10
LEAST = 1000.0
"""Cycles below which errors count as if it were so many: shorter steps matter little."""
ROUNDS = 8
"""How often it is looked again which rows hold, and which are odd."""
FAR, FAR_ROUNDS = 0.5, 3
"""A relative error beyond which something decides nothing, and how often it is looked again what that is."""
USUAL = 0.05
"""A relative error beyond which a row is odd."""


class Seen(Protocol):
    """Something that was measured."""

    def error(self, costs: Mapping[str, float], /) -> float:
        """How far cycles that are predicted with some costs are off, as a share of those measured."""
        ...


S = TypeVar("S", bound=Seen)


def without_far(seen: Sequence[S], solve: Callable[[Sequence[S]], dict[str, float]]) -> dict[str, float]:
    """Costs that follow from all that is not far off with them."""
    found: dict[str, float] = {}
    for _ in range(FAR_ROUNDS):
        found = solve([one for one in seen if not found or abs(one.error(found)) < FAR])
    return found


def smallest_errors(rows: Callable[[Array], tuple[Array, Array]], found: Array) -> Array:
    """Coefficients of at least 0 with the smallest relative errors of cycles.

    `rows` are numbers of terms with the cycles that they took; which ones may depend on the coefficients.
    """
    # All terms take the same at first: as much as they do in half of the rows.
    counts, cycles = rows(found)
    found = found * np.median(cycles / np.maximum(counts.sum(axis=1), 1))
    weights = np.ones(1)
    for _ in range(ROUNDS):
        counts, cycles = rows(found)
        # A share of what was measured or predicted, whichever is more: else a layer that takes next to nothing, as the
        # compiler saw through it, would decide for all.
        scale = 1 / np.maximum(np.maximum(cycles, LEAST), counts @ found)
        matrix, target = counts * scale[:, None], cycles * scale
        found = non_negative(matrix * weights[:, None], target * weights)
        # Beyond what is usual, errors count in proportion and not by their square: few odd layers decide nothing.
        weights = np.sqrt(np.minimum(1.0, USUAL / np.maximum(np.abs(matrix @ found - target), USUAL)))
    return found


def non_negative(matrix: Array, target: Array) -> Array:
    """The x >= 0 for which `matrix @ x` is closest to `target`."""
    scale = np.linalg.norm(matrix, axis=0)
    # Columns of all sizes are told apart from zero alike.
    rows = matrix / np.where(scale > 0, scale, 1.0)
    if len(rows) > rows.shape[1]:
        # The same problem with a row for each column.
        turned, rows = np.linalg.qr(rows)
        target = turned.T @ target
    found = np.zeros(rows.shape[1])
    active = np.zeros(rows.shape[1], bool)
    for _ in range(3 * rows.shape[1] + 1):
        gain = rows.T @ (target - rows @ found)
        gain[active | (scale == 0)] = -np.inf
        best = int(np.argmax(gain))
        if gain[best] <= TOLERANCE * max(float(np.linalg.norm(target)), 1.0):
            break
        active[best] = True
        found = _feasible(rows, target, found, active)
    return found / np.where(scale > 0, scale, 1.0)


def _feasible(rows: Array, target: Array, found: Array, active: Array) -> Array:
    """Goes towards the solution with the active columns as far as none becomes negative; these are given up."""
    while True:
        wanted = np.zeros_like(found)
        wanted[active] = np.linalg.lstsq(rows[:, active], target, rcond=None)[0]
        negative = active & (wanted <= 0)
        if not negative.any():
            return wanted
        step = np.min(found[negative] / np.maximum(found[negative] - wanted[negative], np.finfo(float).tiny))
        found = found + step * (wanted - found)
        active &= found > TOLERANCE
        found[~active] = 0.0
