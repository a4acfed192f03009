"""Lending: until it is written, the memory of an output holds other tensors, and the arena is smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.core.plan import Place
from tilewright.plan.addresses.allocate import Buffer


@dataclass(frozen=True)
class Lender:
    """An output of the network: its memory is free before step `until`. Callers align it to its elements, no better."""

    index: int
    bytes: int
    until: int
    element_bytes: int


def lend(buffers: Sequence[Buffer], lenders: Sequence[Lender], element_bytes: Mapping[str, int]) -> dict[str, Place]:
    """Places for some buffers in the memory of outputs, chosen so that the peak of the others falls.

    Whatever is live at the peak and fits goes first, the largest of it; ends when nothing at the peak can move.
    """
    lent: dict[str, Place] = {}
    inside: dict[int, list[tuple[Buffer, int]]] = {lender.index: [] for lender in lenders}
    while True:
        left = [b for b in buffers if b.name not in lent]
        moved = False
        for buffer in sorted(_at_peak(left), key=lambda b: (-b.size, b.name)):
            place = _fit(buffer, lenders, inside, element_bytes.get(buffer.name))
            if place is not None:
                lent[buffer.name] = place
                inside[place.index].append((buffer, place.offset))
                moved = True
                break
        if not moved:
            return lent


def _at_peak(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The buffers that are live when most bytes are."""
    best: list[Buffer] = []
    most = 0
    for step in sorted({b.first for b in buffers}):
        live = [b for b in buffers if b.first <= step < b.last]
        total = sum(b.size for b in live)
        if total > most:
            best, most = live, total
    return best


def _fit(
    buffer: Buffer, lenders: Sequence[Lender], inside: Mapping[int, list[tuple[Buffer, int]]], element_bytes: int | None
) -> Place | None:
    """The lowest free offset in the first output that is large, free for long enough and aligned well enough."""
    if element_bytes is None:
        return None
    for lender in lenders:
        if buffer.last > lender.until or buffer.size > lender.bytes or element_bytes > lender.element_bytes:
            continue
        taken = sorted(
            (offset, offset + other.size)
            for other, offset in inside[lender.index]
            if other.first < buffer.last and buffer.first < other.last
        )
        offset = 0
        for start, end in taken:
            if offset + buffer.size <= start:
                break
            offset = max(offset, -(-end // buffer.align) * buffer.align)
        if offset + buffer.size <= lender.bytes:
            return Place("output", offset, lender.index)
    return None
