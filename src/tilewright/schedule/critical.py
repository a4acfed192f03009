"""What a schedule waits for: from its end back to its beginning, each step with the one that it began behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from tilewright.schedule.scheduling import CAUSES, EngineSchedule

WAIT = "wait"
"""Of time in which nothing that is known was waited for."""


class PathStep(Struct, frozen=True):
    """A node or transfer on the critical path."""

    kind: str
    """`compute`, why something is sent (`fetch`, `pass`, `evict`, `result`), or `wait`."""
    name: str
    """The operation, or the tensor."""
    where: str
    """The engine, or the places between which it is sent."""
    start: int
    end: int

    @property
    def cycles(self) -> int:
        return self.end - self.start


class _Event(Struct, frozen=True):
    """A node or a transfer: what it may wait for is what ends as it starts, at one of the same resources."""

    step: PathStep
    makes: frozenset[tuple[str, int]]
    """Resources that are free, or there, when it ends."""
    needs: tuple[tuple[str, int], ...]
    """Those that it may have waited for, the most telling first."""


def critical_path(schedule: EngineSchedule) -> tuple[PathStep, ...]:
    """From the beginning to the end of a schedule, without gaps."""
    events = [*_nodes(schedule), *_transfers(schedule)]
    by_end: dict[int, list[_Event]] = defaultdict(list)
    for event in events:
        by_end[event.step.end].append(event)
    now = max(events, key=lambda event: (event.step.end, event.step.start), default=None)
    found: list[PathStep] = []
    while now is not None:
        found.append(now.step)
        start = now.step.start
        before = [event for event in by_end[start] if event.step.start < start]
        behind = next((e for need in now.needs for e in before if need in e.makes), None)
        if behind is None and start > 0:
            earlier = [time for time in by_end if time < start]
            at = max((time for time in earlier if any(e.step.start < time for e in by_end[time])), default=0)
            last = [event for event in by_end[at] if event.step.start < at]
            behind = next(iter([*before, *last]), None)
            if not before:
                found.append(PathStep(WAIT, "", "", at if behind else 0, start))
        now = behind
    return tuple(_joined(reversed(found)))


def _joined(steps: Iterator[PathStep]) -> Iterator[PathStep]:
    """Nodes of one operation behind each other as one."""
    last: PathStep | None = None
    for step in steps:
        if last and (last.kind, last.name, last.where, last.end) == (step.kind, step.name, step.where, step.start):
            last = PathStep(last.kind, last.name, last.where, last.start, step.end)
            continue
        if last:
            yield last
        last = step
    if last:
        yield last


def _nodes(schedule: EngineSchedule) -> Iterator[_Event]:
    nodes, fabric = schedule.nodes, schedule.fabric
    streams: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for link, transfer, node in zip(
        *(schedule.busy[name].tolist() for name in ("link", "transfer", "node")), strict=True
    ):
        if transfer < 0:
            streams[node].append(("link", link))
    starts: list[int] = nodes.before_starts.tolist()
    before: list[int] = nodes.before.tolist()
    rows: list[list[int]] = np.stack([schedule.places, schedule.start, schedule.end], 1).tolist()
    for node, (place, start, end) in enumerate(rows):
        site = ("site", fabric.sites[place])
        name = nodes.network.operations[int(nodes.operation[node])].name
        waits = [("node", other) for other in before[starts[node] : starts[node + 1]]]
        yield _Event(
            PathStep("compute", name, fabric.places[place], start, end),
            frozenset({("node", node), ("engine", place), site, *streams[node]}),
            (("for", node), *waits, ("engine", place), *streams[node], site),
        )


def _transfers(schedule: EngineSchedule) -> Iterator[_Event]:
    nodes, moved, places = schedule.nodes, schedule.transfers, schedule.fabric.places
    links: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for link, transfer in zip(*(schedule.busy[name].tolist() for name in ("link", "transfer")), strict=True):
        links[transfer].append(("link", link))
    names = ("tensor", "source", "target", "node", "cause", "carrier", "start", "end")
    rows: list[list[int]] = np.stack([moved[name].astype(np.int64) for name in names], 1).tolist()
    for tensor, source, target, node, cause, carrier, start, end in rows:
        maker = int(nodes.makers[tensor])
        made = [("node", maker)] if maker >= 0 else []
        yield _Event(
            PathStep(
                CAUSES[cause],
                nodes.tensor_names[int(nodes.tensor_of[tensor])],
                f"{places[source]} to {places[target]}",
                start,
                end,
            ),
            frozenset({("for", node), ("tensor", tensor), ("site", target), ("site", source), *links[carrier]}),
            (*made, ("tensor", tensor), *links[carrier], ("site", target), ("site", source)),
        )
