"""`tilewright test`: many cases, in parallel, with a table at the end."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tilewright.api.cases import CaseResult, find_cases, run_case
from tilewright.api.compiling import Options
from tilewright.cli import console as printing
from tilewright.cli import options as opt
from tilewright.cli.arguments import options_of
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.sim.limits import Limits
from tilewright.sim.settings import EmulatedMachine, SimulatorName

commands = typer.Typer()
EXAMPLES = """
`tilewright test examples/models`

`tilewright test cases --strict --cc clang --json`
"""
STYLES = {"pass": "green", "fail": "red", "error": "red", "unsupported": "yellow"}


@commands.command("test", epilog=EXAMPLES)
@opt.flat
def cases_command(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Case folders, searched recursively, or models.", show_default=False),
    ],
    *,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=0,
            max=opt.MOST_PROCESSES,
            help="Cases at a time; 0 is one per core.",
            show_default=False,
        ),
    ] = 0,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Makes strict warnings errors and adds sanitizers.", rich_help_panel=opt.BUILD),
    ] = False,
    as_json: opt.Json = False,
    network: opt.NetworkOptions,
    allowing: opt.Allowing,
    code: opt.Code,
    shape: opt.Shape,
    planning: opt.Planning,
    build: opt.BuildOptions,
    limiting: opt.Limiting,
) -> None:
    """A case is a folder with `network.onnx`, `inputs.npz` and `outputs.npz`, a file `X.onnx` beside `X.npz`, or
    `model.onnx` with folders `test_data_set_N` as in ONNX's own tests. Integers must be equal; floats must agree within
    1e-4 or 1e-5 of the value, in ONNX's own tests by their tolerances. The exit status is 0 where every case passes,
    else 1.
    """
    options = options_of(network, code, shape, planning, allowing=allowing, build=build)
    cases = find_cases(paths)
    flags = (*build.cflag, *STRICT, *SANITIZE, "-O1") if strict else tuple(build.cflag)
    job = Job(options, build.cc, flags, build.machine(planning.seed), build.simulator, limiting.chosen)
    results = run_cases(cases, job, jobs or os.cpu_count() or 1, quiet=as_json)
    if as_json:
        print(json.dumps({"cases": [to_builtins(result) for result in results]}))
    else:
        _print_table(results)
    if any(result.status != "pass" for result in results):
        raise typer.Exit(1)


@dataclass(frozen=True)
class Job:
    """How every case is run."""

    options: Options
    compiler: str
    flags: tuple[str, ...]
    machine: EmulatedMachine
    simulator: SimulatorName | None
    limits: Limits

    def run(self, name: str, place: Path) -> CaseResult:
        return run_case(name, place, self.options, self.compiler, self.flags, self.machine, self.simulator, self.limits)


def run_cases(cases: tuple[tuple[str, Path], ...], job: Job, count: int, *, quiet: bool) -> list[CaseResult]:
    """All cases in parallel, in the order given, with a progress bar."""
    with ProcessPoolExecutor(min(count, len(cases)), initializer=_Worker.start) as pool:
        # Everything is submitted first: workers are forked then, before the progress bar has a thread.
        running = {pool.submit(_Worker.run, job, *case): index for index, case in enumerate(cases)}
        try:
            return _collect(running, quiet=quiet)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Worker:
    """A process that runs cases. Ctrl-C reaches every process of the terminal: a running case ends and cleans up, a
    waiting one is not begun, and nothing is printed."""

    running = stopped = False

    @classmethod
    def start(cls) -> None:
        signal.signal(signal.SIGINT, lambda _number, _frame: cls.stop())

    @classmethod
    def stop(cls) -> None:
        cls.stopped = True
        if cls.running:
            raise KeyboardInterrupt

    @classmethod
    def run(cls, job: Job, name: str, place: Path) -> CaseResult:
        if cls.stopped:
            raise KeyboardInterrupt
        cls.running = True
        try:
            return job.run(name, place)
        finally:
            cls.running = False


def _collect(running: dict[Future[CaseResult], int], *, quiet: bool) -> list[CaseResult]:
    name = TextColumn("{task.description}", style="bold", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    results: dict[int, CaseResult] = {}
    console = printing.results(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("test", total=len(running))
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                index = running.pop(future)
                results[index] = future.result()
                progress.update(task, advance=1, description=printing.shown(results[index].name[-40:]))
    return [results[index] for index in sorted(results)]


def _print_table(results: list[CaseResult]) -> None:
    table = Table("case", "status")
    for column in ("arena", "weights", "seconds"):
        table.add_column(column, justify="right")
    table.add_column("detail", overflow="fold")
    for r in results:
        sizes = (f"{r.arena_bytes:,}", f"{r.weight_bytes:,}") if r.comparisons else ("", "")
        detail = r.detail.splitlines()[0] if r.detail else ""
        table.add_row(r.name, printing.styled((r.status, STYLES[r.status])), *sizes, f"{r.seconds:.1f}", detail)
    console = printing.results()
    console.print(table)
    counts = {status: sum(r.status == status for r in results) for status in STYLES}
    console.print(
        ", ".join(f"{count} {status}" for status, count in counts.items() if count) + f" of {len(results)} cases"
    )
