"""Where every buffer lives: offsets in one or several memory banks, with the smallest peak that could be found.

A buffer lives in the half-open interval [first, last) of integer time: written by step `first`, read for the last time
by step `last - 1`; a buffer that ends at t and one that begins at t may share bytes. A buffer with an alias is part of
that buffer's storage, `alias_offset` bytes above its start; the storage lives from the first to the last moment of all
its buffers and is as large as they need together. Pins and alignments count from the start of the bank.

Order of work: aliases united; each storage put in a bank (the first it names where everything fits); every bank packed
by `packing`; where that does not reach the lower bound (or the capacity, when one is given: fitting is then the
aim, and search ends with it), exact search by `solver`, only over the spans of time that need it. Which libraries
search, and why, is told there. `seconds` is effort counted in search steps, so results do not depend on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NoReturn

from msgspec import Struct

from tilewright.errors import TilewrightError
from tilewright.plan.addresses.packing import (
    Item,
    PeakBound,
    components,
    lower_bound,
    lowest_gap,
    neighbours,
    orders,
    pack,
    peak,
)
from tilewright.plan.addresses.solver import choose_banks, tighten

ARENA = "arena"
NAMES_SHOWN = 8


class BufferRequest(Struct, frozen=True):
    """Something that needs `size` bytes during [first, last)."""

    name: str
    size: int
    first: int
    last: int
    align: int = 16
    pin: int | None = None
    alias: str | None = None
    alias_offset: int = 0
    bank: tuple[str, ...] | None = None


class Placement(Struct, frozen=True):
    """A byte offset in a bank."""

    bank: str
    offset: int


@dataclass(frozen=True)
class Allocation:
    """Where each buffer lives. `optimal`: no buffer can move to an earlier bank and no peak can be lower, proven."""

    offsets: Mapping[str, Placement]
    peaks: Mapping[str, int]
    lower_bounds: Mapping[str, int]
    status: Literal["optimal", "feasible"]
    seconds: float = field(compare=False)

    @property
    def peak(self) -> int:
        """Bytes of all banks together."""
        return sum(self.peaks.values())

    @property
    def lower_bound(self) -> int:
        """Bytes of all banks together that no packing of the same buffers into the same banks can go below."""
        return sum(self.lower_bounds.values())


class _Storage(Struct, frozen=True):
    """Buffers united by aliases: the names with their offsets inside, and the block they need together."""

    names: tuple[tuple[str, int], ...]
    item: Item
    banks: tuple[str, ...]


class _Packed(Struct, frozen=True):
    """One bank, packed."""

    offsets: list[int]
    bound: PeakBound


def allocate(
    buffers: Sequence[BufferRequest],
    *,
    capacity: int | Mapping[str, int] | None = None,
    seconds: float = 10.0,
    seed: int = 0,
) -> Allocation:
    """Places all buffers. An integer capacity holds for every bank; a bank that a mapping leaves out has no limit."""
    began = time.perf_counter()
    storages = _united(buffers)
    names = list(dict.fromkeys(bank for storage in storages for bank in storage.banks))
    limits = dict.fromkeys(names, capacity) if isinstance(capacity, int) else dict(capacity or {})
    banks, hints, proven = _banks(storages, names, limits, seconds, seed)
    offsets: dict[str, Placement] = {}
    peaks: dict[str, int] = {}
    bounds: dict[str, int] = {}
    for bank in names:
        inside = [index for index, chosen in enumerate(banks) if chosen == bank]
        items = [storages[index].item for index in inside]
        hint = [hints[index] for index in inside] if hints else None
        packed = _pack_bank(items, limits.get(bank), hint, seconds, seed)
        peaks[bank], bounds[bank] = peak(items, packed.offsets), packed.bound.bytes
        if bank in limits and peaks[bank] > limits[bank]:
            _does_not_fit(bank, limits[bank], [storages[index] for index in inside], packed)
        for index, offset in zip(inside, packed.offsets, strict=True):
            offsets |= {name: Placement(bank, offset + shift) for name, shift in storages[index].names}
    return Allocation(
        MappingProxyType({buffer.name: offsets[buffer.name] for buffer in buffers}),
        MappingProxyType(peaks),
        MappingProxyType(bounds),
        "optimal" if proven and peaks == bounds else "feasible",
        time.perf_counter() - began,
    )


def _united(buffers: Sequence[BufferRequest]) -> list[_Storage]:
    """Buffers checked one by one and grouped by the storage they share, in the order of first mention."""
    by_name = {buffer.name: buffer for buffer in buffers}
    if len(by_name) < len(buffers):
        twice = next(b.name for i, b in enumerate(buffers) if by_name[b.name] is not b or b in buffers[:i])
        raise TilewrightError("bad-buffer", f"buffer '{twice}' is given twice")
    groups: dict[str, list[tuple[BufferRequest, int]]] = {}
    for buffer in buffers:
        _check(buffer)
        root, shift = _root(buffer, by_name)
        groups.setdefault(root, []).append((buffer, shift))
    storages = [_storage(members) for members in groups.values()]
    _check_pins(storages)
    return storages


def _check(buffer: BufferRequest) -> None:
    wrong = [
        (buffer.size < 0, f"its size is {buffer.size}"),
        (buffer.last <= buffer.first, f"its lifetime [{buffer.first}, {buffer.last}) is empty"),
        (
            buffer.align < 1 or buffer.align & (buffer.align - 1) != 0,
            f"its alignment {buffer.align} is not a power of two",
        ),
        (buffer.pin is not None and buffer.pin < 0, f"it is pinned at {buffer.pin}"),
        (buffer.alias_offset < 0, f"its offset in '{buffer.alias}' is {buffer.alias_offset}"),
        (buffer.alias is None and buffer.alias_offset != 0, "it has an alias offset but no alias"),
        (buffer.bank == (), "it may live in no bank"),
    ]
    reasons = [reason for is_wrong, reason in wrong if is_wrong]
    if reasons:
        raise TilewrightError("bad-buffer", f"buffer '{buffer.name}' cannot be placed", reasons=reasons)


def _root(buffer: BufferRequest, by_name: Mapping[str, BufferRequest]) -> tuple[str, int]:
    """The buffer whose storage this one uses, and how far above its start."""
    shift, seen, current = 0, {buffer.name}, buffer
    while current.alias is not None:
        if current.alias not in by_name:
            raise TilewrightError("bad-buffer", f"buffer '{current.name}' is part of unknown buffer '{current.alias}'")
        if current.alias in seen:
            raise TilewrightError("bad-buffer", f"buffer '{buffer.name}' is part of itself", reasons=sorted(seen))
        shift += current.alias_offset
        current = by_name[current.alias]
        seen.add(current.name)
    return current.name, shift


def _storage(members: Sequence[tuple[BufferRequest, int]]) -> _Storage:
    names = ", ".join(f"'{buffer.name}'" for buffer, _ in members)
    align = max(buffer.align for buffer, _ in members)
    pins = {buffer.pin - shift for buffer, shift in members if buffer.pin is not None}
    pin = min(pins, default=None)
    banks = next((buffer.bank for buffer, _ in members if buffer.bank is not None), (ARENA,))
    for buffer, _ in members:
        banks = tuple(bank for bank in banks if buffer.bank is None or bank in buffer.bank)
    odd = [(buffer, shift) for buffer, shift in members if shift % buffer.align]
    wrong = [f"'{b.name}' is {shift} bytes inside, not a multiple of its alignment {b.align}" for b, shift in odd]
    if len(pins) > 1:
        wrong.append(f"their pins want it to start at {sorted(pins)}")
    if pin is not None and (pin < 0 or pin % align):
        wrong.append(f"it would start at {pin}, which is no multiple of {align} from 0 on")
    if not banks:
        wrong.append("they have no bank in common")
    if wrong:
        raise TilewrightError("bad-buffer", f"no place suits the storage of {names}", reasons=wrong)
    item = Item(
        max(shift + buffer.size for buffer, shift in members),
        min(buffer.first for buffer, _ in members),
        max(buffer.last for buffer, _ in members),
        align,
        pin,
    )
    return _Storage(tuple((buffer.name, shift) for buffer, shift in members), item, banks)


def _check_pins(storages: Sequence[_Storage]) -> None:
    pinned = [(s, s.item, s.item.pin) for s in storages if s.item.pin is not None and s.item.size]
    for index, (storage, item, pin) in enumerate(pinned):
        for other, more, at in pinned[:index]:
            apart = len(storage.banks) > 1 or len(other.banks) > 1 or storage.banks != other.banks
            if apart or item.last <= more.first or more.last <= item.first:
                continue
            if pin < at + more.size and at < pin + item.size:
                raise TilewrightError(
                    "bad-buffer",
                    f"'{storage.names[0][0]}' and '{other.names[0][0]}' are pinned to the same bytes at the same time",
                    reasons=[f"'{s.names[0][0]}' at {s.item.pin}, {s.item.size} bytes" for s in (other, storage)],
                )


def _banks(
    storages: Sequence[_Storage], names: list[str], limits: Mapping[str, int], seconds: float, seed: int
) -> tuple[list[str], list[int] | None, bool]:
    """A bank for each storage, offsets that fit (when there was a choice), and whether no choice is better."""
    first = [storage.banks[0] for storage in storages]
    if all(len(storage.banks) == 1 for storage in storages):
        return first, None, True
    items = [storage.item for storage in storages]
    everything = max((s.item.pin or 0) for s in storages) + sum(s.item.size + s.item.align for s in storages)
    roof = [min(limits.get(bank, everything), everything) for bank in names]
    allowed = [[names.index(bank) for bank in storage.banks] for storage in storages]
    near = neighbours(items)
    tries = [_spill(items, allowed, roof, order, near) for order in orders(items, near)]
    found = [(cost, banks, offsets) for cost, banks, offsets in tries if cost is not None]
    best = min(found, key=lambda entry: entry[0] or 0, default=None)
    if best is None or best[0]:
        # Items that no capacity admits would leave the solver without a model; the error is the same for all of them.
        for storage, own in zip(storages, allowed, strict=True):
            if storage.item.size + (storage.item.pin or 0) > max(roof[bank] for bank in own):
                _too_large(storage, limits)
        searched = choose_banks(items, allowed, roof, seconds=seconds, seed=seed)
        if searched.banks is not None:
            spilled = sum(s.item.size * s.banks.index(names[b]) for s, b in zip(storages, searched.banks, strict=True))
            if best is None or spilled < (best[0] or 0):
                best = (spilled, searched.banks, searched.offsets)
        if best is None:
            _no_banks(storages, names, limits, searched.proven)
        return [names[bank] for bank in best[1]], best[2], searched.proven
    return [names[bank] for bank in best[1]], best[2], True


def _spill(
    items: Sequence[Item],
    allowed: Sequence[Sequence[int]],
    roof: Sequence[int],
    order: Sequence[int],
    near: Sequence[Sequence[int]],
) -> tuple[int | None, list[int], list[int]]:
    """First fit over banks, items without a choice first; the cost in bytes not in first choices, None when stuck."""
    cost, banks, offsets = 0, [-1] * len(items), [0] * len(items)
    for index in sorted(order, key=lambda i: (items[i].pin is None, len(allowed[i]) > 1)):
        for choice, bank in enumerate(allowed[index]):
            taken = [(offsets[o], offsets[o] + items[o].size) for o in near[index] if banks[o] == bank]
            offset = lowest_gap(items[index], taken)
            end = offset + items[index].size
            if end <= roof[bank] and all(end <= begin or offset >= stop for begin, stop in taken):
                cost, banks[index], offsets[index] = cost + choice * items[index].size, bank, offset
                break
        else:
            return None, banks, offsets
    return cost, banks, offsets


def _pack_bank(items: Sequence[Item], limit: int | None, hint: list[int] | None, seconds: float, seed: int) -> _Packed:
    """Packs each span of time that shares no item with another; searches only where the first packing is too high."""
    bound = lower_bound(items)
    goal = bound.bytes if limit is None else max(limit, bound.bytes)
    offsets = [0] * len(items)
    groups = [[i for i in group if items[i].size] for group in components(items)]
    for index, item in enumerate(items):
        offsets[index] = item.pin or 0
    high: list[list[int]] = []
    for group in filter(None, groups):
        own = [items[i] for i in group]
        found = pack(own, bound.bytes)
        if hint is not None and peak(own, [hint[i] for i in group]) < peak(own, found):
            found = [hint[i] for i in group]
        for i, offset in zip(group, found, strict=True):
            offsets[i] = offset
        if peak(own, found) > goal:
            high.append(group)
    high.sort(key=lambda group: -peak([items[i] for i in group], [offsets[i] for i in group]))
    for group in high if seconds > 0 else []:
        own = [items[i] for i in group]
        mine = lower_bound(own)
        aim = max(goal, mine.bytes)
        # Other spans already reach this high, so nothing is gained below it.
        result = tighten(own, [offsets[i] for i in group], bound.bytes, aim, seconds=seconds / len(high), seed=seed)
        for i, offset in zip(group, result.offsets, strict=True):
            offsets[i] = offset
        if result.bound > bound.bytes:
            bound = PeakBound(result.bound, mine.at)
            goal = max(goal, bound.bytes)
    return _Packed(offsets, bound)


def _does_not_fit(bank: str, limit: int, storages: Sequence[_Storage], packed: _Packed) -> NoReturn:
    best = peak([s.item for s in storages], packed.offsets)
    if packed.bound.bytes > limit:
        what = f"bank '{bank}' needs at least {packed.bound.bytes} bytes, {limit} given"
    else:
        what = f"no packing of bank '{bank}' into {limit} bytes was found"
    raise TilewrightError(
        "does-not-fit",
        what,
        reasons=[*_live(storages, packed.bound.at), f"the smallest size known to work is {best} bytes"],
        help=f"give '{bank}' {best} bytes, or make the buffers above smaller or shorter-lived",
    )


def _live(storages: Sequence[_Storage], at: int) -> list[str]:
    live = sorted((s for s in storages if s.item.first <= at < s.item.last), key=lambda s: -s.item.size)
    lines = [f"'{s.names[0][0]}' of {s.item.size} bytes is live at time {at}" for s in live[:NAMES_SHOWN]]
    rest = live[NAMES_SHOWN:]
    return lines + ([f"and {len(rest)} more with {sum(s.item.size for s in rest)} bytes"] if rest else [])


def _too_large(storage: _Storage, limits: Mapping[str, int]) -> NoReturn:
    raise TilewrightError(
        "does-not-fit",
        f"buffer '{storage.names[0][0]}' of {storage.item.size} bytes is larger than every bank it may live in",
        reasons=[f"'{bank}' has {limits[bank]} bytes" for bank in storage.banks],
        help="allow it in a larger bank, or make it smaller",
    )


def _no_banks(storages: Sequence[_Storage], names: Sequence[str], limits: Mapping[str, int], proven: bool) -> NoReturn:
    bound = lower_bound([s.item for s in storages])
    given = ", ".join(f"'{bank}' {limits[bank]}" for bank in names if bank in limits)
    alone = _pack_bank([s.item for s in storages], None, None, 0.0, 0)
    best = peak([s.item for s in storages], alone.offsets)
    raise TilewrightError(
        "does-not-fit",
        f"the buffers {'do not fit' if proven else 'were not made to fit'} into the banks given ({given} bytes)",
        reasons=[*_live(storages, bound.at), f"the smallest size of one bank known to hold them all is {best} bytes"],
        help="enlarge a bank, or allow more buffers in a bank with room",
    )
