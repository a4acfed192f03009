"""`tilewright compile` and `tilewright run`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tilewright import Compiled, Ran, compile, run
from tilewright.api.compiling import Observer
from tilewright.cli import arguments as arg
from tilewright.core.platform import DEFAULT_PLATFORM
from tilewright.errors import TilewrightError
from tilewright.report import layers, write_report

console = Console()


@contextmanager
def progress_line(title: str, *, quiet: bool) -> Iterator[Observer]:
    """A line that shows the stage a long job is at."""
    if quiet:
        yield lambda _stage: None
        return
    columns = (SpinnerColumn(), TextColumn("[bold]{task.description}"), TextColumn("{task.fields[stage]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, stage="")
        yield lambda stage: progress.update(task, stage=stage)


def compile_command(
    model: arg.Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the C project.")] = Path("build/network"),
    platform: arg.PlatformName = DEFAULT_PLATFORM,
    name: Annotated[str, typer.Option("--name", help="Prefix of files and C functions.")] = "network",
    dim: arg.Dims = [],  # noqa: B006  (typer copies option defaults)
    input_type: arg.InputTypes = [],  # noqa: B006
    constant: arg.Constants = [],  # noqa: B006
    kernels: arg.Kernels = [],  # noqa: B006
    ops: arg.Ops = [],  # noqa: B006
    dump_stages: Annotated[Path | None, typer.Option("--dump-stages", help="Writes the graph after every pass as ONNX into this folder.")] = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Writes report.html beside the C.")] = True,
    seed: arg.Seed = 0,
    as_json: arg.Json = False,
) -> None:
    """Compiles an ONNX file to a C project.

    The folder then holds `network.c`, `network.h`, the weights, a Makefile, a CMakeLists.txt, an example program and a report
    with the memory map and the layers.
    """
    options = arg.options_of(platform, dim, input_type, constant, kernels, ops, seed, name=name, dump_stages=dump_stages)
    with progress_line(f"compile {model.name}", quiet=as_json) as progress:
        compiled = compile(model, options, progress=progress)
        compiled.write(output)
        if report:
            write_report(compiled.plan, compiled.program, output / "report.html", title=model.stem)
    if as_json:
        print(json.dumps(_summary(compiled, output)))
        return
    console.print(_layer_table(compiled))
    _print_sizes(compiled)
    console.print(f"C project in [bold]{output}[/]: build it with make -C {output}", soft_wrap=True)


def run_command(
    model: arg.Model,
    inputs: Annotated[Path | None, typer.Option("--inputs", help="Inputs as .npz (in graph order) or .npy; seeded noise without.")] = None,
    expected: Annotated[Path | None, typer.Option("--expected", help="Expected outputs as .npz, to compare with.")] = None,
    outputs: Annotated[Path | None, typer.Option("--outputs", help="Writes the outputs into this .npz file.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Keeps the C project in this folder.")] = None,
    platform: arg.PlatformName = DEFAULT_PLATFORM,
    dim: arg.Dims = [],  # noqa: B006
    input_type: arg.InputTypes = [],  # noqa: B006
    constant: arg.Constants = [],  # noqa: B006
    kernels: arg.Kernels = [],  # noqa: B006
    ops: arg.Ops = [],  # noqa: B006
    cc: arg.Compiler = "",
    cflag: arg.Flags = [],  # noqa: B006
    repeat: Annotated[int, typer.Option("--repeat", help="Runs the inference so many times more and reports the fastest.")] = 0,
    seed: arg.Seed = 0,
    as_json: arg.Json = False,
) -> None:
    """Compiles, builds and runs a network on this machine, and compares the outputs where expected ones are given.

    The exit status is 1 where an output is wrong.
    """
    options = arg.options_of(platform, dim, input_type, constant, kernels, ops, seed)
    fed = arg.read_arrays(inputs) if inputs else None
    wanted = arg.read_arrays(expected) if expected else None
    with progress_line(f"run {model.name}", quiet=as_json) as progress:
        ran = run(
            model,
            options,
            inputs=fed,
            expected=wanted,
            folder=output,
            compiler=cc,
            flags=tuple(cflag),
            repeat=repeat,
            seed=seed,
            progress=progress,
        )
    if outputs:
        _save(outputs, ran)
    if as_json:
        print(json.dumps({**_summary(ran.compiled, output), "right": ran.right, "nanoseconds": ran.nanoseconds}))
    else:
        console.print(_output_table(ran))
        _print_sizes(ran.compiled)
        if ran.nanoseconds is not None:
            console.print(f"fastest of {repeat}: {ran.nanoseconds / 1e3:.1f} us")
    if not ran.right:
        raise typer.Exit(1)


def _save(path: Path, ran: Ran) -> None:
    try:
        np.savez(path, **{f"output_{i}": array for i, array in enumerate(ran.outputs)})
    except OSError as reason:
        raise TilewrightError("cannot-write", f"cannot write '{path}'", reasons=[str(reason)]) from reason


def _summary(compiled: Compiled, output: Path | None) -> dict[str, Any]:
    program = compiled.program
    return {
        "output": str(output) if output else None,
        "arena_bytes": program.arena_bytes,
        "arena_lower_bound": compiled.plan.lower_bound,
        "arena_optimal": compiled.plan.optimal,
        "weight_bytes": program.constant_bytes,
        "inputs": [{"name": p.name, "type": str(p.type)} for p in program.inputs],
        "outputs": [{"name": p.name, "type": str(p.type)} for p in program.outputs],
        "layers": [
            {"name": row.name, "op": row.op, "code": row.code, "macs": row.macs, "output": row.output}
            for row in layers(compiled.plan)
        ],
    }


def _layer_table(compiled: Compiled) -> Table:
    table = Table("layer", "operator", "code", "output", title="Layers", title_justify="left")
    table.add_column("MACs", justify="right")
    for row in layers(compiled.plan):
        table.add_row(row.name, row.op, row.code, row.output, f"{row.macs:,}" if row.macs else "")
    return table


def _output_table(ran: Ran) -> Table:
    table = Table("output", "type", "compared", title="Outputs", title_justify="left")
    ports = ran.compiled.program.outputs
    for index, port in enumerate(ports):
        text = "not compared"
        if index < len(ran.comparisons):
            c = ran.comparisons[index]
            verdict = "exact" if c.exact else f"within {c.tolerance:.3g}, worst {c.worst:.3g}"
            text = f"[green]right[/] ({verdict})" if c.wrong == 0 else f"[red]{c.wrong} of {c.size} wrong[/], worst {c.worst:.3g}"
        table.add_row(port.name, str(port.type), text)
    return table


def _print_sizes(compiled: Compiled) -> None:
    plan, program = compiled.plan, compiled.program
    proof = "proven minimal for this order" if plan.optimal else f"at least {plan.lower_bound:,} needed"
    console.print(f"arena {program.arena_bytes:,} bytes ({proof}), weights {program.constant_bytes:,} bytes")
