"""`tilewright sim`: a program on a simulated machine, and what it did there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import options as opt
from tilewright.cli.console import errors, progress_line
from tilewright.cli.simulation_tables import print_profile, print_statistics
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform
from tilewright.sim.arguments import given_words
from tilewright.sim.findings import Finding
from tilewright.sim.gvsoc import simulate
from tilewright.sim.limits import Limits
from tilewright.sim.profile import profile_of
from tilewright.sim.program import load_program
from tilewright.sim.qemu import simulate_in_qemu
from tilewright.sim.settings import SimulatorName
from tilewright.sim.simulator import Look, Simulator, Stop
from tilewright.sim.statistics import statistics_of
from tilewright.sim.trace import TraceWriter

commands = typer.Typer()
SHOWN = 5
"""Findings that are printed whole."""


@dataclass(frozen=True)
class Watching:
    """What is watched of a run; only Tilewright's own simulator does."""

    timing: Annotated[
        str,
        typer.Option(
            "--timing",
            metavar="NAME",
            help="Which of the platform's timings counts; its platform.yaml names them, the first is the default.",
            show_default=False,
        ),
    ] = ""
    stats: Annotated[
        bool,
        typer.Option(
            "--stats",
            help="Prints tables after the run: cycles, stalls and bank conflicts of each core, bytes and occupancy of "
            "DMAs, use of accelerators, energy.",
        ),
    ] = False
    profile: Annotated[
        bool, typer.Option("--profile", help="Prints cycles by function after the run; the run is slower.")
    ] = False
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE.json",
            help="Writes a trace that ui.perfetto.dev opens: lanes of cores, transfers and accelerator jobs.",
            show_default=False,
        ),
    ] = None
    checks: Annotated[
        bool,
        typer.Option(
            "--checks/--no-checks",
            help="Tells on programs that read memory never written, have races between cores, DMAs and accelerators, "
            "overflow their stack and the like; the run is slower.",
        ),
    ] = False

    @property
    def flags(self) -> list[str]:
        """Those that were given."""
        return [f"--{name.replace('_', '-')}" for name, given in asdict(self).items() if given]


@commands.command("sim")
@opt.flat
def sim_command(
    program: Annotated[
        Path, typer.Argument(metavar="PROGRAM.elf", help="A bare-metal program for the machine.", show_default=False)
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORDS]...",
            help="What the program is called with, behind a --, where it has a variable for that.",
            show_default=False,
        ),
    ] = None,
    *,
    platform: Annotated[
        str,
        typer.Option(
            "--platform",
            "-p",
            metavar="NAME|DIR",
            help="A platform with a simulator, by name or as a folder with a platform.yaml.",
            show_default=False,
        ),
    ],
    watching: Watching,
    limiting: opt.Limiting,
    simulator: Annotated[
        SimulatorName | None,
        typer.Option(
            "--simulator",
            help="Tilewright itself, QEMU, or GVSoC, found on PATH or by the variable GVSOC; the last two only run the "
            "program. Each platform has a default.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """The program is the same ELF file that runs on the chip. What it prints goes to stdout, everything else (tables,
    progress, errors) to stderr. The exit status is the program's own; it is 2 where the program did something that the
    machine or the checks refuse, never ends, or cannot be loaded.

    `tilewright sim hello.elf --platform siracusa`

    `tilewright sim network.elf --platform siracusa --stats --trace trace.json`

    `tilewright sim network.elf --platform siracusa --checks --max-cycles 100000000`

    `tilewright sim story --platform siracusa -- "Once upon a time" --tokens 20`
    """
    other = simulator or ("qemu" if load_platform(platform).qemu else "tilewright")
    if other != "tilewright":
        _run_only(program, platform, other, watching.flags, limiting.chosen, words or [])
    else:
        _simulate(program, platform, watching, limiting.chosen, words or [])


def _simulate(program: Path, platform: str, watching: Watching, limits: Limits, words: list[str]) -> None:
    """Runs a program in the simulator of our own."""
    trace = watching.trace
    look = Look(checks=watching.checks, profile=watching.profile, trace=trace is not None)
    machine = Simulator(platform, watching.timing, look=look, limits=limits)
    loaded = machine.load(program)
    if words:
        address, data = given_words(loaded, words)
        machine.write(address, data)
    stop = _run(machine, trace)
    if watching.stats:
        print_statistics(statistics_of(machine), machine.timing.name)
    if watching.profile:
        print_profile(profile_of(machine))
    findings = machine.findings()
    if not machine.knows_flags:
        errors().print("note: races are not looked for: without debug information (-g), flags in memory are not known")
    _print_warnings([finding for finding in findings if finding.warning])
    _refuse(machine, stop, [finding for finding in findings if not finding.warning])
    if machine.exit_code:
        # A status has eight bits; one that would look like success must not.
        raise typer.Exit(min(machine.exit_code, 255))


def _run_only(
    program: Path, platform: str, simulator: SimulatorName, unknown: list[str], limits: Limits, words: list[str]
) -> None:
    """Runs a program in a simulator that has none of the other options."""
    if unknown:
        raise TilewrightError(
            "bad-argument", f"{unknown[0]} is not for --simulator {simulator}", help="leave one of them away"
        )
    machine = load_platform(platform)
    if simulator == "gvsoc" and words:
        raise TilewrightError(
            "bad-argument", "programs in GVSoC cannot be called with words", help="leave them or --simulator away"
        )
    if simulator == "gvsoc":
        load_program(program)
        with progress_line(f"sim {program.name}", quiet=False) as progress:
            status = simulate(program, machine, limits, sink=_show, progress=progress)
    else:
        status, _ = simulate_in_qemu(program, machine, limits, sink=_show, words=words)
    if status:
        raise typer.Exit(status)


def _show(output: bytes) -> None:
    """Prints what a program does, at once."""
    sys.stdout.flush()
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def _run(simulator: Simulator, trace: Path | None) -> Stop:
    printed = 0

    with _progress() as show, _tracing(trace, simulator) as update:

        def watch(running: Simulator) -> None:
            nonlocal printed
            new = running.output_from(printed)
            show(running, bool(new))
            if new:
                _show(new)
                printed += len(new)
            update()

        return simulator.run(watch=watch)


@contextmanager
def _tracing(path: Path | None, simulator: Simulator) -> Generator[Callable[[], None]]:
    """What keeps the trace up to date; however the run ends, the file is whole."""
    if path is None:
        yield lambda: None
        return
    with TraceWriter(path, simulator) as writer:
        yield writer.update
    if writer.left_out:
        errors().print(f"note: the trace was cut off: {writer.left_out} events are not in it")


@contextmanager
def _progress() -> Generator[Callable[[Simulator, bool], None]]:
    """A line on stderr that shows how far a long run is; it makes room for what the program prints."""
    stream = sys.stderr
    began = shown = time.monotonic()
    there = False

    def show(simulator: Simulator, output: bool) -> None:
        nonlocal shown, there
        now = time.monotonic()
        if there and (output or now - shown > 0.2):
            stream.write("\r\x1b[K")
            stream.flush()
            there = False
        if not output and now - began > 1 and now - shown > 0.2:
            done = simulator.instructions
            stream.write(
                f"{simulator.cycles / 1e6:,.1f} M cycles, {done / 1e6:,.1f} M instructions, "
                f"{done / (now - began) / 1e6:.1f} MIPS"
            )
            stream.flush()
            shown, there = now, True

    if not stream.isatty():
        yield lambda _simulator, _output: None
        return
    try:
        yield show
    finally:
        if there:
            stream.write("\r\x1b[K")
            stream.flush()


def _print_warnings(warnings: list[Finding]) -> None:
    for warning in warnings[:SHOWN]:
        errors().print(f"warning[{warning.kind}]: {_after_kind(warning)}")
    if len(warnings) > SHOWN:
        errors().print(f"{len(warnings) - SHOWN} more warnings")


def _after_kind(finding: Finding) -> str:
    return str(finding).removeprefix(f"{finding.kind}: ")


def _refuse(simulator: Simulator, stop: Stop, found: list[Finding]) -> None:
    """The one error that a run ends in, if any."""
    name = simulator.program.path.name if simulator.program else ""
    if found:
        raise _misbehaviour(name, found, simulator.native.findings_left_out, crashed=stop == "fault")
    if (limit := simulator.limit_error(stop)) is not None:
        raise limit
    if stop == "deadlock":
        raise TilewrightError(
            "deadlock",
            f"'{name}' waits forever: in cycle {simulator.cycles:,}, no hart runs and no transfer is under way",
            reasons=simulator.whereabouts(),
            help="somebody has to send the event that they sleep for, or come to the barrier",
        )


def _misbehaviour(name: str, found: list[Finding], left_out: int, *, crashed: bool) -> TilewrightError:
    lines: list[str] = []
    for finding in found[:SHOWN]:
        lines += str(finding).splitlines()
    more = len(found) - SHOWN + left_out
    if more > 0:
        lines.append(f"and {more} more")
    if crashed and len(found) == 1:
        return TilewrightError("program-fault", f"'{name}' was stopped: {found[0].message}", reasons=lines[1:])
    return TilewrightError(
        "misbehaviour",
        f"'{name}' does what it must not do{', and was stopped' if crashed else ''}",
        reasons=lines,
        help="repair the first one first: others may follow from it",
    )
