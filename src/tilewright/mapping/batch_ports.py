"""One port, for many mappings at once: cycles in which windows lie, and loads that hide behind the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Array = Any
"""An array of the library in use."""


def reduced(
    xp: Any, busy: Sequence[Array], least: Sequence[Array], once: Sequence[Array], surplus: Array
) -> list[Array]:
    """Takes surplus cycles off the longest loads first (`tilewright.price.array_latency`), of those that come once."""
    count = len(busy)
    keys = [xp.where(flag, value, -1.0) for flag, value in zip(once, busy, strict=True)]
    floors = [floor + xp.zeros_like(surplus) for floor in least]
    places = [xp.zeros_like(surplus) + index for index in range(count)]
    for end in range(count - 1, 0, -1):
        for i in range(end):
            swap = (keys[i + 1] > keys[i]) | ((keys[i + 1] == keys[i]) & (floors[i + 1] > floors[i]))
            for values in (keys, floors, places):
                values[i], values[i + 1] = (
                    xp.where(swap, values[i + 1], values[i]),
                    xp.where(swap, values[i], values[i + 1]),
                )
    left, active = list(keys), keys[0] >= 0
    for last in range(count):
        active = active & (keys[last] >= 0)
        over = left[last] - floors[last]
        most = over * (last + 1)
        stops = active & (surplus < most)
        goes = active & ~stops
        taken = xp.where(stops, surplus / (last + 1), xp.where(goes, over, 0.0))
        left[: last + 1] = [value - taken for value in left[: last + 1]]
        surplus = xp.where(goes, surplus - most, surplus)
        active = goes
    result: list[Array] = []
    for index, (value, flag) in enumerate(zip(busy, once, strict=True)):
        reduced: Array = 0.0
        for place, kept in zip(places, left, strict=True):
            reduced = reduced + xp.where(place == index, kept, 0.0)
        result.append(xp.where(flag, reduced, value))
    return result


def levelled(
    xp: Any, busy: Sequence[Array], least: Sequence[Array], once: Sequence[Array], surplus: Array
) -> list[Array]:
    """Takes surplus cycles off the longest loads down to one level, but from none more than it needs at least."""
    needed = [xp.where(flag, value, 0.0) for flag, value in zip(once, busy, strict=True)]
    floors = [xp.where(low < value, low, value) for low, value in zip(least, needed, strict=True)]

    def taken(level: Array) -> Array:
        total: Array = 0.0
        for value, low in zip(needed, floors, strict=True):
            kept = xp.where(level > low, level, low)
            total = total + xp.where(value > kept, value - kept, 0.0)
        return total

    # What is taken falls with the level, in straight pieces between the loads and their floors.
    above: Array = xp.zeros_like(surplus)
    for value in needed:
        above = xp.where(value > above, value, above)
    below, most, least_taken = xp.zeros_like(surplus), taken(xp.zeros_like(surplus)), xp.zeros_like(surplus)
    for corner in (*needed, *floors):
        gone = taken(corner)
        lower = (gone > surplus) & (corner > below)
        upper = (gone <= surplus) & (corner < above)
        below, most = xp.where(lower, corner, below), xp.where(lower, gone, most)
        above, least_taken = xp.where(upper, corner, above), xp.where(upper, gone, least_taken)
    slope = xp.where(most > least_taken, most - least_taken, 1.0)
    level = xp.where(taken(0.0 * surplus) <= surplus, 0.0, above - (surplus - least_taken) * (above - below) / slope)
    result: list[Array] = []
    for value, low, flag, whole in zip(needed, floors, once, busy, strict=True):
        kept = xp.where(level > low, level, low)
        result.append(xp.where(flag, xp.where(value < kept, value, kept), whole))
    return result


def covered_cycles(xp: Any, periods: list[Array], sizes: list[Array]) -> Array:
    """Cycles of the longest period that lie in windows, each at the start of its period; periods divide each other."""
    count = len(periods)
    for end in range(count - 1, 0, -1):
        for i in range(end):
            swap = (periods[i + 1] < periods[i]) | ((sizes[i] > 0) & (sizes[i + 1] == 0))
            for values in (periods, sizes):
                values[i], values[i + 1] = (
                    xp.where(swap, values[i + 1], values[i]),
                    xp.where(swap, values[i], values[i + 1]),
                )
    whole: list[Array] = []

    def marked(until: Array, upto: int) -> Array:
        """Cycles before `until` in the windows of the shortest periods."""
        if upto == 0:
            return 0 * until
        period, size = periods[upto - 1], sizes[upto - 1]
        rest = until % period
        inside = xp.where(rest < size, rest, size)
        return until // period * whole[upto - 1] + inside + marked(rest, upto - 1) - marked(inside, upto - 1)

    for index in range(count):
        whole.append(sizes[index] + marked(periods[index], index) - marked(sizes[index], index))
    return whole[-1]
