"""Non-negative least squares, by the active sets of Lawson and Hanson."""

from __future__ import annotations

import numpy as np

from tilewright.price.grid import Array

TOLERANCE = 1e-10


def non_negative(matrix: Array, target: Array) -> Array:
    """The x >= 0 for which `matrix @ x` is closest to `target`."""
    scale = np.linalg.norm(matrix, axis=0)
    # Columns of all sizes are told apart from zero alike.
    rows = matrix / np.where(scale > 0, scale, 1.0)
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
