"""`tilewright plan`: what the compiler decides about memory and time, without making code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rich.table import Table

from tilewright.cli import options as opt
from tilewright.cli.console import progress_line, results, warn_stale
from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from tilewright.core.plan import Plan, Schedule
    from tilewright.machine.parts import Memory
    from tilewright.plan import PlanOptions
    from tilewright.report import BufferRow, GroupRow, GroupTable, LayerRow, Totals

commands = typer.Typer()
LONGEST = 20
"""Letters of a tensor's name in a table."""
EXAMPLES = """
`tilewright plan model.onnx` shows order, kernels and addresses

`tilewright plan model.onnx --platform DIR --l1 64K --home L3 --baseline` shows tiles, transfers and predicted cycles
"""


@commands.command("plan", epilog=EXAMPLES)
@opt.flat
def plan_command(
    model: opt.Model,
    *,
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="Also plans layer by layer, each with the largest tile that fits."),
    ] = False,
    as_text: Annotated[
        bool,
        typer.Option("--text", help="Prints where every tensor is, what is moved when, and what runs, as plain text."),
    ] = False,
    as_json: opt.Json = False,
    network: opt.NetworkOptions,
    allowing: opt.Allowing,
    code: opt.Code,
    shape: opt.Shape,
    planning: opt.Planning,
) -> None:
    """A group is a layer, or layers that run together tile by tile. `OH 4 x 8` cuts dimension OH into 8 tiles of 4. A
    buffer `a: 512 x 2` has two slots of 512 bytes, so one is filled while the other is worked on; `kept` means that
    lines of it stay from one tile to the next. On machines with one memory there are no tiles: then it shows the order,
    the code and the address of every result.
    """
    # Who only asks for help does without the compiler.
    from tilewright.api.compiling import plan_model
    from tilewright.cli.arguments import options_of, require_tiles
    from tilewright.core.plan_text import print_plan
    from tilewright.report import group_table

    if as_text and (as_json or baseline):
        raise TilewrightError(
            "bad-argument",
            f"--text and {'--json' if as_json else '--baseline'} print different things",
            help="leave one of them away",
        )
    options = options_of(network, code, shape, planning, allowing=allowing)
    if baseline:
        require_tiles(options.platform, "--baseline")
    with progress_line(f"plan {model.name}", quiet=as_json or as_text) as progress:
        _, made = plan_model(model, options, progress=progress)
        warn_stale(made)
        if as_text:
            print(print_plan(made), end="")
            return
        if made.schedule is None:
            _show_flat(made, as_json=as_json)
            return
        table = group_table(made, made.schedule)
        other = _baseline(made, options.planning) if baseline else None
    if as_json:
        print(json.dumps(_tiled_object(made.schedule, table, other)))
        return
    console = results()
    console.print(_group_table(made, made.schedule, table))
    console.print(_totals_table(made, table.totals, other))


def _baseline(made: Plan, options: PlanOptions) -> Totals:
    """The same network in the same order, planned layer by layer."""
    from tilewright.plan import check, plan
    from tilewright.report import group_table

    other = plan(made.graph, made.platform, replace(options, joint=False, order="given"))
    check(other)
    assert other.schedule is not None, "the same machine"
    return group_table(other, other.schedule).totals


# Tiled plans


def _group_table(made: Plan, schedule: Schedule, found: GroupTable) -> Table:
    title = f"Groups; {made.platform.unit} are {schedule.known}"
    table = Table(title=title, title_justify="left")
    table.add_column("", justify="right")
    for column in ("layers", "code", "tile", "buffers"):
        # A line for each buffer where the terminal has room for it.
        table.add_column(column, overflow="fold", min_width=LONGEST + 18 if column == "buffers" else None)
    table.add_column(f"split among {schedule.cores}")
    near = made.platform.engines[schedule.engine].memory
    for column in (f"{near} bytes", "moved", made.platform.unit):
        table.add_column(column, justify="right")
    table.add_column("bound by")
    for row in found.rows:
        table.add_row(
            str(row.index),
            *("\n".join(cell) for cell in (_layers(row), row.code, _tiles(row), _buffers(row))),
            "\n".join(split or "one core" for split in row.splits),
            *(f"{number:,.0f}" for number in (row.near_bytes, row.moved, row.cycles)),
            row.bound,
        )
    return table


def _layers(row: GroupRow) -> list[str]:
    return [f"{name} ({op.split(' ')[0]})" for name, op in zip(row.layers, row.ops, strict=True)]


def _tiles(row: GroupRow) -> list[str]:
    return [f"{name} {size} x {count}" for name, size, count in row.loops if count > 1] or ["whole"]


def _buffers(row: GroupRow) -> list[str]:
    return [_buffer(buffer) for buffer in row.buffers] or ["none"]


def _buffer(row: BufferRow) -> str:
    size = f"within {_short(row.within)}" if row.within else f"{row.bytes:,} x {row.slots}"
    return f"{_short(row.tensor)}: {size}{' kept' if row.kept else ''}"


def _short(name: str) -> str:
    """The end of a long name, which is what tells names apart."""
    return name if len(name) <= LONGEST else "…" + name[1 - LONGEST :]


def _totals_table(made: Plan, totals: Totals, other: Totals | None) -> Table:
    table = Table(title="In all", title_justify="left", show_header=other is not None)
    for column in ("", "this plan", *(["layer by layer"] if other else [])):
        table.add_column(column, justify="left" if not column else "right")
    columns = [_totals_texts(made, found, totals.known) for found in (totals, other) if found is not None]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    return table


def _totals_texts(made: Plan, totals: Totals, known: str) -> dict[str, str]:
    gap, memories = totals.gap, made.platform.memories.values()
    proof = "not known" if gap is None else "proven best of those considered" if gap < 5e-5 else f"{gap:.2%}"
    return {
        f"{known} {made.platform.unit}": f"{totals.cycles:,.0f}" + f" {totals.known}" * (totals.known != known),
        "may be faster by": proof,
        "bytes moved": f"{totals.moved:,}",
        **{f"bytes of {m.name}": _of(totals.used.get(m.name, 0), m) for m in memories if m.bytes != 0},
        "extra MACs": f"{totals.extra_macs:.2%}",
        "activation peak": f"{totals.activation_peak:,}",
    }


def _of(used: int, memory: Memory) -> str:
    return f"{used:,}" if memory.bytes is None else f"{used:,} of {memory.bytes:,}"


def _tiled_object(schedule: Schedule, table: GroupTable, other: Totals | None) -> dict[str, Any]:
    found = {
        "home": schedule.home,
        "cores": schedule.cores,
        "groups": [to_builtins(row) for row in table.rows],
        "totals": _totals_object(table.totals),
    }
    return found | ({"baseline": _totals_object(other)} if other else {})


def _totals_object(totals: Totals) -> dict[str, Any]:
    return to_builtins(replace(totals, used=dict(totals.used))) | {"gap": totals.gap}


# Plans of machines with one memory


class FlatRow(Struct, frozen=True):
    """A layer of a plan without tiles."""

    step: int
    layer: str
    op: str
    code: str
    space: str
    """Where the result lives."""
    offset: int
    bytes: int
    live: int
    """Bytes of the arena in use while the layer runs."""


def _show_flat(made: Plan, *, as_json: bool) -> None:
    from tilewright.report import layers

    rows = [_flat_row(made, row) for row in layers(made)]
    if as_json:
        found = {"layers": [to_builtins(row) for row in rows], "arena_bytes": made.arena_bytes}
        print(json.dumps(found | {"arena_lower_bound": made.lower_bound, "arena_optimal": made.optimal}))
        return
    table = Table("step", "layer", "operator", "code", "result at", "bytes", "live", title="Layers")
    table.title_justify = "left"
    for column in (0, 5, 6):
        table.columns[column].justify = "right"
    for row in rows:
        place = f"{row.space} + {row.offset:,}" if row.offset or row.space == "arena" else row.space
        texts = (str(row.step), row.layer, row.op, row.code, place)
        table.add_row(*texts, f"{row.bytes:,}", f"{row.live:,}")
    console = results()
    console.print(table)
    console.print(arena_text(made))


def _flat_row(made: Plan, layer: LayerRow) -> FlatRow:
    place = made.places[made.graph.nodes[layer.step].made[0]]
    space = f"{place.space} {place.index}" if place.space in ("input", "output") else place.space
    live = sum(b.bytes for b in made.buffers if b.first <= layer.step < b.last and b.place.space != "output")
    return FlatRow(layer.step, layer.name, layer.op, layer.code, space, place.offset, layer.output_bytes, live)


def arena_text(made: Plan) -> str:
    """The size of the arena and whether it could be smaller."""
    proof = "proven minimal for this order" if made.optimal else f"at least {made.lower_bound:,} needed"
    return f"arena {made.arena_bytes:,} bytes ({proof})"
