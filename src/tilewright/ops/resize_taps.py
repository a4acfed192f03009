"""Which input elements, with which weights, an output element of Resize takes along one axis.

Everything is known at compile time, so that an axis becomes a table of weights over a window that moves affinely with
the output index. The window is the tightest one of the form `(slope * index + offset) / divisor` plus a few taps.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = ("nearest", "linear", "cubic")


class AxisRule(Struct, frozen=True):
    """How one axis is resized."""

    extent: int
    resized: int
    scale: float
    coordinates: str
    roi: tuple[float, float]
    mode: str
    nearest_mode: str
    cubic_a: float
    antialias: bool
    exclude_outside: bool


class Taps(Struct, frozen=True):
    """The taps of an axis: output `o` takes inputs `(slope * o + offset) // divisor + t` with the weights `[o, t]`."""

    slope: int
    divisor: int
    offset: int
    weights: Array
    outside: Array
    """Output elements that lie outside a cropped region and take the extrapolation value."""

    @property
    def taps(self) -> int:
        return int(self.weights.shape[1])

    @property
    def plain(self) -> bool:
        """Every output is one input, unweighted."""
        return self.taps == 1 and bool(np.all((self.weights == 1) | self.outside[:, None]))


def coordinates(rule: AxisRule) -> Array:
    """Where each output element lies on the input axis."""
    index = np.arange(rule.resized, dtype=np.float64)
    stretched = rule.scale * rule.extent
    if rule.coordinates == "align_corners":
        return index * 0 if stretched == 1 else index * (rule.extent - 1) / (stretched - 1)
    if rule.coordinates == "asymmetric":
        return index / rule.scale
    if rule.coordinates == "tf_crop_and_resize":
        start, end = rule.roi
        step = (end - start) * (rule.extent - 1)
        inner = index * 0 + step / 2 if stretched == 1 else index * step / (stretched - 1)
        return inner + start * (rule.extent - 1)
    if rule.coordinates == "pytorch_half_pixel" and rule.resized == 1:
        return index * 0
    half_pixel = (index + 0.5) / rule.scale - 0.5
    if rule.coordinates == "half_pixel_symmetric":
        return half_pixel + rule.extent / 2 * (1 - rule.resized / stretched)
    return half_pixel


def matrix(rule: AxisRule) -> tuple[Array, Array]:
    """Weights as a dense matrix `[resized, extent]`, and which outputs are extrapolated."""
    places = coordinates(rule)
    outside = np.zeros(rule.resized, np.bool_)
    if rule.coordinates == "tf_crop_and_resize":
        outside = (places < 0) | (places > rule.extent - 1)
    weights = np.zeros((rule.resized, rule.extent))
    for row, place in enumerate(places.tolist()):
        if not outside[row]:
            for index, weight in _taps(rule, place).items():
                weights[row, index] += weight
    # What rounding leaves of a zero would widen the window of an axis.
    exact = np.rint(weights)
    return np.where(np.abs(weights - exact) < 1e-12, exact, weights), outside


def _taps(rule: AxisRule, place: float) -> dict[int, float]:
    """The inputs that one output takes; those beyond the edge are the edge, unless they are excluded."""
    last = rule.extent - 1
    if rule.mode == "nearest":
        return {min(max(_rounded(rule.nearest_mode, place), 0), last): 1.0}
    shrink = min(rule.scale, 1.0) if rule.antialias else 1.0
    radius = (1 if rule.mode == "linear" else 2) / shrink
    near = range(floor(place - radius), ceil(place + radius) + 1)
    found = {index: _weight(rule, (index - place) * shrink) for index in near}
    if rule.exclude_outside:
        found = {index: weight for index, weight in found.items() if 0 <= index <= last}
    total = sum(found.values()) or 1.0
    result: dict[int, float] = {}
    for index, weight in found.items():
        held = min(max(index, 0), last)
        result[held] = result.get(held, 0.0) + weight / total
    return result


def _rounded(nearest_mode: str, place: float) -> int:
    if nearest_mode == "floor":
        return floor(place)
    if nearest_mode == "ceil":
        return ceil(place)
    return ceil(place - 0.5) if nearest_mode == "round_prefer_floor" else floor(place + 0.5)


def _weight(rule: AxisRule, distance: float) -> float:
    """The interpolation kernel at a distance from the tap."""
    x, a = abs(distance), rule.cubic_a
    if rule.mode == "linear":
        return max(0.0, 1 - x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def window(rule: AxisRule) -> Taps:
    """The narrowest moving window over the taps of an axis."""
    weights, outside = matrix(rule)
    rows = np.flatnonzero((weights != 0).any(axis=1))
    if not rows.size:
        return Taps(0, 1, 0, np.zeros((rule.resized, 1)), outside)
    low = (weights[rows] != 0).argmax(axis=1)
    high = rule.extent - 1 - (weights[rows, ::-1] != 0).argmax(axis=1)
    places = coordinates(rule)
    slope = float(places[-1] - places[0]) / (rule.resized - 1) if rule.resized > 1 else 0.0
    candidates = {Fraction(slope).limit_denominator(bound) for bound in (1, 2, 3, 4, 8, 16, 64, 256, 1024)}
    fits = [_fit(fraction, rows, low, high) for fraction in candidates]
    taps, divisor, multiplier, offset = min(fits)
    table = np.zeros((rule.resized, taps))
    for row in rows.tolist():
        base = (multiplier * row + offset) // divisor
        for tap in range(taps):
            if 0 <= base + tap < rule.extent:
                table[row, tap] = weights[row, base + tap]
    return Taps(multiplier, divisor, offset, table, outside)


def _fit(slope: Fraction, rows: Array, low: Array, high: Array) -> tuple[int, int, int, int]:
    """Taps, divisor, multiplier and offset of the window with a slope, which starts as late as every output allows."""
    multiplier, divisor = slope.numerator, slope.denominator
    offset = int((divisor * (low + 1) - 1 - multiplier * rows).min())
    base = (multiplier * rows + offset) // divisor
    return int((high - base).max()) + 1, divisor, multiplier, offset
