"""Tables and JSON about a profiled run of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins
from rich.table import Table

from tilewright.cli.console import results
from tilewright.cli.options import Detail
from tilewright.core.plan import Plan, Schedule
from tilewright.report.counted import counted_rows
from tilewright.report.profile import ProfileRow, profile_rows
from tilewright.sim.marks import GroupProfile
from tilewright.sim.statistics import STALLS

WIDTH = 160


def print_run_profile(plan: Plan, schedule: Schedule, groups: Sequence[GroupProfile], detail: Detail) -> None:
    """Tables as wide as the terminal is; a file is as wide as they need."""
    console = results(WIDTH)
    rows = profile_rows(plan, schedule, groups)
    match detail:
        case "layers":
            console.print(_layer_table(rows, plan.platform.unit, schedule.known))
        case "tiles":
            console.print(_tile_table(rows, groups))
            console.print("loads happen during earlier tiles and stores during later ones where buffers have two slots")
        case "counters":
            console.print(_counter_table(rows))
            console.print("cycles of all cores together; bank: conflicts in the cores' memory")


def profile_object(plan: Plan, schedule: Schedule, groups: Sequence[GroupProfile], detail: Detail) -> dict[str, Any]:
    """What `--json` prints of it."""
    rows = profile_rows(plan, schedule, groups)
    found: list[dict[str, Any]] = []
    for row, group in zip(rows, groups, strict=True):
        values = {schedule.known if key == "predicted" else key: value for key, value in to_builtins(row).items()}
        found.append({key: value for key, value in values.items() if key != "counters"} | {"rate": row.rate})
        if detail == "tiles":
            found[-1]["tiles"] = [to_builtins(tile) for tile in group.tiles]
        if detail == "counters":
            found[-1]["counters"] = [dict(core) for core in group.counters]
    return {"groups": found}


def print_counted(plan: Plan, parts: Sequence[GroupProfile]) -> None:
    """The layers of a run that was counted step by step."""
    unit = plan.platform.unit
    rows = counted_rows(plan, parts)
    columns = ("MACs", unit, "share", "MAC each", *(["cycles (estimate)"] if plan.platform.estimate else []))
    table = Table("step", "layer", "code", title=f"Layers, counted: {unit}", title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        texts = [f"{row.macs:,}" if row.macs else "", f"{row.time:,}", f"{row.share:.1%}"]
        texts += [f"{row.rate:.2f}" if row.macs else "", *([f"{row.cycles:,}"] if row.cycles is not None else [])]
        table.add_row(str(row.step), row.layer, row.code, *texts)
    results(WIDTH).print(table)


def counted_object(plan: Plan, parts: Sequence[GroupProfile]) -> dict[str, Any]:
    """What `--json` prints of it."""
    return {"layers": [to_builtins(row) for row in counted_rows(plan, parts)]}


def _table(title: str, *columns: str) -> Table:
    table = Table("group", "layers", title=title, title_justify="left")
    table.columns[0].justify = "right"
    table.columns[1].overflow = "fold"
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _layers(row: ProfileRow) -> str:
    return "\n".join(f"{name} ({code})" for name, code in zip(row.layers, row.code, strict=True))


def _layer_table(rows: Sequence[ProfileRow], unit: str, known: str) -> Table:
    columns = ("tiles", "MACs", unit, "share", f"MAC/{unit[:-1]}", known, "ratio")
    table = _table("Layers, simulated", *columns)
    for row in rows:
        table.add_row(
            str(row.group),
            _layers(row),
            str(row.tiles),
            f"{row.macs:,}" if row.macs else "",
            f"{row.cycles:,}",
            f"{row.share:.1%}",
            f"{row.rate:.2f}" if row.macs else "",
            f"{row.predicted:,.0f}",
            f"{row.ratio:.2f}",
        )
    cycles, predicted, macs = (sum(getattr(row, name) for row in rows) for name in ("cycles", "predicted", "macs"))
    rate, ratio = (macs / cycles, predicted / cycles) if cycles else (0.0, 1.0)
    table.add_section()
    table.add_row("", "all", "", f"{macs:,}", f"{cycles:,}", "", f"{rate:.2f}", f"{predicted:,.0f}", f"{ratio:.2f}")
    return table


def _tile_table(rows: Sequence[ProfileRow], groups: Sequence[GroupProfile]) -> Table:
    table = _table("Tiles, simulated: cycles", "tile", "input DMA", "waited", "kernel", "output DMA", "bytes")
    for row, group in zip(rows, groups, strict=True):
        for tile in group.tiles:
            first = tile.step == 0
            table.add_row(
                str(row.group) if first else "",
                _layers(row) if first else "",
                str(tile.step),
                *(f"{n:,}" for n in (tile.loading, tile.waiting, tile.kernel, tile.storing, tile.loaded + tile.stored)),
            )
        table.add_section()
    return table


def _counter_table(rows: Sequence[ProfileRow]) -> Table:
    table = _table("Cores, simulated; stalls by cause", "cycles", "asleep", "instructions", "per cycle", *STALLS)
    for row in rows:
        count = row.counters
        awake = count["cycles"] - count["asleep"]
        table.add_row(
            str(row.group),
            _layers(row),
            *(f"{count[name]:,}" for name in ("cycles", "asleep", "instructions")),
            f"{count['instructions'] / awake:.2f}" if awake else "",
            *(f"{count[name]:,}" for name in STALLS.values()),
        )
    return table
