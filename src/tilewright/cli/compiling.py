"""`tilewright compile`: a network as a C project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins
from rich.table import Table

from tilewright.cli import options as opt
from tilewright.cli.console import progress_line, results, styled, warn_stale
from tilewright.cli.planning import arena_text

if TYPE_CHECKING:
    from tilewright.api.compiling import Compiled
    from tilewright.core.plan import Plan

commands = typer.Typer()
WIDTH = 160
EXAMPLES = """
`tilewright compile model.onnx -o build/model`, then `make -C build/model`

`tilewright compile model.onnx --dim batch=1 --input-type x=int8 --dump-stages build/stages`

`tilewright compile model.onnx --platform DIR --measure 3` simulates three plans and keeps the fastest
"""


@commands.command("compile", epilog=EXAMPLES)
@opt.flat
def compile_command(
    model: opt.Model,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for the C project.")] = Path(
        "build/network"
    ),
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Prefix of files and C functions.")] = "network",
    report: Annotated[bool, typer.Option("--report/--no-report", help="Whether to add report.html.")] = True,
    dump_stages: Annotated[
        Path | None, typer.Option("--dump-stages", metavar="DIR", help="Writes the graph after every pass as ONNX.")
    ] = None,
    as_json: opt.Json = False,
    network: opt.NetworkOptions,
    allowing: opt.Allowing,
    code: opt.Code,
    shape: opt.Shape,
    planning: opt.Planning,
) -> None:
    """The folder then holds `network.c`, `network.h`, the weights, a Makefile, a CMakeLists.txt, an example program and
    `report.html`, which shows the layers and the memory map. All are replaced in one step; on an error the folder is as
    it was. Other files in it stay, but for those that an earlier compilation left.
    """
    # Who only asks for help does without the compiler.
    from tilewright.api.compiling import compile_model
    from tilewright.cli.arguments import options_of
    from tilewright.codegen import write_project
    from tilewright.report import render_report

    options = options_of(network, code, shape, planning, allowing=allowing, name=name, dump_stages=dump_stages)
    with progress_line(f"compile {model.name}", quiet=as_json) as progress:
        compiled = compile_model(model, options, progress=progress)
        files = dict(compiled.files)
        if report:
            progress("report")
            page = render_report(compiled.plan, compiled.program, title=title_of(model), changed=change_text(compiled))
            files["report.html"] = page.encode()
        write_project(files, output, name)
    warn_stale(compiled.plan)
    if as_json:
        print(json.dumps(summary(compiled, output)))
        return
    console = results(WIDTH)
    console.print(_layer_table(compiled))
    console.print(sizes_text(compiled))
    if compiled.change is not None:
        console.print(change_text(compiled))
    place = str(output)
    console.print(styled("C project in ", (place, "bold"), f"; build it with make -C {place}"), soft_wrap=True)
    if report:
        console.print(styled("report in ", (str(output / "report.html"), "bold")), soft_wrap=True)


def title_of(model: Path) -> str:
    """The name of a network: of its file, or of its folder where the file is called network.onnx."""
    from tilewright.base.descriptions import stem_of

    return stem_of(model.resolve().parent if model.stem == "network" else model)


def summary(compiled: Compiled, output: Path | None) -> dict[str, Any]:
    """What `--json` says of a compiled network."""
    from tilewright.report import layers

    program = compiled.program
    return {
        "output": str(output) if output else None,
        "arena_bytes": program.arena_bytes,
        "arena_lower_bound": compiled.plan.lower_bound,
        "arena_optimal": compiled.plan.optimal,
        **_tiled(compiled.plan),
        "weight_bytes": program.constant_bytes,
        "inputs": [{"name": p.name, "type": str(p.type)} for p in program.inputs],
        "outputs": [{"name": p.name, "type": str(p.type)} for p in program.outputs],
        "states": [{"name": p.name, "type": str(p.type)} for p in program.states],
        "layers": [
            {"name": row.name, "op": row.op, "code": row.code, "macs": row.macs, "output": row.output}
            for row in layers(compiled.plan)
        ],
        **({"changed": to_builtins(compiled.change)} if compiled.change is not None else {}),
    }


def _tiled(plan: Plan) -> dict[str, Any]:
    """What there is to say of plans with tiles only."""
    if plan.schedule is None:
        return {}
    return {
        "memories": dict(plan.schedule.used),
        f"{plan.schedule.known}_{plan.platform.unit}": plan.schedule.cycles,
    }


def _layer_table(compiled: Compiled) -> Table:
    from tilewright.report import layers

    table = Table(title="Layers", title_justify="left")
    for column in ("layer", "operator", "code", "output"):
        table.add_column(column, overflow="fold")
    table.add_column("MACs", justify="right")
    for row in layers(compiled.plan):
        table.add_row(row.name, row.op, row.code, row.output, f"{row.macs:,}" if row.macs else "")
    return table


def change_text(compiled: Compiled) -> str:
    """What a permission changed; nothing where it did not."""
    return compiled.change.text if compiled.change is not None else ""


def sizes_text(compiled: Compiled) -> str:
    """Memory that it takes, and the time where that is predicted."""
    plan = compiled.plan
    weights = f"weights {compiled.program.constant_bytes:,} bytes"
    if plan.schedule is None:
        return f"{arena_text(plan)}, {weights}"
    used = ", ".join(f"{name} {size:,} bytes" for name, size in plan.schedule.used.items() if size)
    schedule = plan.schedule
    time = f"{schedule.cycles:,.0f} {plan.platform.unit} {schedule.known}"
    return "; ".join(text for text in (used, weights, time) if text)
