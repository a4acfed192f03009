"""Lending: until it is written, the memory of an output holds other tensors, and the arena is smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tilewright.core.plan import Place
from tilewright.plan.addresses.allocate import BufferRequest
from tilewright.plan.addresses.lifetimes import Lifetimes, LiveBytes, Moments
from tilewright.plan.addresses.packing import first_gap


class Lender(Struct, frozen=True):
    """An output of the network: its memory is free before step `until`. Callers align it to its elements, no better."""

    index: int
    bytes: int
    until: int
    element_bytes: int


class _Lent(Struct, frozen=True):
    """What lies in an output: when it lives, and its bytes [begin, end)."""

    lifetimes: Lifetimes
    spans: list[tuple[int, int]]


def lend(
    buffers: Sequence[BufferRequest], lenders: Sequence[Lender], element_bytes: Mapping[str, int]
) -> dict[str, Place]:
    """Places for some buffers in the memory of outputs, chosen so that the peak of the others falls.

    Whatever is live at the peak and fits goes first, the largest of it; ends when nothing at the peak can move.
    """
    lent: dict[str, Place] = {}
    moments = Moments(buffer.first for buffer in buffers)
    inside = {lender.index: _Lent(Lifetimes(moments), []) for lender in lenders}
    live, untried = LiveBytes(moments), Lifetimes(moments)
    for buffer in buffers:
        live.add(buffer.first, buffer.last, buffer.size)
        untried.add(buffer.first, buffer.last)
    while True:
        most, moment = live.peak()
        if not most:
            return lent
        for number in sorted(untried.at(moment), key=lambda number: (-buffers[number].size, buffers[number].name)):
            buffer = buffers[number]
            # Outputs only fill up: what finds no place now never will.
            untried.remove(number)
            place = _fit(buffer, lenders, inside, element_bytes.get(buffer.name))
            if place is not None:
                lent[buffer.name] = place
                inside[place.index].lifetimes.add(buffer.first, buffer.last)
                inside[place.index].spans.append((place.offset, place.offset + buffer.size))
                live.add(buffer.first, buffer.last, -buffer.size)
                break
        else:
            return lent


def _fit(
    buffer: BufferRequest,
    lenders: Sequence[Lender],
    inside: Mapping[int, _Lent],
    element_bytes: int | None,
) -> Place | None:
    """The lowest free offset in the first output that is large, free for long enough and aligned well enough."""
    if element_bytes is None:
        return None
    for lender in lenders:
        if buffer.last > lender.until or buffer.size > lender.bytes or element_bytes > lender.element_bytes:
            continue
        own = inside[lender.index]
        taken = (own.spans[number] for number in own.lifetimes.during(buffer.first, buffer.last))
        offset = first_gap(buffer.size, taken, buffer.align)
        if offset + buffer.size <= lender.bytes:
            return Place("output", offset, lender.index)
    return None
