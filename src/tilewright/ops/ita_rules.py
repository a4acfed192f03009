"""The arithmetic of ITA, an accelerator for integer attention, in numpy: what its operators have in common."""

from __future__ import annotations

import numpy as np

from tilewright.core.graph import Array

GROUP = 16
"""Columns of a row that its softmax takes at once."""
SUM_BITS = 26
MOST = 65280
"""What a softmax divides by the sum of a row: 255 * 256."""


def wrapped(sums: Array) -> Array:
    """Sums as its accumulators hold them."""
    half = 1 << SUM_BITS >> 1
    return (sums.astype(np.int64) + half) % (2 * half) - half


def requantised(sums: Array, mult: int, shift: int, add: int) -> Array:
    """`clip(((sums * mult) >> shift) + add)`, rounded half up."""
    products = sums.astype(np.int64) * mult
    rounded = (products >> shift) + ((products >> (shift - 1)) & 1) if shift else products
    return np.clip(rounded + add, -128, 127).astype(np.int8)


def gelu(q: Array, b: int, c: int) -> Array:
    """GELU of numbers as a polynomial, not requantised."""
    wide = q.astype(np.int64)
    curve = (np.minimum(np.abs(wide), -b) + b) ** 2 + c
    return wrapped(wide * (np.where(wide < 0, -curve, curve) + c))


def softmax(scores: Array) -> Array:
    """Each row as weights of unsigned bytes: one step of a score is a factor of two."""
    wide = scores.astype(np.int64)
    top, total = running_sums(wide)
    inverse = np.where(total > 0, MOST // np.maximum(total, 1), 0)
    return (inverse >> np.minimum(top - wide, 31)).astype(np.uint8)


def running_sums(scores: Array) -> tuple[Array, Array]:
    """Maximum and sum of each row, group by group: a growing maximum halves the sum."""
    top = np.full((*scores.shape[:-1], 1), -128, np.int64)
    total = np.zeros_like(top)
    for start in range(0, scores.shape[-1], GROUP):
        group = scores[..., start : start + GROUP].astype(np.int64)
        highest = np.maximum(top, group.max(axis=-1, keepdims=True))
        total = (total >> np.minimum(highest - top, 31)) + (256 >> np.minimum(highest - group, 31)).sum(
            axis=-1, keepdims=True
        )
        top = highest
    return top, total
