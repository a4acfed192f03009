"""Judges allocations and orders without any code of the planner: slow, literal, for tests only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

from tilewright.plan.addresses.allocate import Allocation, BufferRequest
from tilewright.plan.order import Order, OrderedTask


def problems(
    buffers: Sequence[BufferRequest], result: Allocation, capacity: Mapping[str, int] | None = None
) -> list[str]:
    """Everything wrong with an allocation, byte by byte and moment by moment. For small instances."""
    found = list(_wrong_places(buffers, result, capacity or {}))
    owners = {b.name: _owner(b, {o.name: o for o in buffers}) for b in buffers}
    moments = sorted({b.first for b in buffers})
    spans: dict[str, tuple[int, int]] = {}
    for buffer in buffers:
        first, last = spans.get(owners[buffer.name], (buffer.first, buffer.last))
        spans[owners[buffer.name]] = (min(first, buffer.first), max(last, buffer.last))
    for moment in moments:
        ranges: list[tuple[str, int, int, str]] = []
        for buffer in buffers:
            first, last = spans[owners[buffer.name]]
            if first <= moment < last and buffer.size:
                place = result.offsets[buffer.name]
                ranges.append((place.bank, place.offset, place.offset + buffer.size, buffer.name))
        for bank, begin, end, name in ranges:
            for other_bank, other_begin, other_end, other in ranges:
                apart = bank != other_bank or end <= other_begin or other_end <= begin
                if not apart and owners[name] != owners[other]:
                    found.append(f"{name} and {other} overlap at time {moment}")
    return found


def _owner(buffer: BufferRequest, by_name: Mapping[str, BufferRequest]) -> str:
    return buffer.name if buffer.alias is None else _owner(by_name[buffer.alias], by_name)


def _wrong_places(buffers: Sequence[BufferRequest], result: Allocation, capacity: Mapping[str, int]) -> Iterator[str]:
    if set(result.offsets) != {buffer.name for buffer in buffers}:
        yield "not the same names"
    tops: dict[str, int] = {}
    for buffer in buffers:
        place = result.offsets[buffer.name]
        tops[place.bank] = max(tops.get(place.bank, 0), place.offset + buffer.size)
        if place.offset < 0 or place.offset % buffer.align != 0:
            yield f"{buffer.name} is at {place.offset}, not aligned to {buffer.align}"
        if buffer.pin is not None and place.offset != buffer.pin:
            yield f"{buffer.name} is not at its pin"
        if buffer.bank is not None and place.bank not in buffer.bank:
            yield f"{buffer.name} is in bank {place.bank}"
        if buffer.alias is not None:
            base = result.offsets[buffer.alias]
            if (place.bank, place.offset) != (base.bank, base.offset + buffer.alias_offset):
                yield f"{buffer.name} is not where its alias says"
    for bank, top in tops.items():
        if result.peaks[bank] != top:
            yield f"peak of {bank} is {top}, said to be {result.peaks[bank]}"
        if top > capacity.get(bank, top):
            yield f"{bank} is over its capacity"
    for bank, bound in result.lower_bounds.items():
        if bound > result.peaks[bank]:
            yield f"the lower bound of {bank} is above its peak"


def least_peak(buffers: Sequence[BufferRequest]) -> int:
    """The smallest peak of one bank without aliases, by trying every offset of every buffer in turn."""
    height = sum(b.size + b.align for b in buffers) + max([b.pin or 0 for b in buffers], default=0)

    def complete(index: int, placed: list[tuple[BufferRequest, int]], top: int, best: int) -> int:
        if top >= best:
            return best
        if index == len(buffers):
            return top
        buffer = buffers[index]
        for offset in range(0, best, buffer.align) if buffer.pin is None else (buffer.pin,):
            free = all(
                o.last <= buffer.first or buffer.last <= o.first or at + o.size <= offset or offset + buffer.size <= at
                for o, at in placed
                if o.size and buffer.size
            )
            if free:
                best = complete(index + 1, [*placed, (buffer, offset)], max(top, offset + buffer.size), best)
        return best

    return complete(0, [], 0, height + 1)


def least_spill(buffers: Sequence[BufferRequest], capacity: Mapping[str, int]) -> int | None:
    """The fewest bytes outside first-choice banks, by trying every choice of banks; None when nothing fits."""
    best: int | None = None
    for banks in product(*(buffer.bank or ("arena",) for buffer in buffers)):
        inside = {name: [b for b, bank in zip(buffers, banks, strict=True) if bank == name] for name in set(banks)}
        if any(least_peak(group) > capacity[name] for name, group in inside.items()):
            continue
        cost = sum(b.size * (b.bank or ("arena",)).index(bank) for b, bank in zip(buffers, banks, strict=True))
        best = cost if best is None else min(best, cost)
    return best


def peak_of(
    names: Sequence[str], tasks: Sequence[OrderedTask], sizes: Mapping[str, int], keep: frozenset[str]
) -> int | None:
    """The most bytes live at once when tasks run in this order; None when a task runs before what it needs."""
    by_name = {task.name: task for task in tasks}
    made = {name for task in tasks for name in task.makes}
    live = {name for task in tasks for name in task.needs if name not in made} | (keep - made)
    peak = sum(sizes.get(name, 0) for name in live)
    for index, name in enumerate(names):
        task = by_name[name]
        if not live.issuperset(task.needs):
            return None
        live |= set(task.makes)
        peak = max(peak, sum(sizes.get(buffer, 0) for buffer in live))
        later = {buffer for other in names[index + 1 :] for buffer in by_name[other].needs}
        live &= later | keep
    return peak


def best_order_peak(tasks: Sequence[OrderedTask], sizes: Mapping[str, int], keep: frozenset[str]) -> int:
    """The smallest peak of all orders, by trying all of them."""
    peaks = (peak_of([task.name for task in way], tasks, sizes, keep) for way in permutations(tasks))
    return min(peak for peak in peaks if peak is not None)


def order_problems(
    tasks: Sequence[OrderedTask], sizes: Mapping[str, int], keep: frozenset[str], found: Order
) -> list[str]:
    """Everything wrong with an order."""
    if sorted(found.names) != sorted(task.name for task in tasks):
        return ["not the same tasks"]
    peak = peak_of(found.names, tasks, sizes, keep)
    if peak is None:
        return ["a task runs before what it needs"]
    return [] if peak == found.peak else [f"its peak is {peak}, said to be {found.peak}"]
