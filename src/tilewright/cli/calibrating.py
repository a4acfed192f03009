"""`tilewright calibrate`: what a platform's kernels and loop nests take, measured on its simulator."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tilewright.api.calibrating import CalibrationResult, Progress, calibrate, outdated
from tilewright.cli import options as opt
from tilewright.cli.console import progress_line, results
from tilewright.machine.calibration import NESTS, STEPS, TIMES

commands = typer.Typer()


@dataclass(frozen=True)
class Measured:
    """What is to be measured; all of it where nothing is named."""

    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            metavar="NAME",
            help="A kernel to measure; all with terms, or all of --kernels, where none is named. May be repeated.",
            show_default=False,
        ),
    ] = None
    nests: Annotated[
        bool,
        typer.Option(
            "--nests", help="Measures only loop nests, which are printed where no kernel fits; else kernels, too."
        ),
    ] = False
    steps: Annotated[
        bool,
        typer.Option("--steps", help="Measures only steps that are fused behind kernels, which were measured before."),
    ] = False
    times: Annotated[
        bool,
        typer.Option("--times", help="Measures only what it takes to start transfers of DMAs and to wait for them."),
    ] = False
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Measures what it takes to start work on an engine beside the cores. May be repeated.",
            show_default=False,
        ),
    ] = None

    @property
    def parts(self) -> list[str]:
        return [part for part, named in ((NESTS, self.nests), (STEPS, self.steps), (TIMES, self.times)) if named]


@commands.command("calibrate")
@opt.flat
def calibrate_command(
    *,
    measured: Measured,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, max=opt.LARGEST, help="Chooses the layers.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where calibration.json goes; beside the kernels where this is left away.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Measures nothing: lists what has other sources, compiler or machine by now."),
    ] = False,
    as_json: opt.Json = False,
    code: opt.Code,
) -> None:
    """Layers of random sizes are made from what operators and kernels declare, built and run on that simulator. The
    coefficients of the terms in a kernel's header are solved from these, and written to `calibration.json` with the
    errors for layers that were held out. Cycles of operations in loop nests are measured likewise, on layers that no
    kernel fits, then those of steps behind kernels, and what starts of engines beside the cores take. What transfers
    take is seen in programs that do nothing else. With `--check` the exit status is 1 where something is out of date.

    `tilewright calibrate --platform siracusa` measures loop nests, all kernels and steps behind them

    `tilewright calibrate --platform siracusa --kernel matmul_packed_s8` measures one kernel

    `tilewright calibrate --platform siracusa --kernels DIR` measures your own, and writes DIR/calibration.json

    `tilewright calibrate --platform siracusa --check` lists what has numbers that are out of date
    """
    own, ops = tuple(code.kernels), tuple(code.ops)
    if check:
        _check(outdated(code.platform, own, ops, measured.kernel or ()), as_json=as_json)
        return
    with _progress(quiet=as_json) as progress:
        found = calibrate(
            code.platform,
            kernels=own,
            ops=ops,
            names=measured.kernel or (),
            parts=measured.parts,
            engines=measured.engine or (),
            seed=seed,
            output=output,
            progress=progress,
        )
    _show(found, as_json=as_json)


def _check(found: Sequence[tuple[str, tuple[str, ...]]], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"outdated": [{"kernel": name, "reasons": reasons} for name, reasons in found]}))
    else:
        for name, reasons in found:
            results().print(f"{name}: {', '.join(reasons)}")
        results().print(f"{len(found)} calibrations are out of date")
    if found:
        raise typer.Exit(1)


@contextmanager
def _progress(*, quiet: bool) -> Generator[Progress]:
    with progress_line("calibrate", quiet=quiet) as stage:
        yield lambda name, done, wanted: stage(f"{name}: {done} of {wanted} layers")


def _show(found: Sequence[CalibrationResult], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"kernels": [_object(result) for result in found]}))
    else:
        results().print(_table(found))


def _object(result: CalibrationResult) -> dict[str, object]:
    found = result.calibration
    return {
        "kernel": result.name,
        "terms": dict(found.terms),
        "begin": found.begin,
        "layers": found.shapes,
        "held_out": dict(found.held_out),
    }


def _table(found: Sequence[CalibrationResult]) -> Table:
    table = Table("kernel", "cycles")
    for column in ("first call", "layers", "median error", "90 %", "worst"):
        table.add_column(column, justify="right")
    for result in found:
        one = result.calibration
        terms = "\n".join(f"{value:g} {name}" for name, value in one.terms.items())
        errors = (f"{one.held_out[name]:.1%}" for name in ("median", "p90", "worst"))
        table.add_row(result.name, terms, f"{one.begin:,.0f}", str(one.shapes), *errors)
    return table
