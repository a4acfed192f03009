"""`tilewright schedule`: a network over the engines of a machine with many of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from rich.table import Table

from tilewright.api.scheduling import Scheduled, ScheduleOptions, read_operations, schedule_network
from tilewright.base.files import write_file
from tilewright.cli import options as opt
from tilewright.cli.arguments import network_of, states_of
from tilewright.cli.console import errors, progress_line, results
from tilewright.core.split import Loops, Parts
from tilewright.errors import TilewrightError
from tilewright.report.costs import energy_text
from tilewright.schedule.nodes import Numbers
from tilewright.schedule.scheduling import CAUSES, EngineSchedule, Priority
from tilewright.schedule.search import Objective
from tilewright.schedule.trace import trace_events

commands = typer.Typer()
EXAMPLES = """
`tilewright schedule model.onnx --platform quad.yaml` cuts the network as is best and finds an allocation

`tilewright schedule model.onnx --platform quad.yaml --mapping mapping.yaml --split OY=all --objective edp --json`
"""
WIDE = 140
"""Columns of tables that go into a file."""
AUTO, ALL, NONE = "auto", "all", "none"
MOST = 10**7
"""Evaluations, at most."""
MEANING = {"fetch": "from home to engines", "pass": "between engines", "evict": "home for want of room"}


@dataclass(frozen=True)
class ScheduleChoices:
    """How the network is cut and given to engines, and what for."""

    mapping: Annotated[
        Path | None,
        typer.Option(
            "--mapping",
            metavar="FILE",
            help="Where operations may run and how they are cut, in Stream's form; anywhere without it.",
            show_default=False,
        ),
    ] = None
    split: Annotated[
        str,
        typer.Option(
            "--split",
            metavar="LOOP=PARTS",
            help="What operations are cut along that the mapping leaves whole, e.g. OY=all or K=2,OY=4; `none` cuts "
            "nothing, `auto` tries several ways.",
        ),
    ] = AUTO
    objective: Annotated[
        Literal["latency", "energy", "edp"], typer.Option("--objective", help="What is to be as little as can be.")
    ] = "latency"
    priority: Annotated[
        Literal["latency", "memory"],
        typer.Option(
            "--priority",
            help="Of nodes that are ready, which goes first: the one that was ready first, or the one furthest down "
            "the network, so that less is kept.",
        ),
    ] = "latency"
    evaluations: Annotated[
        int,
        typer.Option("--evaluations", min=1, max=MOST, help="Allocations that are tried for each way to cut."),
    ] = 1000
    seed: Annotated[
        int,
        typer.Option(
            "--seed", metavar="N", min=0, max=opt.LARGEST, help="Of the search; the same one gives the same result."
        ),
    ] = 0
    bits: Annotated[
        int | None,
        typer.Option(
            "--bits", min=1, max=64, help="Of an element at most, as if the network were quantised.", show_default=False
        ),
    ] = None


@commands.command("schedule", epilog=EXAMPLES)
@opt.flat
def schedule_command(
    network: Annotated[
        str,
        typer.Argument(metavar="NETWORK", help="An ONNX file, or layers in ZigZag's YAML.", show_default=False),
    ],
    *,
    platform: Annotated[
        str,
        typer.Option(
            "--platform",
            metavar="MACHINE",
            help="A machine with many array engines: a YAML file, or one of Stream's.",
            show_default=False,
        ),
    ],
    choosing: ScheduleChoices,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Writes a trace for Perfetto.", show_default=False),
    ] = None,
    as_json: opt.Json = False,
    about: opt.NetworkOptions,
) -> None:
    """Operations are cut into nodes, which run on one engine or another as soon as their operands are there. Each node
    costs what its best mapping onto its engine costs; transfers wait for channels and for room in memories.
    """
    dims, types, constants = network_of(about)
    operations = read_operations(
        network,
        most_bits=choosing.bits,
        dims=dims,
        input_types=types,
        constants=constants,
        max_bytes=about.max_bytes,
        states=states_of(about),
    )
    objective: Objective = choosing.objective
    priority: Priority = choosing.priority
    loops = _loops(choosing.split)
    options = ScheduleOptions(objective, loops, priority, choosing.evaluations, choosing.seed, choosing.bits)
    with progress_line(operations.name, quiet=as_json) as progress:
        found = schedule_network(operations, platform, choosing.mapping, options, progress=progress)
    if trace is not None:
        write_file(trace, json.dumps({"traceEvents": trace_events(found.schedule)}).encode())
    if as_json:
        print(json.dumps(_values(found)))
        return
    console = results(WIDE)
    console.print(_operations(found.schedule))
    console.print(_engines(found.schedule))
    console.print(_energies(found.schedule))
    ways = f", best of {len(found.tried)} ways to cut the network" if len(found.tried) > 1 else ""
    every = "all" if found.search.exhaustive else f"{found.search.evaluated:,}"
    one = found.schedule
    errors().print(
        f"{one.latency:,} cycles, {energy_text(one.energy)}; {one.nodes.count:,} nodes, {one.nodes.edges:,} edges; "
        f"{every} allocations tried{ways}; no allocation of these nodes takes less than {found.bound:,} cycles"
    )


def _loops(text: str) -> Loops | Literal["auto"]:
    if text in (AUTO, NONE):
        return AUTO if text == AUTO else ()
    found: list[tuple[str, Parts]] = []
    for part in filter(None, text.split(",")):
        name, _, parts = (piece.strip() for piece in part.partition("="))
        if parts == ALL:
            found.append((name.upper(), ALL))
        elif name and parts.isascii() and parts.isdigit() and int(parts[:9]) > 0:
            found.append((name.upper(), int(parts[:9])))
        else:
            raise TilewrightError(
                "bad-argument",
                f"--split {part!r} is not a loop with its parts",
                help="write it like OY=all or K=2,OY=4, or auto, or none",
            )
    return tuple(found)


def _rows(found: EngineSchedule) -> list[tuple[str, str, str, int, int, int, int]]:
    """By operation: name, kind, engines, nodes, start, end, and cycles of work."""
    rows: list[tuple[str, str, str, int, int, int, int]] = []
    for number, operation in enumerate(found.nodes.network.operations):
        mine = np.flatnonzero(found.nodes.operation == number)
        there: Numbers = found.places[mine]
        engines = [name for place, name in enumerate(found.fabric.places) if (there == place).any()]
        start, end = int(found.start[mine].min()), int(found.end[mine].max())
        work = int((found.end[mine] - found.start[mine]).sum())
        rows.append((operation.name, operation.kind, ", ".join(engines), len(mine), start, end, work))
    return rows


def _operations(found: EngineSchedule) -> Table:
    table = Table(title=f"{found.nodes.network.name} on {found.fabric.name}")
    for name in ("operation", "operator", "engine"):
        table.add_column(name, overflow="fold")
    for name in ("nodes", "from cycle", "to cycle", "cycles of work"):
        table.add_column(name, justify="right")
    for *names, nodes, start, end, work in _rows(found):
        table.add_row(*map(str, names), f"{nodes:,}", f"{start:,}", f"{end:,}", f"{work:,}")
    return table


def _engines(found: EngineSchedule) -> Table:
    table = Table(title="engines and the memory at home")
    table.add_column("place")
    for name in ("in use", "nodes", "memories at most"):
        table.add_column(name, justify="right")
    used = found.utilisation()
    for number, place in enumerate(found.fabric.places):
        full = [
            f"{store.name.rpartition('/')[2]} {found.summary.peaks[store.name]:,} bits"
            for store in found.fabric.stores
            if store.place == place
        ]
        table.add_row(
            place,
            f"{used[place]:.1%}" if place in used else "",
            f"{int((found.places == number).sum()):,}" if place in used else "",
            ", ".join(full),
        )
    return table


def _energies(found: EngineSchedule) -> Table:
    table = Table(title="energy", show_footer=True)
    table.add_column("of", "total")
    table.add_column("energy", energy_text(found.energy), justify="right")
    energies = found.summary.energies
    table.add_row("engines", energy_text(energies["compute"]))
    table.add_row("home, while nodes stream from it", energy_text(energies["streamed"]))
    for cause in CAUSES:
        total = energies[f"{cause} links"] + energies[f"{cause} memories"]
        table.add_row(f"transfers {MEANING.get(cause, 'of results')}", energy_text(total))
    return table


def _values(found: Scheduled) -> dict[str, object]:
    one = found.schedule
    names = ("name", "kind", "engines", "nodes", "start", "end", "work")
    return {
        "network": one.nodes.network.name,
        "machine": one.fabric.name,
        "latency": one.latency,
        "bound": found.bound,
        "energy": one.energy,
        "energies": dict(one.summary.energies),
        "peaks": dict(one.summary.peaks),
        "utilisation": one.utilisation(),
        "nodes": one.nodes.count,
        "edges": one.nodes.edges,
        "transfers": len(one.transfers),
        "splits": {
            name: {"across": [list(loop) for loop in split.across], "within": [list(loop) for loop in split.within]}
            for name, split in found.splits.items()
        },
        "tried": dict(found.tried),
        "evaluated": found.search.evaluated,
        "exhaustive": found.search.exhaustive,
        "front": [{"latency": each.latency, "energy": each.energy} for each in found.search.front],
        "operations": [dict(zip(names, row, strict=True)) for row in _rows(one)],
    }
