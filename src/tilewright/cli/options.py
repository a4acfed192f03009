"""Options that several commands share, each said once.

A command takes them as dataclasses, one per help panel; `flat` makes every field of these an option of its own.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from tilewright.machine import DEFAULT_PLATFORM
from tilewright.machine.permissions import PERMISSIONS
from tilewright.plan.options import PlanOptions
from tilewright.sim.limits import MOST_CYCLES, MOST_OUTPUT, MOST_SECONDS, Limits
from tilewright.sim.settings import EmulatedMachine, Moment, SimulatorName

NETWORK, CODE, MACHINE = "About the network", "About the code", "About the machine"
PLAN, BUILD, LIMITS = "About the plan", "About the build", "How far a program may go"
UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_BYTES = re.compile(r"(\d+)\s*(?:([KMG])(?:I?B)?|B)?", re.IGNORECASE)
_DEFAULTS = PlanOptions()
LARGEST = 2**31 - 1
"""Of sizes, counts and seeds."""
MOST_BYTES = 2**40
MOST_PROCESSES = 1024
MOST_PLANS = 1000


def whole_number(text: str, most: int = LARGEST) -> int | None:
    """A number from 0 on; None where a text is something else, or too large to make sense."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else None
    return number if number is not None and number <= most else None


def byte_count(text: str) -> int:
    """`64000`, `64K`, `64KiB` or `2M` as bytes; the units are binary."""
    found = _BYTES.fullmatch(text.strip())
    unit = UNITS[(found[2] or "").upper()] if found else 1
    number = whole_number(found[1], MOST_BYTES // unit) if found else None
    if number is None:
        raise typer.BadParameter(f"'{text[:40]}' is not a number of bytes like 64000, 64K or 2MiB, and at most 1024G")
    return number * unit


def seconds(text: str) -> float:
    """A time that passes."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < inf:
        raise typer.BadParameter(f"'{text[:40]}' is not a number of seconds above 0")
    return found


def _bytes(flag: str, help: str) -> Any:
    return typer.Option(
        flag, metavar="BYTES", parser=byte_count, help=help, rich_help_panel=MACHINE, show_default=False
    )


@dataclass(frozen=True)
class NetworkOptions:
    """What a network leaves open."""

    dim: Annotated[
        list[str],
        typer.Option(
            "--dim",
            metavar="NAME=N|LOW..HIGH",
            help="Fixes a symbolic dimension; an unnamed one is INPUT:AXIS. With LOW..HIGH its value is an input of "
            "the network, known when it runs.",
            rich_help_panel=NETWORK,
        ),
    ] = field(default_factory=list[str])
    input_type: Annotated[
        list[str],
        typer.Option(
            "--input-type",
            metavar="NAME=TYPE",
            help="Pins the element type of an input, e.g. x=int8.",
            rich_help_panel=NETWORK,
        ),
    ] = field(default_factory=list[str])
    constant: Annotated[
        list[str],
        typer.Option(
            "--constant",
            metavar="NAME=FILE.npy",
            help="Fixes the value of an input at compile time.",
            rich_help_panel=NETWORK,
        ),
    ] = field(default_factory=list[str])
    state: Annotated[
        list[str],
        typer.Option(
            "--state",
            metavar="IN=OUT",
            help="An input that is, from run to run, what an output was; the program keeps it. May be repeated.",
            rich_help_panel=NETWORK,
        ),
    ] = field(default_factory=list[str])
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            metavar="SIZE",
            parser=byte_count,
            help="Refuses networks with a tensor larger than this, or more constants. Half of this machine's memory "
            "is the default.",
            rich_help_panel=NETWORK,
            show_default=False,
        ),
    ] = None
    external_data: Annotated[
        list[Path],
        typer.Option(
            "--external-data",
            metavar="DIR",
            help="A folder from which external data may be read, besides that of the network. May be repeated.",
            rich_help_panel=NETWORK,
        ),
    ] = field(default_factory=list[Path])


@dataclass(frozen=True)
class Code:
    """What code is made from."""

    platform: Annotated[
        str,
        typer.Option(
            "--platform",
            "-p",
            metavar="NAME|DIR",
            help="A platform's name, or a folder with a platform.yaml.",
            rich_help_panel=CODE,
        ),
    ] = DEFAULT_PLATFORM
    kernels: Annotated[
        list[Path],
        typer.Option(
            "--kernels",
            metavar="DIR",
            help="A folder of kernel files, searched before the platform's own.",
            rich_help_panel=CODE,
        ),
    ] = field(default_factory=list[Path])
    ops: Annotated[
        list[Path],
        typer.Option(
            "--ops", metavar="DIR", help="A folder of Python files that declare operators.", rich_help_panel=CODE
        ),
    ] = field(default_factory=list[Path])


@dataclass(frozen=True)
class Allowing:
    """What may change numbers."""

    allow: Annotated[
        list[str],
        typer.Option(
            "--allow",
            metavar="NAME",
            help=" ".join(
                [
                    "Allows what changes numbers; the result says how much.",
                    *(f"{name}: {what}." for name, what in PERMISSIONS.items()),
                ]
            ),
            rich_help_panel=NETWORK,
        ),
    ] = field(default_factory=list[str])


@dataclass(frozen=True)
class Shape:
    """What is changed of a machine."""

    l1: Annotated[int | None, _bytes("--l1", "Size of memory L1, e.g. 64K, 2MiB or 64000.")] = None
    l2: Annotated[int | None, _bytes("--l2", "Size of memory L2.")] = None
    l3: Annotated[int | None, _bytes("--l3", "Size of memory L3.")] = None
    ram: Annotated[int | None, _bytes("--ram", "Bytes of RAM that a network may use, on machines with one RAM.")] = None
    flash: Annotated[int | None, _bytes("--flash", "Bytes of flash for its weights.")] = None
    weight_memory: Annotated[
        int | None, _bytes("--weight-memory", "Size of the memory from which weights are read in place; 0 for none.")
    ] = None
    home: Annotated[
        str,
        typer.Option(
            "--home",
            metavar="L2|L3",
            help="The memory of inputs, outputs and weights.",
            rich_help_panel=MACHINE,
            show_default=False,
        ),
    ] = ""
    cores: Annotated[
        int | None,
        typer.Option(
            "--cores",
            metavar="N",
            min=1,
            max=1024,
            help="How many cores compute.",
            rich_help_panel=MACHINE,
            show_default=False,
        ),
    ] = None
    without: Annotated[
        list[str],
        typer.Option(
            "--without",
            metavar="ENGINE",
            help="An engine beside the cores that is not used, e.g. neureka. May be repeated.",
            rich_help_panel=MACHINE,
            show_default=False,
        ),
    ] = field(default_factory=list[str])


@dataclass(frozen=True)
class Planning:
    """How to plan."""

    buffers: Annotated[
        Literal["auto", "1", "2", "3"],
        typer.Option(
            "--buffers",
            help="Slots of every tile buffer: with 1, transfers and cores take turns; with 2, they overlap; auto "
            "takes what pays for each.",
            rich_help_panel=PLAN,
        ),
    ] = "auto"
    fuse: Annotated[
        Literal["auto", "off"],
        typer.Option("--fuse", help="Whether layers may run together, tile by tile.", rich_help_panel=PLAN),
    ] = _DEFAULTS.fuse
    overlap: Annotated[
        Literal["auto", "off"],
        typer.Option(
            "--overlap", help="Whether engines may compute different layers at the same time.", rich_help_panel=PLAN
        ),
    ] = _DEFAULTS.overlap
    max_extra_macs: Annotated[
        float,
        typer.Option(
            "--max-extra-macs",
            metavar="F",
            min=0.0,
            max=1e6,
            help="How much fused layers may compute twice, as a fraction of their work.",
            rich_help_panel=PLAN,
        ),
    ] = _DEFAULTS.max_extra_macs
    order: Annotated[
        Literal["memory", "time", "given"],
        typer.Option(
            "--order",
            help="Of layers: few bytes live at once, readers right behind writers, or as in the file.",
            rich_help_panel=PLAN,
        ),
    ] = _DEFAULTS.order
    plan_seconds: Annotated[
        float,
        typer.Option(
            "--plan-seconds",
            metavar="S",
            min=0.0,
            max=1e6,
            help="Effort of the search; counted in steps, so that it gives the same plan on any computer.",
            rich_help_panel=PLAN,
        ),
    ] = _DEFAULTS.seconds
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            max=LARGEST,
            help="Seeds the planner, generated inputs and emulations.",
            rich_help_panel=PLAN,
        ),
    ] = _DEFAULTS.seed
    measure: Annotated[
        int,
        typer.Option(
            "--measure",
            metavar="N",
            min=0,
            max=MOST_PLANS,
            help="Builds and simulates the N best plans and keeps the fastest: cycles are then measured, not "
            "predicted. Results are kept on disk, see `tilewright cache`. 0 takes the plan predicted to be best.",
            rich_help_panel=PLAN,
        ),
    ] = 0

    @property
    def chosen(self) -> PlanOptions:
        """What the planner is told."""
        return PlanOptions(
            buffers=0 if self.buffers == "auto" else int(self.buffers),
            fuse=self.fuse,
            overlap=self.overlap,
            seconds=self.plan_seconds,
            seed=self.seed,
            order=self.order,
            max_extra_macs=self.max_extra_macs,
        )


@dataclass(frozen=True)
class BuildOptions:
    """How C becomes a program, and how that runs."""

    cc: Annotated[
        str,
        typer.Option(
            "--cc",
            metavar="COMPILER",
            help="The C compiler, where the platform's own is not wanted.",
            rich_help_panel=BUILD,
        ),
    ] = ""
    cflag: Annotated[
        list[str],
        typer.Option(
            "--cflag",
            metavar="FLAG",
            help="A flag for the C compiler, e.g. --cflag=-march=native; repeat it for more.",
            rich_help_panel=BUILD,
        ),
    ] = field(default_factory=list[str])
    dma: Annotated[
        Moment | None,
        typer.Option(
            "--dma",
            help="When the DMA of an emulated machine copies; a right program cannot tell. As late as it may (wait) "
            "is the default.",
            rich_help_panel=BUILD,
            show_default=False,
        ),
    ] = None

    simulator: Annotated[
        SimulatorName | None,
        typer.Option(
            "--simulator",
            help="What simulates a chip: Tilewright itself, QEMU, or GVSoC, found on PATH or by the variable GVSOC. "
            "Each platform has a default.",
            rich_help_panel=BUILD,
            show_default=False,
        ),
    ] = None

    def machine(self, seed: int) -> EmulatedMachine:
        """How an emulated machine behaves."""
        return EmulatedMachine(seed=seed) if self.dma is None else EmulatedMachine(self.dma, seed)


@dataclass(frozen=True)
class Limiting:
    """How far a program may go."""

    max_cycles: Annotated[
        int | None,
        typer.Option(
            "--max-cycles",
            metavar="N",
            min=1,
            max=2**63 - 1,
            help="Cycles of a simulated machine, on Cortex-M instructions, after which a program is stopped with an "
            f"error that says where its cores are ({MOST_CYCLES:,}).",
            rich_help_panel=LIMITS,
            show_default=False,
        ),
    ] = None
    max_output: Annotated[
        int | None,
        typer.Option(
            "--max-output",
            metavar="BYTES",
            parser=byte_count,
            help=f"Bytes that a program may print ({MOST_OUTPUT // UNITS['M']}M).",
            rich_help_panel=LIMITS,
            show_default=False,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            parser=seconds,
            help=f"Time that a program may take on this computer ({MOST_SECONDS:g}).",
            rich_help_panel=LIMITS,
            show_default=False,
        ),
    ] = None

    @property
    def chosen(self) -> Limits:
        """What programs are told."""
        output = MOST_OUTPUT if self.max_output is None else self.max_output
        return Limits(self.max_cycles, output, MOST_SECONDS if self.timeout is None else self.timeout)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The network, an ONNX file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Prints one JSON object instead of tables.")]
Detail = Literal["layers", "tiles", "counters"]
"""What a profile shows."""


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every field of the dataclasses that it takes."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    grouped: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) and isinstance(hint, type):
            grouped[parameter.name] = hint
            parameters += _parameters(hint)
        else:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        made = {
            name: kind(**{part.name: given.pop(part.name) for part in fields(kind)}) for name, kind in grouped.items()
        }
        command(**given, **made)

    # What typer looks at; without `__wrapped__` it would find the command itself.
    del spread.__wrapped__
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    spread.__dict__["__signature__"] = inspect.Signature(parameters)
    return spread


def _parameters(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            part.name, inspect.Parameter.KEYWORD_ONLY, default=_default(part), annotation=hints[part.name]
        )
        for part in fields(kind)
    ]


def _default(part: Field[Any]) -> Any:
    return part.default if part.default_factory is MISSING else part.default_factory()
