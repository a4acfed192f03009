"""Weights as whole numbers: each as near as may be, or all of a row together, so that its sums are."""

from __future__ import annotations

import numpy as np

from tilewright.core.graph import Array

SHARES = np.linspace(0.4, 1.0, 25)
"""Of the largest weight of a row, which the largest whole number may stand for."""
DAMPING = 0.01
"""Of the mean square of an input, added to each: of few texts none is never zero."""


def fitted_steps(wide: Array, top: int, moments: Array) -> Array:
    """The step of each row with which weights are off least, each counted by the mean square of its input.

    Large weights may be cut off, where that makes the steps of the others finer.
    """
    largest = np.abs(wide).max(axis=1)
    weight = np.diag(moments) + DAMPING * np.diag(moments).mean()
    steps = np.maximum(SHARES[:, None] * largest / top, 1e-12)
    off = [(wide - rounded(wide, step, top) * step[:, None]) ** 2 @ weight for step in steps]
    return steps[np.argmin(off, axis=0), np.arange(len(wide))]


def rounded(wide: Array, step: Array, top: int, moments: Array | None = None) -> Array:
    """Weights of rows in whole steps of each row.

    With `moments`, mean products of each two inputs, the inputs that count most come first, and what their weights are
    off is made up for by those behind them, as far as inputs go together (Frantar et al., GPTQ, 2022).
    """
    if moments is None:
        return np.clip(np.rint(wide / step[:, None]), -top - 1, top)
    order = np.argsort(-np.diag(moments), kind="stable")
    damped = moments[np.ix_(order, order)].astype(np.float64)
    damped[np.diag_indices(len(order))] += DAMPING * np.diag(damped).mean() + 1e-30
    ahead = np.linalg.cholesky(np.linalg.inv(damped)).T
    left, found = wide[:, order].astype(np.float64), np.zeros(wide.shape)
    for place in range(len(order)):
        found[:, place] = np.clip(np.rint(left[:, place] / step), -top - 1, top)
        off = (left[:, place] - found[:, place] * step) / ahead[place, place]
        left[:, place + 1 :] -= np.outer(off, ahead[place, place + 1 :])
    return found[:, np.argsort(order)]
