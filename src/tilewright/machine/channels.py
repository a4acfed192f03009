"""Channels of machines with many engines: nets of them written out one by one, and the way from each place to each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from tilewright.base.schema import Source
from tilewright.machine.parts import Channel, Net


def channels_of(nets: Mapping[str, Net], places: Sequence[str], source: Source) -> dict[str, Channel]:
    """All channels, those of nets under names of their own."""
    found: dict[str, Channel] = {}
    for key, net in nets.items():
        here = source.inside(key)
        for where, ends in (("ends", net.ends), ("to", net.to)):
            for end in ends:
                if end not in places:
                    known = ", ".join(places)
                    raise here.wrong(where, f"'{end}' is neither an engine nor the memory at home ({known})")
        if bool(net.to) != (net.kind == "one_way"):
            raise here.wrong("to", "must name those that receive where kind is one_way, and nothing elsewhere")
        found |= {channel.name: channel for channel in _net(net, here)}
    return found


def _net(net: Net, source: Source) -> Iterator[Channel]:
    if net.kind == "one_way":
        yield Channel(net.name, net.ends, net.to, net.bits, net.energy, bool(net.multicast))
        return
    if len(net.ends) < 2 or len(set(net.ends)) < len(net.ends):
        raise source.wrong("ends", "must be two or more different names")
    if net.kind == "bus":
        yield Channel(net.name, net.ends, net.ends, net.bits, net.energy, bool(net.multicast))
        return
    for one, other in _pairs(net, source):
        for start, stop in ((one, other), (other, one)):
            yield Channel(f"{net.name} {start}-{stop}", (start,), (stop,), net.bits, net.energy, bool(net.multicast))


def _pairs(net: Net, source: Source) -> Iterator[tuple[str, str]]:
    ends = net.ends
    if net.kind == "mesh":
        if not 0 < net.columns <= len(ends):
            raise source.wrong("columns", f"must be from 1 to {len(ends)} for a mesh of so many ends")
        for index, end in enumerate(ends):
            if (index + 1) % net.columns and index + 1 < len(ends):
                yield end, ends[index + 1]
            if index + net.columns < len(ends):
                yield end, ends[index + net.columns]
    elif net.kind == "ring":
        yield from zip(ends, (*ends[1:], ends[0]) if len(ends) > 2 else ends[1:], strict=False)
    else:
        yield from ((one, other) for index, one in enumerate(ends) for other in ends[index + 1 :])


def routes(channels: Sequence[Channel], places: Sequence[str], home: str) -> dict[tuple[str, str], tuple[int, ...]]:
    """By source and target: the shortest way as numbers of channels, of equal ones the first; pairs without one are
    left out. Engines hand on what is for others; the memory at home does not."""
    steps: dict[str, list[tuple[str, int]]] = {place: [] for place in places}
    for number, channel in enumerate(channels):
        for start in channel.sources:
            steps[start] += [(stop, number) for stop in channel.targets if stop != start]
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for start in places:
        ways: dict[str, tuple[int, ...]] = {start: ()}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for stop, number in steps[here] if here == start or here != home else ():
                if stop not in ways:
                    ways[stop] = (*ways[here], number)
                    waiting.append(stop)
        found |= {(start, stop): way for stop, way in ways.items() if stop != start}
    return found
