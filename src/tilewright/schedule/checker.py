"""Checks schedules by what happens in them alone; it shares no arithmetic with the scheduler.

A tensor is at a place from the end of what brings or makes it until it leaves. Everything else follows: nodes and
transfers touch tensors only while they are there, engines and channels do one thing at a time, and memories hold no
more than they have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import ceil, inf

from msgspec import Struct

from tilewright.schedule.nodes import Numbers
from tilewright.schedule.scheduling import EngineSchedule, NodeCosts


class _Stay(Struct):
    """A tensor at a place: bytes are taken from `taken`, it can be used from `there` on."""

    taken: int
    there: float = inf
    left: float = inf


def faults(schedule: EngineSchedule, costs: NodeCosts) -> list[str]:
    """What is wrong with a schedule, a line each."""
    stays = _stays(schedule)
    return [
        *_engines(schedule, costs),
        *_channels(schedule),
        *_memories(schedule),
        *_transfers(schedule, stays),
        *_nodes(schedule, costs, stays),
        *_results(schedule, stays),
    ]


def _tensor(schedule: EngineSchedule, tensor: int) -> str:
    nodes = schedule.nodes
    maker = int(nodes.makers[tensor])
    name = nodes.tensor_names[int(nodes.tensor_of[tensor])]
    return f"{name} of {nodes.name(maker)}" if maker >= 0 else name


def _stays(schedule: EngineSchedule) -> dict[tuple[int, int], list[_Stay]]:
    """By tensor and place, in the order of time."""
    places = [schedule.fabric.places.index(store.place) for store in schedule.fabric.stores]
    found: dict[tuple[int, int], list[_Stay]] = defaultdict(list)
    stored = schedule.stored
    rows = zip(*(stored[name].tolist() for name in ("memory", "tensor", "time", "bits")), strict=True)
    for memory, tensor, time, bits in rows:
        here = found[tensor, places[memory]]
        if bits > 0:
            here.append(_Stay(time))
        elif bits < 0:
            here[-1].left = time
    nodes, moved = schedule.nodes, schedule.transfers
    for (tensor, place), here in found.items():
        if here and nodes.makers[tensor] < 0 and place == len(schedule.fabric.places) - 1:
            here[0].there = 0
    writers = {int(t): node for node in range(nodes.count) for t in _row(nodes.writes_starts, nodes.write_tensor, node)}
    for (tensor, _), here in found.items():
        node = writers.get(tensor)
        for stay in here:
            if node is not None and stay.taken == schedule.start[node]:
                stay.there = int(schedule.end[node])
    rows = zip(*(moved[name].tolist() for name in ("tensor", "target", "start", "end")), strict=True)
    for tensor, target, start, end in rows:
        for stay in found[tensor, target]:
            if stay.taken == start:
                stay.there = min(stay.there, end)
    return found


def _row(starts: Numbers, items: Numbers, node: int) -> list[int]:
    return items[int(starts[node]) : int(starts[node + 1])].tolist()


def _is_there(stays: list[_Stay], start: float, stop: float) -> bool:
    return any(stay.there <= start and stay.left >= stop for stay in stays)


def _overlaps(periods: list[tuple[int, int, str]]) -> Iterator[tuple[str, str]]:
    last, name = 0, ""
    for start, stop, what in sorted(periods):
        if start < last and stop > start:
            yield name, what
        if stop > last:
            last, name = stop, what


def _engines(schedule: EngineSchedule, costs: NodeCosts) -> Iterator[str]:
    nodes = schedule.nodes
    work: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for node in range(nodes.count):
        start, end, place = int(schedule.start[node]), int(schedule.end[node]), int(schedule.places[node])
        work[place].append((start, end, nodes.name(node)))
        if start < 0 or end - start != costs.cycles[nodes.kind[node], place]:
            yield f"{nodes.name(node)} runs from {start} to {end}, not as long as it takes"
        for other in _row(nodes.before_starts, nodes.before, node):
            if schedule.end[other] > start:
                yield f"{nodes.name(node)} starts at {start}, before {nodes.name(other)} ends"
    for place, periods in work.items():
        for one, other in _overlaps(periods):
            yield f"{schedule.fabric.places[place]} does {one} and {other} at once"


def _channels(schedule: EngineSchedule) -> Iterator[str]:
    fabric, busy, moved = schedule.fabric, schedule.busy, schedule.transfers
    periods: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    used: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    rows = zip(*(busy[name].tolist() for name in ("link", "transfer", "node", "start", "end")), strict=True)
    for link, transfer, node, start, end in rows:
        periods[link].append((start, end, f"transfer {transfer} for {schedule.nodes.name(node)}"))
        if transfer >= 0:
            used[transfer][link] = (start, end)
    for link, all_periods in periods.items():
        for one, other in _overlaps(all_periods):
            yield f"channel {fabric.channels[link].name} carries {one} and {other} at once"
    for number, carrier in enumerate(moved["carrier"].tolist()):
        if carrier != number:
            yield from _taken_along(schedule, number, carrier, set(used[carrier]))
            continue
        pair = fabric.places[int(moved["source"][number])], fabric.places[int(moved["target"][number])]
        bits = int(schedule.nodes.bits[moved["tensor"][number]])
        if set(used[number]) != set(fabric.routes[pair]):
            yield f"transfer {number} does not take the way from {pair[0]} to {pair[1]}"
        for link, (start, end) in used[number].items():
            width = fabric.channels[link].bits
            if end - start < (ceil(bits / width) if width else 0):
                yield f"transfer {number} is faster than {fabric.channels[link].name}"
            if start < moved["start"][number] or end > moved["end"][number]:
                yield f"transfer {number} uses {fabric.channels[link].name} outside of its time"


def _taken_along(schedule: EngineSchedule, number: int, carrier: int, used: set[int]) -> Iterator[str]:
    """What is received with another transfer: the same tensor, on channels that may be heard by several."""
    fabric, moved = schedule.fabric, schedule.transfers
    way = fabric.routes[fabric.places[int(moved["source"][number])], fabric.places[int(moved["target"][number])]]
    if not used.issuperset(way) or not all(fabric.channels[link].multicast for link in way):
        yield f"transfer {number} cannot be received with transfer {carrier}"
    if any(moved[name][number] != moved[name][carrier] for name in ("tensor", "source", "start", "end")):
        yield f"transfer {number} is not what transfer {carrier} carries"


def _memories(schedule: EngineSchedule) -> Iterator[str]:
    changes: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    stored = schedule.stored
    for memory, time, bits in zip(*(stored[name].tolist() for name in ("memory", "time", "bits")), strict=True):
        changes[memory][time] += bits
    for memory, by_time in changes.items():
        store, held = schedule.fabric.stores[memory], 0
        for time in sorted(by_time):
            held += by_time[time]
            if not 0 <= held <= store.bits:
                yield f"{store.name} holds {held} bits at {time}, of {store.bits}"


def _transfers(schedule: EngineSchedule, stays: dict[tuple[int, int], list[_Stay]]) -> Iterator[str]:
    moved = schedule.transfers
    names = ("tensor", "source", "target", "start", "end")
    for tensor, source, target, start, end in zip(*(moved[name].tolist() for name in names), strict=True):
        if not schedule.nodes.bits[tensor]:
            continue
        if not _is_there(stays[tensor, source], start, end):
            yield f"{_tensor(schedule, tensor)} is sent from {schedule.fabric.places[source]} while it is not there"
        if not any(stay.taken <= start and stay.left >= end for stay in stays[tensor, target]):
            yield f"{_tensor(schedule, tensor)} comes to {schedule.fabric.places[target]} without room"


def _nodes(schedule: EngineSchedule, costs: NodeCosts, stays: dict[tuple[int, int], list[_Stay]]) -> Iterator[str]:
    nodes, home = schedule.nodes, len(schedule.fabric.places) - 1
    for node in range(nodes.count):
        start, end, engine = int(schedule.start[node]), int(schedule.end[node]), int(schedule.places[node])
        place = schedule.fabric.sites[engine]
        streamed = int(costs.streamed[nodes.kind[node], engine])
        read = _row(nodes.reads_starts, nodes.read_tensor, node)
        slots = _row(nodes.reads_starts, nodes.read_slot, node)
        for tensor, slot in zip(read, slots, strict=True):
            where = (place, home) if streamed >> slot & 1 else (place,)
            if nodes.bits[tensor] and not any(_is_there(stays[tensor, each], start, end) for each in where):
                yield f"{nodes.name(node)} reads {_tensor(schedule, tensor)} while it is not there"
        written = _row(nodes.writes_starts, nodes.write_tensor, node)
        slots = _row(nodes.writes_starts, nodes.write_slot, node)
        for tensor, slot in zip(written, slots, strict=True):
            where = home if streamed >> slot & 1 else place
            if nodes.bits[tensor] and not any(s.taken <= start and s.left >= end for s in stays[tensor, where]):
                yield f"{nodes.name(node)} writes {_tensor(schedule, tensor)} without room"


def _results(schedule: EngineSchedule, stays: dict[tuple[int, int], list[_Stay]]) -> Iterator[str]:
    nodes, home = schedule.nodes, len(schedule.fabric.places) - 1
    for tensor in range(len(nodes.bits)):
        kept = any(stay.there < inf and stay.left == inf for stay in stays[tensor, home])
        if nodes.result[tensor] and nodes.bits[tensor] and not kept:
            yield f"{_tensor(schedule, tensor)} is a result and not at home in the end"
