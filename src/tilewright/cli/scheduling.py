"""`tilewright schedule`: a network over the engines of a machine with many of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from tilewright.api.schedule_report import (
    operation_rows,
    read_schedule_trace,
    schedule_trace,
    schedule_values,
    write_schedule_page,
)
from tilewright.api.scheduling import Scheduled, ScheduleOptions, read_costs, read_operations, schedule_network
from tilewright.base.files import check_places, write_file
from tilewright.cli import options as opt
from tilewright.cli.arguments import network_of, states_of
from tilewright.cli.console import errors, progress_line, results
from tilewright.core.split import Loops, Parts
from tilewright.errors import TilewrightError
from tilewright.report.costs import energy_text
from tilewright.report.schedule_page import TracedSchedule, compared
from tilewright.schedule.critical import WAIT, critical_path
from tilewright.schedule.placement import AROUND, Hints
from tilewright.schedule.scheduling import CAUSES, EngineSchedule
from tilewright.schedule.search import OBJECTIVES, Objective

commands = typer.Typer()
EXAMPLES = """
`tilewright schedule model.onnx --platform quad.yaml` cuts the network as is best and finds an allocation

`tilewright schedule model.onnx --platform quad.yaml --mapping mapping.yaml --split OY=all --objective edp --json`
"""
WIDE = 140
"""Columns of tables that go into a file."""
AUTO, ALL, NONE = "auto", "all", "none"
NAMES: dict[str, Objective] = {each: each for each in OBJECTIVES}
SPLIT = "write it like OY=all or K=2,OY=4, or auto, or none"
MOST, MOST_WORKERS = 10**7, 256
"""Evaluations and threads, at most."""
MEANING = {"fetch": "from home to engines", "pass": "between engines", "evict": "home for want of room"}
PATH = {cause: f"transfers {MEANING.get(cause, 'of results')}" for cause in CAUSES} | {WAIT: "waiting for room"}
ROWS = 10
"""Of the critical path."""


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
            "nothing, `auto` finds a way for each. Also known as hint_loops.",
        ),
    ] = AUTO
    mode: Annotated[
        int,
        typer.Option(
            "--cn-define-mode",
            min=1,
            max=3,
            help="How --split is read: 1, loops around nodes; 2, loops inside of them; 3, loops around nodes for each "
            "part of the network, with `;` between parts.",
        ),
    ] = 1
    cutoffs: Annotated[
        str,
        typer.Option(
            "--layer-cutoffs",
            metavar="N,N",
            help="The numbers of operations at which parts begin, but the first, where the mode is 3.",
            show_default=False,
        ),
    ] = ""
    objective: Annotated[
        Literal["latency", "energy", "edp", "memory"],
        typer.Option("--objective", help="What is to be as little as can be; `edp` is energy times latency."),
    ] = "latency"
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=NUMBER",
            help="What latency (cycles), energy (pJ), edp (both multiplied) or memory (bits of all engines) must not "
            "exceed; as often as needed.",
            show_default=False,
        ),
    ] = None
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
        typer.Option("--evaluations", min=1, max=MOST, help="Schedules that are evaluated at most, in all."),
    ] = 1000
    workers: Annotated[
        int,
        typer.Option("--workers", min=1, max=MOST_WORKERS, help="Threads; what is found does not depend on them."),
    ] = 1
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
    costs: Annotated[
        Path | None,
        typer.Option(
            "--costs",
            metavar="FILE",
            help="What nodes of each operation cost on each engine, where that is known; otherwise by their best "
            "mappings.",
            show_default=False,
        ),
    ] = None
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Looks for a better order and a proof by constraint programming, where nodes are few.",
        ),
    ] = False
    rules: Annotated[
        Literal["own", "stream"],
        typer.Option("--rules", help="How words and memory are counted: as documented, or as Stream of 2023 does."),
    ] = "own"


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
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Writes a page with the timeline, memories over time and the critical path.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="A trace of another schedule, which stands beside this one in tables and the page.",
            show_default=False,
        ),
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
        data_folders=about.external_data,
    )
    options = _options(choosing)
    others = [read_schedule_trace(against)] if against else []
    check_places(trace, html)
    with progress_line(operations.name, quiet=as_json) as progress:
        found = schedule_network(operations, platform, choosing.mapping, options, progress=progress)
    if trace is not None:
        write_file(trace, json.dumps(schedule_trace(found)).encode())
    if html is not None:
        write_schedule_page(html, found, others)
    values = schedule_values(found)
    if as_json:
        print(json.dumps(values))
        return
    _show(found, values, others)


def _options(choosing: ScheduleChoices) -> ScheduleOptions:
    return ScheduleOptions(
        objective=choosing.objective,
        split=_split(choosing),
        priority=choosing.priority,
        evaluations=choosing.evaluations,
        seed=choosing.seed,
        limits=_limits(choosing.limit or []),
        workers=choosing.workers,
        most_bits=choosing.bits,
        costs=read_costs(choosing.costs) if choosing.costs else (),
        rules=choosing.rules,
        prove=choosing.prove,
    )


def _show(found: Scheduled, values: Mapping[str, Any], others: Sequence[TracedSchedule]) -> None:
    """Tables of a schedule, beside another one if there is one, and a line that sums it up."""
    console = results(WIDE)
    console.print(_operations(found.schedule))
    console.print(_engines(found.schedule))
    console.print(_energies(found.schedule))
    console.print(_path(found.schedule))
    if others:
        console.print(_compared(values, others[0]))
    one = found.schedule
    every = "all allocations" if found.exhaustive else f"{found.evaluated:,} schedules"
    ways = f", {len(found.tried)} ways to cut the network" if len(found.tried) > 1 else ""
    early = "stopped early: this is the best so far; " if found.stopped else ""
    errors().print(
        f"{early}{one.latency:,} cycles, {energy_text(one.energy)}; {one.nodes.count:,} nodes, "
        f"{one.nodes.edges:,} edges; {every} tried{ways}; no allocation of these nodes takes less than "
        f"{found.bound:,} cycles and {energy_text(found.energy_bound)}"
    )


def _split(choosing: ScheduleChoices) -> Hints | Literal["auto"]:
    if choosing.split == AUTO:
        if choosing.mode != AROUND or choosing.cutoffs:
            raise TilewrightError(
                "bad-argument",
                "--cn-define-mode and --layer-cutoffs say how --split is read, which is 'auto'",
                help=f"{SPLIT}, or leave them away",
            )
        return AUTO
    parts = filter(None, choosing.cutoffs.split(","))
    cutoffs = tuple(_whole(part.strip(), "--layer-cutoffs", "write numbers like 3,7") for part in parts)
    return Hints(tuple(map(_loops, choosing.split.split(";"))), choosing.mode, cutoffs)


def _whole(text: str, option: str, help: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise TilewrightError("bad-argument", f"{option}: {text!r} is not a number from 1 on", help=help)
    return int(text[:9])


def _limits(texts: list[str]) -> dict[Objective, float]:
    found: dict[Objective, float] = {}
    for text in texts:
        name, _, number = (piece.strip() for piece in text.partition("="))
        known = NAMES.get(name)
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if known is None or not 0 < value < inf:
            raise TilewrightError(
                "bad-argument",
                f"--limit {text!r} is not a name with a number above 0",
                help=f"write it like latency=1e6; names are {', '.join(OBJECTIVES)}",
            )
        found[known] = value
    return found


def _loops(text: str) -> Loops:
    if text.strip() == NONE:
        return ()
    found: list[tuple[str, Parts]] = []
    for part in filter(None, text.split(",")):
        name, _, parts = (piece.strip() for piece in part.partition("="))
        if not name:
            raise TilewrightError("bad-argument", f"--split {part!r} is not a loop with its parts", help=SPLIT)
        found.append((name.upper(), ALL if parts == ALL else _whole(parts, f"--split {name}", SPLIT)))
    return tuple(found)


def _operations(found: EngineSchedule) -> Table:
    table = Table(title=f"{found.nodes.network.name} on {found.fabric.name}")
    for name in ("operation", "operator", "engine"):
        table.add_column(name, overflow="fold")
    for name in ("nodes", "from cycle", "to cycle", "cycles of work"):
        table.add_column(name, justify="right")
    for *names, nodes, start, end, work in operation_rows(found):
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


def _path(found: EngineSchedule) -> Table:
    """What is waited for, by what it is, the longest first."""
    table = Table(title="critical path")
    table.add_column("of", overflow="fold")
    for name in ("cycles", "part"):
        table.add_column(name, justify="right")
    by_name: dict[str, int] = {}
    for step in critical_path(found):
        what = step.name if step.kind == "compute" else PATH[step.kind]
        by_name[what] = by_name.get(what, 0) + step.cycles
    for name, cycles in sorted(by_name.items(), key=lambda item: -item[1])[:ROWS]:
        table.add_row(name, f"{cycles:,}", f"{cycles / max(found.latency, 1):.1%}")
    return table


def _compared(values: Mapping[str, Any], other: TracedSchedule) -> Table:
    table = Table(title="side by side")
    table.add_column("of")
    for name in ("this", other.name, "change"):
        table.add_column(name, justify="right")
    for row in compared([values, other.values]):
        table.add_row(*row)
    return table
