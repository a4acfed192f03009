"""`tilewright run`: a network on this machine, or on the simulated machine of its platform."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins
from rich.table import Table

from tilewright.base.files import check_places, write_file
from tilewright.cli import options as opt
from tilewright.cli.compiling import change_text, sizes_text, summary, title_of
from tilewright.cli.console import progress_line, results, styled, warn_stale
from tilewright.errors import TilewrightError
from tilewright.sim.limits import Limits
from tilewright.sim.settings import SimulatorName

if TYPE_CHECKING:
    from tilewright.api.compiling import Observer, Options
    from tilewright.api.running import Ran
    from tilewright.core.graph import Array
    from tilewright.sim.qemu import Footprint

commands = typer.Typer()
EXAMPLES = """
`tilewright run model.onnx` feeds seeded noise

`tilewright run model.onnx --inputs inputs.npz --expected outputs.npz --repeat 100 --cflag=-march=native`
"""


@dataclass(frozen=True)
class RunFiles:
    """What a run is fed, and what it leaves behind."""

    inputs: Annotated[
        Path | None, typer.Option("--inputs", metavar="FILE", help="Inputs as .npz in graph order, or one as .npy.")
    ] = None
    expected: Annotated[
        Path | None, typer.Option("--expected", metavar="FILE", help="Outputs to compare with, likewise.")
    ] = None
    outputs: Annotated[
        Path | None, typer.Option("--outputs", metavar="FILE", help="Writes the outputs into this .npz file.")
    ] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Keeps the C project in this folder.")
    ] = None
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat", metavar="N", min=0, max=10**6, help="Runs the inference N times more and reports the fastest."
        ),
    ] = 0
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            metavar="N",
            min=1,
            max=10**6,
            help="Runs the network N times with its states kept between; the first axis of all arrays counts runs.",
            show_default=False,
        ),
    ] = None
    profile: Annotated[
        opt.Detail | None,
        typer.Option(
            "--profile",
            help="Where the time goes on a simulated machine: of layers, of tiles with their transfers, or counters of "
            "the cores. With --output, report.html in that folder shows it, too.",
            show_default=False,
        ),
    ] = None


@commands.command("run", epilog=EXAMPLES)
@opt.flat
def run_command(
    model: opt.Model,
    *,
    running: RunFiles,
    as_json: opt.Json = False,
    network: opt.NetworkOptions,
    allowing: opt.Allowing,
    code: opt.Code,
    shape: opt.Shape,
    planning: opt.Planning,
    build: opt.BuildOptions,
    limiting: opt.Limiting,
) -> None:
    """Without `--inputs` it is fed seeded noise. With `--expected` the outputs are compared: integers must be equal,
    floats must agree within 1e-4 or 1e-5 of the value; the exit status is 1 where one is wrong.
    """
    # Who only asks for help does without the compiler.
    from tilewright.cli.arguments import options_of
    from tilewright.codegen import write_project
    from tilewright.machine.target import load_platform
    from tilewright.report import render_report

    options = options_of(network, code, shape, planning, allowing=allowing, build=build)
    if running.profile in ("tiles", "counters") and load_platform(code.platform).qemu:
        raise TilewrightError("bad-argument", f"QEMU counts no {running.profile}", help="use --profile layers")
    check_places(running.outputs)
    with progress_line(f"run {model.name}", quiet=as_json) as progress:
        ran = _run(model, options, running, build, limiting.chosen, progress)
        if running.profile and running.output:
            page = render_report(
                ran.compiled.plan,
                ran.compiled.program,
                title=title_of(model),
                simulated=ran.groups,
                changed=change_text(ran.compiled),
            )
            files = {**ran.compiled.files, "report.html": page.encode()}
            write_project(files, running.output, ran.compiled.program.name)
    warn_stale(ran.compiled.plan)
    if running.outputs:
        _save(running.outputs, ran)
    if as_json:
        print(json.dumps(_values(ran, running)))
    else:
        _print_run(ran, running, build.simulator)
    if not ran.right:
        raise typer.Exit(1)


def _run(
    model: Path, options: Options, running: RunFiles, build: opt.BuildOptions, limits: Limits, progress: Observer
) -> Ran:
    from tilewright.api.arrays import read_arrays
    from tilewright.api.running import run_model

    return run_model(
        model,
        options,
        inputs=read_arrays(running.inputs, "input") if running.inputs else None,
        expected=read_arrays(running.expected, "output") if running.expected else None,
        folder=running.output,
        compiler=build.cc,
        flags=tuple(build.cflag),
        repeat=running.repeat,
        seed=options.planning.seed,
        machine=build.machine(options.planning.seed),
        profile=running.profile is not None,
        simulator=build.simulator,
        limits=limits,
        steps=running.steps,
        progress=progress,
    )


def _values(ran: Ran, running: RunFiles) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        **summary(ran.compiled, running.output),
        "right": ran.right,
        "nanoseconds": ran.nanoseconds,
        **_times(ran),
        **({"steps": ran.step_cycles} if ran.step_cycles else {}),
        **({"footprint": to_builtins(ran.footprint)} if ran.footprint else {}),
        **_profile(ran, running.profile),
    }


def _print_run(ran: Ran, running: RunFiles, simulator: SimulatorName | None) -> None:
    from tilewright.cli.profile_tables import print_counted, print_run_profile

    console, plan = results(), ran.compiled.plan
    console.print(_output_table(ran))
    console.print(sizes_text(ran.compiled))
    if ran.compiled.change is not None:
        console.print(change_text(ran.compiled))
    if ran.cycles is not None:
        console.print(f"{ran.cycles:,} {ran.compiled.platform.unit} {_how(ran, simulator)}")
    if len(ran.step_cycles) > 1:
        least, most = min(ran.step_cycles), max(ran.step_cycles)
        console.print(f"{len(ran.step_cycles)} runs of {least:,} to {most:,} {ran.compiled.platform.unit}")
    if ran.footprint is not None:
        console.print(_footprint(ran, ran.footprint))
    if running.profile and plan.schedule:
        print_run_profile(plan, plan.schedule, ran.groups, running.profile)
    elif running.profile:
        print_counted(plan, ran.groups)
    if ran.nanoseconds is not None:
        console.print(f"fastest of {running.repeat}: {ran.nanoseconds / 1e3:,.1f} us")


def _how(ran: Ran, simulator: SimulatorName | None) -> str:
    if simulator == "gvsoc":
        return "in GVSoC"
    if not ran.compiled.platform.qemu:
        return "simulated, with checks and no finding"
    from tilewright.report.counted import estimated

    cycles = estimated(ran.compiled.plan, ran.cycles or 0)
    return "counted by QEMU" + (f", about {cycles:,} cycles (an estimate)" if cycles is not None else "")


def _footprint(ran: Ran, found: Footprint) -> str:
    program = ran.compiled.program
    return (
        f"flash {found.code + found.constants:,} bytes (code {found.code:,}, weights {program.constant_bytes:,}), "
        f"RAM {program.arena_bytes + found.stack:,} bytes (arena {program.arena_bytes:,}, stack {found.stack:,})"
    )


def _times(ran: Ran) -> dict[str, Any]:
    """What `--json` says of the time: by the platform's unit, and cycles where there is an estimate."""
    from tilewright.report.counted import estimated

    cycles = estimated(ran.compiled.plan, ran.cycles) if ran.cycles is not None else None
    return {ran.compiled.platform.unit: ran.cycles} | ({"estimated_cycles": cycles} if cycles is not None else {})


def _profile(ran: Ran, detail: opt.Detail | None) -> dict[str, Any]:
    from tilewright.cli.profile_tables import counted_object, profile_object

    plan = ran.compiled.plan
    if detail and plan.schedule:
        return {"profile": profile_object(plan, plan.schedule, ran.groups, detail)}
    return {"profile": counted_object(plan, ran.groups)} if detail else {}


def _save(path: Path, ran: Ran) -> None:
    import numpy as np

    arrays: dict[str, Any] = {f"output_{i}": array for i, array in enumerate(ran.outputs)}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_file(path, buffer.getvalue())


def _output_table(ran: Ran) -> Table:
    table = Table("output", "type", "values", "compared", title="Outputs", title_justify="left")
    for index, (port, array) in enumerate(zip(ran.compiled.program.outputs, ran.outputs, strict=True)):
        text = styled("not compared")
        if index < len(ran.comparisons):
            c = ran.comparisons[index]
            verdict = "exact" if c.exact else f"within {c.tolerance:.3g}, worst {c.worst:.3g}"
            verdict += f"; {c.overruled} of {c.size} by the specification, not as expected" if c.overruled else ""
            wrong = styled((f"{c.wrong} of {c.size} wrong", "red"), f", worst {c.worst:.3g}")
            text = wrong if c.wrong else styled(("right", "green"), f" ({verdict})")
        table.add_row(port.name, str(port.type), _preview(array), text)
    return table


def _preview(array: Array) -> str:
    shown = ", ".join(f"{value:.4g}" for value in array.reshape(-1)[:4].tolist())
    return shown + (", ..." if array.size > 4 else "")
