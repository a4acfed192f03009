"""Schedules as traces that Perfetto and chrome://tracing open: a lane for each engine, channel and memory.

One cycle is one nanosecond of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.schedule.scheduling import CAUSES, EngineSchedule

ENGINES, CHANNELS, MEMORIES = 1, 2, 3
"""Processes of the trace; their threads are the lanes."""


def trace_events(schedule: EngineSchedule) -> list[dict[str, object]]:
    """What happens, in the form of Chrome's trace events."""
    return [*_lanes(schedule), *_nodes(schedule), *_transfers(schedule), *_memories(schedule)]


def _lanes(schedule: EngineSchedule) -> Iterator[dict[str, object]]:
    fabric = schedule.fabric
    lanes = ((ENGINES, "engines", fabric.engines), (CHANNELS, "channels", [c.name for c in fabric.channels]))
    yield {"ph": "M", "pid": MEMORIES, "name": "process_name", "args": {"name": "memories"}}
    for process, title, names in lanes:
        yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}
        for number, name in enumerate(names):
            yield {"ph": "M", "pid": process, "tid": number, "name": "thread_name", "args": {"name": name}}


def _slice(process: int, lane: int, name: str, start: int, end: int, **more: object) -> dict[str, object]:
    times = {"ts": start / 1000, "dur": (end - start) / 1000}
    return {"ph": "X", "pid": process, "tid": lane, "name": name, **times, "args": {"start": start, "end": end, **more}}


def _nodes(schedule: EngineSchedule) -> Iterator[dict[str, object]]:
    nodes = schedule.nodes
    rows = zip(schedule.places.tolist(), schedule.start.tolist(), schedule.end.tolist(), strict=True)
    for node, (place, start, end) in enumerate(rows):
        operation = nodes.network.operations[int(nodes.operation[node])]
        more = {"operation": operation.name, "operator": operation.kind, "node": node}
        yield _slice(ENGINES, place, nodes.name(node), start, end, **more)


def _transfers(schedule: EngineSchedule) -> Iterator[dict[str, object]]:
    nodes, moved, busy = schedule.nodes, schedule.transfers, schedule.busy
    names = ("link", "transfer", "node", "start", "end")
    for link, transfer, node, start, end in zip(*(busy[name].tolist() for name in names), strict=True):
        if transfer < 0:
            operation = _operation(schedule, node)
            yield _slice(CHANNELS, link, f"streamed by {nodes.name(node)}", start, end, operation=operation)
            continue
        tensor = int(moved["tensor"][transfer])
        name = nodes.tensor_names[int(nodes.tensor_of[tensor])]
        cause, bits = CAUSES[int(moved["cause"][transfer])], int(nodes.bits[tensor])
        ways = [schedule.fabric.places[int(moved[side][transfer])] for side in ("source", "target")]
        more = {
            "operation": _operation(schedule, node),
            "cause": cause,
            "bits": bits,
            "for": nodes.name(node),
            "from": ways[0],
            "to": ways[1],
        }
        yield _slice(CHANNELS, link, name, start, end, **more)


def _operation(schedule: EngineSchedule, node: int) -> str:
    return schedule.nodes.network.operations[int(schedule.nodes.operation[node])].name


def _memories(schedule: EngineSchedule) -> Iterator[dict[str, object]]:
    """How many bits each memory of an engine holds, wherever that changes."""
    stored = schedule.stored
    for number, store in enumerate(schedule.fabric.stores[:-1]):
        mine = stored["memory"] == number
        times, index = np.unique(stored["time"][mine], return_inverse=True)
        held = np.cumsum(np.bincount(index, stored["bits"][mine], len(times)))
        for time, bits in zip(times.tolist(), held.tolist(), strict=True):
            counted = {"bits": int(bits), "of": store.bits, "time": time}
            yield {"ph": "C", "pid": MEMORIES, "name": store.name, "ts": time / 1000, "args": counted}
