"""Options of the commands that map layers onto arrays, and what their texts mean."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Annotated, Literal

import typer

from tilewright.api.mapping import MapOptions, Strategy
from tilewright.cli.options import LARGEST, MOST_PROCESSES, whole_number
from tilewright.errors import TilewrightError
from tilewright.machine.library import machine_names
from tilewright.mapping.goals import Objective, Wanted
from tilewright.mapping.pinned import check_form, read_mappings
from tilewright.mapping.results import Effort
from tilewright.mapping.wired import Unrolling

MAPPING, SEARCH = "About the mapping", "About the search"
ALL = "all"
UNLIMITED = 1e30
"""More cycles or picojoules than anything takes."""

Machines = Annotated[
    list[str],
    typer.Option(
        "--machine",
        "-m",
        metavar="NAME|FILE",
        help="A machine's name, MACHINE/ENGINE, or a YAML file. May be repeated; `all` is every array machine.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Mapping:
    """What is said about mappings."""

    unroll: Annotated[
        list[str],
        typer.Option(
            "--unroll",
            metavar="D1=K:32,C:2",
            help="What is unrolled along a dimension of the array, instead of a search; may be repeated.",
            rich_help_panel=MAPPING,
        ),
    ] = field(default_factory=list[str])
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="OX:7,OY,K",
            help="The order of loops in time, innermost first, instead of a search; without steps: all that is left.",
            rich_help_panel=MAPPING,
        ),
    ] = ""
    mapping: Annotated[
        Path | None,
        typer.Option(
            "--mapping",
            metavar="FILE",
            help="Mappings that are taken as they are, from a file that --export wrote; layers that it does not name "
            "are searched.",
            rich_help_panel=MAPPING,
            show_default=False,
        ),
    ] = None
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE",
            help="Writes the mappings: FILE.json, or FILE.yaml in the form of Timeloop (one mapping only).",
            rich_help_panel=MAPPING,
            show_default=False,
        ),
    ] = None
    bits: Annotated[
        list[str],
        typer.Option(
            "--bits",
            metavar="I1=8",
            help="The most bits of an operand: I1 (activations), I2 (weights), O (sums), final (outputs). Without "
            "it, what the machine's units take.",
            rich_help_panel=MAPPING,
        ),
    ] = field(default_factory=list[str])
    density: Annotated[
        list[str],
        typer.Option(
            "--density",
            metavar="I2=0.3",
            help="The part of the elements of an operand that is not zero, by its name or as I1, I2, O.",
            rich_help_panel=MAPPING,
        ),
    ] = field(default_factory=list[str])
    corrected: Annotated[
        bool,
        typer.Option(
            "--corrected",
            help="Uses a model that is put right where ZigZag's is known to be wrong.",
            rich_help_panel=MAPPING,
        ),
    ] = False
    unrollings: Annotated[
        int,
        typer.Option(
            "--unrollings",
            metavar="N",
            min=1,
            max=10**6,
            help="Ways to unroll that are searched, those that use most units first.",
            rich_help_panel=SEARCH,
        ),
    ] = 3
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Several dimensions of a layer may share one of the array.",
            rich_help_panel=SEARCH,
        ),
    ] = False
    strategy: Annotated[
        Strategy,
        typer.Option(
            "--strategy",
            help="exact proves its result; loma (all orders of few factors) and salsa (annealing) are for comparison.",
            rich_help_panel=SEARCH,
        ),
    ] = "exact"
    factors: Annotated[
        int,
        typer.Option(
            "--factors", metavar="N", min=1, max=64, help="Loop factors of loma, at most.", rich_help_panel=SEARCH
        ),
    ] = 6
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", min=0, max=LARGEST, help="Seeds salsa.", rich_help_panel=SEARCH),
    ] = 0
    gap: Annotated[
        float,
        typer.Option(
            "--gap",
            metavar="F",
            min=0.0,
            max=1e6,
            help="The part by which a mapping may be above the best one; 0 is a proof.",
            rich_help_panel=SEARCH,
        ),
    ] = 0.0
    effort: Annotated[
        int | None,
        typer.Option(
            "--effort",
            metavar="N",
            min=0,
            max=10**15,
            help="Mappings that are evaluated for a layer at most; what is best then is not proved. 0: to the end.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            max=MOST_PROCESSES,
            help="Processes; results do not depend on it.",
            rich_help_panel=SEARCH,
        ),
    ] = 1


@dataclass(frozen=True)
class MappingLimits:
    """What mappings have to keep to."""

    max_cycles: Annotated[
        float | None,
        typer.Option(
            "--max-cycles", metavar="N", min=0.0, max=UNLIMITED, help="No slower mapping.", rich_help_panel=SEARCH
        ),
    ] = None
    max_energy: Annotated[
        float | None,
        typer.Option(
            "--max-energy",
            metavar="PJ",
            min=0.0,
            max=UNLIMITED,
            help="No mapping with more energy, in pJ.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    min_utilisation: Annotated[
        float,
        typer.Option("--min-utilisation", metavar="F", min=0.0, max=1.0, help="Of the units.", rich_help_panel=SEARCH),
    ] = 0.0

    @property
    def wanted(self) -> Wanted:
        cycles, energy = (inf if limit is None else limit for limit in (self.max_cycles, self.max_energy))
        return Wanted(cycles, energy, self.min_utilisation)


Locality = Annotated[
    bool,
    typer.Option("--locality", help="Results stay on chip until the next layer reads them.", rich_help_panel=MAPPING),
]
One = Annotated[
    Literal["latency", "energy", "edp"],
    typer.Option("--objective", help="What is least: cycles, energy, or their product.", rich_help_panel=SEARCH),
]
Any = Annotated[
    Literal["latency", "energy", "edp", "pareto"],
    typer.Option(
        "--objective",
        help="What is least: cycles, energy, or their product; pareto: all that no other one beats.",
        rich_help_panel=SEARCH,
    ),
]


def map_options(objective: Objective, mapping: Mapping, limits: MappingLimits | None = None) -> MapOptions:
    """What the texts mean."""
    if mapping.export is not None:
        check_form(mapping.export)
    return MapOptions(
        objective=objective,
        unrolling=Unrolling(_unrollings(mapping.unroll), mapping.mixed, mapping.unrollings),
        order=tuple(_loop("--order", text) for text in _items(mapping.order)),
        wanted=limits.wanted if limits else Wanted(),
        effort=_effort(mapping),
        pinned=read_mappings(mapping.mapping) if mapping.mapping else (),
        bits=sizes("--bits", mapping.bits),
        density=_parts("--density", mapping.density),
        strategy=mapping.strategy,
        factors=mapping.factors,
        seed=mapping.seed,
        corrected=mapping.corrected,
        jobs=mapping.jobs,
    )


def _effort(mapping: Mapping) -> Effort | None:
    if mapping.effort is None and not mapping.gap:
        return None
    return Effort(mappings=mapping.effort or inf, gap=mapping.gap)


def machines(given: Sequence[str]) -> list[str]:
    """The machines that are named."""
    if not given:
        raise TilewrightError(
            "bad-argument", "no machine is named", help=f"--machine NAME; there are {', '.join(machine_names())}"
        )
    return [name for one in given for name in (machine_names() if one == ALL else (one,))]


def sizes(option: str, texts: Sequence[str]) -> dict[str, int]:
    """`M=512,N=64` as numbers."""
    found: dict[str, int] = {}
    for text, name, value in _named(texts):
        number = whole_number(value)
        if not name or not number:
            raise TilewrightError(
                "bad-argument",
                f"{option} '{text}' is not a name with a number from 1 to {LARGEST}",
                help=f"such as {option} M=512",
            )
        _once(option, name, found)
        found[name] = number
    return found


def _parts(option: str, texts: Sequence[str]) -> dict[str, float]:
    """`I1=0.5,I2=0.25` as parts of a whole."""
    found: dict[str, float] = {}
    for text, name, value in _named(texts):
        try:
            part = float(value)
        except ValueError:
            part = -1.0
        if not name or not 0 <= part <= 1:
            raise TilewrightError(
                "bad-argument",
                f"{option} '{text}' is not a name with a number from 0 to 1",
                help=f"such as {option} I2=0.3",
            )
        _once(option, name, found)
        found[name] = part
    return found


def _once(option: str, name: str, found: MappingOf[str, object]) -> None:
    if name in found:
        raise TilewrightError("bad-argument", f"{option} names '{name}' twice", help="leave one of them away")


def _named(texts: Sequence[str]) -> list[tuple[str, str, str]]:
    """The whole of each item, its name and its value."""
    parted = ((item, item.partition("=")) for text in texts for item in _items(text))
    return [(item, name.strip(), value.strip()) for item, (name, _, value) in parted]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _loop(option: str, text: str) -> tuple[str, int | None]:
    name, sign, steps = (part.strip() for part in text.partition(":"))
    number = whole_number(steps)
    if not name or (sign and not number):
        raise TilewrightError(
            "bad-argument", f"{option} '{text}' is not a dimension with its steps", help=f"such as {option} K:32"
        )
    return name, number if sign else None


def _unrollings(texts: Sequence[str]) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for text in texts:
        array, loops = _unrolled(text)
        _once("--unroll", array, found)
        found[array] = loops
    return tuple(found.items())


def _unrolled(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    array, sign, rest = text.partition("=")
    loops = [_loop("--unroll", item) for item in _items(rest)]
    if not sign or any(steps is None for _, steps in loops):
        raise TilewrightError(
            "bad-argument",
            f"--unroll '{text}' is not a dimension of the array with those of the layer",
            help="such as --unroll D1=K:32 or --unroll D2=C:2,KW:3",
        )
    return array.strip(), tuple((name, steps or 1) for name, steps in loops)
