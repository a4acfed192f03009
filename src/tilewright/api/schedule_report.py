"""What is said about a schedule over many engines: its values, a trace, and a page with pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins

from tilewright.api.scheduling import Scheduled
from tilewright.base.files import write_file
from tilewright.errors import TilewrightError
from tilewright.report.schedule_page import TracedSchedule, render_schedules
from tilewright.schedule.critical import critical_path
from tilewright.schedule.nodes import Numbers
from tilewright.schedule.scheduling import EngineSchedule
from tilewright.schedule.trace import trace_events

OperationRow = tuple[str, str, str, int, int, int, int]
"""Of an operation: name, kind, engines, nodes, start, end, and cycles of work."""
VALUES = "otherData"
"""Where a trace may say what it likes."""


def operation_rows(found: EngineSchedule) -> list[OperationRow]:
    """By operation, in their order."""
    rows: list[OperationRow] = []
    for number, operation in enumerate(found.nodes.network.operations):
        mine = np.flatnonzero(found.nodes.operation == number)
        there: Numbers = found.places[mine]
        engines = [name for place, name in enumerate(found.fabric.places) if (there == place).any()]
        start, end = int(found.start[mine].min()), int(found.end[mine].max())
        work = int((found.end[mine] - found.start[mine]).sum())
        rows.append((operation.name, operation.kind, ", ".join(engines), len(mine), start, end, work))
    return rows


def schedule_values(found: Scheduled) -> dict[str, Any]:
    """All that is known of a schedule but when each node runs, for JSON."""
    one = found.schedule
    names = ("name", "kind", "engines", "nodes", "start", "end", "work")
    return {
        "network": one.nodes.network.name,
        "machine": one.fabric.name,
        "latency": one.latency,
        "bound": found.bound,
        "energy_bound": found.energy_bound,
        "energy": one.energy,
        "edp": one.latency * one.energy,
        "memory": one.summary.memory(one.fabric),
        "energies": dict(one.summary.energies),
        "peaks": dict(one.summary.peaks),
        "utilisation": one.utilisation(),
        "nodes": one.nodes.count,
        "edges": one.nodes.edges,
        "transfers": len(one.transfers),
        "splits": {
            name: {"across": [list(loop) for loop in split.across], "within": [list(loop) for loop in split.within]}
            for name, split in found.how.splits.items()
        },
        "fusion_ends": sorted(found.how.cuts),
        "tried": dict(found.tried),
        "evaluated": found.evaluated,
        "exhaustive": found.exhaustive,
        "stopped": found.stopped,
        "front": [
            {"latency": each.latency, "energy": each.energy, "edp": each.value("edp"), "memory": each.memory}
            for each in found.front
        ],
        "critical_path": [to_builtins(step) for step in critical_path(one)],
        "operations": [dict(zip(names, row, strict=True)) for row in operation_rows(one)],
    }


def schedule_trace(found: Scheduled) -> dict[str, Any]:
    """A trace for Perfetto, which holds the values too."""
    return {"traceEvents": trace_events(found.schedule), VALUES: schedule_values(found)}


def read_schedule_trace(path: Path) -> TracedSchedule:
    """A schedule from the trace that was written of it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return TracedSchedule(path.stem, data["traceEvents"], {**data[VALUES], "latency": data[VALUES]["latency"]})
    except FileNotFoundError as missing:
        raise TilewrightError("missing-file", f"there is no file '{path}'", help="check the path") from missing
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        raise TilewrightError(
            "bad-schedule",
            f"'{path}' is not the trace of a schedule",
            help="write one with tilewright schedule --trace",
        ) from wrong


def write_schedule_page(path: Path, found: Scheduled, others: Sequence[TracedSchedule] = ()) -> None:
    """A page with pictures of a schedule, and of others beside it."""
    one, nodes = found.schedule, found.schedule.nodes
    behind = np.repeat(np.arange(nodes.count), np.diff(nodes.before_starts))
    before = list(zip(nodes.before.tolist(), behind.tolist(), strict=True))
    trace = schedule_trace(found)
    name = f"{nodes.network.name} on {one.fabric.name}"
    mine = TracedSchedule(name, trace["traceEvents"], trace[VALUES], before)
    write_file(path, render_schedules(name, [mine, *others]).encode())
