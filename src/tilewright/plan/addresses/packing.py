"""One memory bank: the bytes it must have at least, and fast packings that usually need no more.

An item is a rectangle, lifetime [first, last) by bytes [offset, offset + size). Packing tries a few orders of first
fit, then moves the item that makes the peak to the front of the best order, again and again. On networks this meets the
lower bound nearly always; `solver` closes the gaps that remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from msgspec import Struct

# What one call may spend, in looks at a pair of items that live at the same time; an item costs about eight such looks.
EFFORT = 30_000
EFFORT_PER_ITEM = 8


class Item(Struct, frozen=True):
    """A block of `size` bytes, live in [first, last), at a multiple of `align`, or exactly at `pin`."""

    size: int
    first: int
    last: int
    align: int
    pin: int | None = None


class PeakBound(Struct, frozen=True):
    """No packing has a smaller peak than `bytes`; the items live at time `at` show why."""

    bytes: int
    at: int


def round_up(value: int, align: int) -> int:
    """The smallest multiple of `align` that is not below `value`."""
    return -(-value // align) * align


def peak(items: Sequence[Item], offsets: Sequence[int]) -> int:
    """The first byte above everything."""
    return max((offset + item.size for item, offset in zip(items, offsets, strict=True)), default=0)


def lower_bound(items: Sequence[Item]) -> PeakBound:
    """The most bytes live at one time, alignment gaps included, and the end of the highest pinned item.

    Items that start at multiples of A cannot be closer than their sizes rounded up to A, whatever lies between them;
    only the topmost needs no rounding. This is said once for each alignment, of the items aligned at least as strictly.
    """
    best = PeakBound(0, 0)
    for item in items:
        if item.pin is not None and item.pin + item.size > best.bytes:
            best = PeakBound(item.pin + item.size, item.first)
    for align in sorted({item.align for item in items}):
        strict = [item for item in items if item.align >= align and item.size]
        best = max(best, _live_bound(strict, align), key=lambda bound: bound.bytes)
    return best


def _live_bound(items: Sequence[Item], align: int) -> PeakBound:
    events = sorted(
        [(item.first, 1, index) for index, item in enumerate(items)]
        + [(item.last, 0, index) for index, item in enumerate(items)]
    )
    best, total = PeakBound(0, 0), 0
    ended: set[int] = set()
    savings: list[tuple[int, int]] = []
    """What is not needed of the rounded size of each item, the most first, of some that have ended, too."""
    for time, begins, index in events:
        rounded = round_up(items[index].size, align)
        if not begins:
            ended.add(index)
            total -= rounded
            continue
        heappush(savings, (items[index].size - rounded, index))
        while savings[0][1] in ended:
            heappop(savings)
        total += rounded
        if total + savings[0][0] > best.bytes:
            best = PeakBound(total + savings[0][0], time)
    return best


def components(items: Sequence[Item]) -> list[list[int]]:
    """Indices of items in groups that never live at the same time as another group: each can be packed alone."""
    groups: list[list[int]] = []
    end = None
    for index in sorted(range(len(items)), key=lambda i: (items[i].first, i)):
        if end is None or items[index].first >= end:
            groups.append([])
        groups[-1].append(index)
        end = max(end or items[index].last, items[index].last)
    return groups


def neighbours(items: Sequence[Item]) -> list[list[int]]:
    """For each item those with bytes that live at the same time as it."""
    found: list[list[int]] = [[] for _ in items]
    live: list[int] = []
    for index in sorted(range(len(items)), key=lambda i: (items[i].first, i)):
        if not items[index].size:
            continue
        live = [other for other in live if items[other].last > items[index].first]
        for other in live:
            found[other].append(index)
            found[index].append(other)
        live.append(index)
    return found


def lowest_gap(item: Item, taken: list[tuple[int, int]]) -> int:
    """The lowest aligned offset where the item meets none of the taken [begin, end) byte ranges."""
    return first_gap(item.size, taken, item.align) if item.pin is None else item.pin


def first_gap(size: int, taken: Iterable[tuple[int, int]], align: int = 1) -> int:
    """The lowest aligned offset from which so many bytes meet none of the taken [begin, end) ranges."""
    offset = 0
    for begin, end in sorted(taken):
        if offset + size <= begin:
            break
        if end > offset:
            offset = round_up(end, align)
    return offset


def smallest_gap(size: int, taken: Iterable[tuple[int, int]], capacity: int) -> int | None:
    """The begin of the smallest run of free bytes that has room for so many, so that large ones stay; None without."""
    best, found, free = capacity + 1, None, 0
    for begin, end in (*sorted(taken), (capacity, capacity)):
        if size <= begin - free < best:
            best, found = begin - free, free
        free = max(free, end)
    return found


def _first_fit(items: Sequence[Item], order: Sequence[int], near: Sequence[Sequence[int]]) -> list[int]:
    offsets = [0] * len(items)
    placed: list[tuple[int, int] | None] = [None] * len(items)
    for index in order:
        taken = [span for other in near[index] if (span := placed[other]) is not None]
        offsets[index] = lowest_gap(items[index], taken)
        placed[index] = (offsets[index], offsets[index] + items[index].size)
    return offsets


def orders(items: Sequence[Item], near: Sequence[Sequence[int]]) -> list[list[int]]:
    """Orders worth trying for first fit; pinned items always come first, since they do not move."""
    crowd = [item.size + sum(items[other].size for other in near[index]) for index, item in enumerate(items)]
    keys: list[list[tuple[int, int]]] = [
        [(-item.size, item.first) for item in items],
        [(-item.size * (item.last - item.first), item.first) for item in items],
        [(item.first - item.last, -item.size) for item in items],
        [(-all_bytes, -item.size) for item, all_bytes in zip(items, crowd, strict=True)],
        [(item.first, -item.size) for item in items],
    ]
    return [sorted(range(len(items)), key=lambda i: (items[i].pin is None, key[i], i)) for key in keys]


def pack(items: Sequence[Item], target: int) -> list[int]:
    """Offsets with a low peak; returns early with the first packing that is not higher than `target`."""
    near = neighbours(items)
    tries = max(2, EFFORT // sum(EFFORT_PER_ITEM + len(own) for own in near))
    best: list[int] | None = None
    best_order: list[int] = []
    for order in orders(items, near)[:tries]:
        offsets = _first_fit(items, order, near)
        if best is None or peak(items, offsets) < peak(items, best):
            best, best_order = offsets, order
        if peak(items, best) <= target:
            return best
        tries -= 1
    return _promoted(items, best_order, best or [], near, min(tries, 2 * len(items)), target)


def _promoted(
    items: Sequence[Item], order: list[int], best: list[int], near: Sequence[Sequence[int]], tries: int, target: int
) -> list[int]:
    """First fit again with the item that made the last peak in front."""
    offsets = best
    for _ in range(tries):
        top = max(range(len(items)), key=lambda i: (offsets[i] + items[i].size, items[i].pin is None))
        order = sorted(order, key=lambda i: (items[i].pin is None, i != top))
        offsets = _first_fit(items, order, near)
        if peak(items, offsets) < peak(items, best):
            best = offsets
        if peak(items, best) <= target:
            break
    return best
