"""A page about a language model on a simulated chip: how fast it is where, what a token takes, engines compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tilewright.base.files import write_file
from tilewright.report.bars import Picture, scatter, stacked
from tilewright.report.costs_page import TEMPLATE, picture_section
from tilewright.report.markup import escaped, lines, page


class MeasuredTokens(Struct, frozen=True):
    """One configuration of a chip."""

    name: str
    hertz: float
    cycles: tuple[tuple[int, int], ...]
    """By position, those of a token there."""
    at: int
    """The position of the token whose parts these are."""
    kinds: Mapping[str, float]
    """Cycles by what layers are for."""
    joules: Mapping[str, float]
    """By component, as the energy model of the platform has it."""

    @property
    def rate(self) -> float:
        """Tokens per second, of the positions that were looked at."""
        return self.hertz * len(self.cycles) / sum(cycles for _, cycles in self.cycles)


def write_language(path: Path, title: str, measured: Sequence[MeasuredTokens], kinds: Sequence[str]) -> None:
    """Writes the page, whole or not at all; the first configuration is the one that was asked for."""
    write_file(path, render_language(title, measured, kinds).encode())


def render_language(title: str, measured: Sequence[MeasuredTokens], kinds: Sequence[str]) -> str:
    """The page as text."""
    first = measured[0]
    speeds = ", ".join(f"{one.name}: {one.rate:,.0f} tokens/s" for one in measured)
    head = [
        f"<h1>{escaped(title)}</h1>",
        f"<p>Simulated at {first.hertz / 1e6:g} MHz, one token at a time. {escaped(speeds)}, "
        f"on average over {len(first.cycles)} positions.</p>",
    ]
    pictures = [_growth(first), _kinds(measured, kinds), _energy(measured)]
    return page(TEMPLATE, title=escaped(title), body=lines(head) + "".join(map(picture_section, pictures)))


def _growth(one: MeasuredTokens) -> Picture:
    points = [(at, one.hertz / cycles, f"position {at}: {cycles:,} cycles") for at, cycles in one.cycles]
    note = f"{one.name}: attention reads as many rows as there are tokens before."
    return scatter("Tokens per second against position", note, points, across="position", text=lambda v: f"{v:,.0f}")


def _kinds(measured: Sequence[MeasuredTokens], kinds: Sequence[str]) -> Picture:
    rows = [(one.name, one.kinds, f"{sum(one.kinds.values()):,.0f}") for one in measured]
    return stacked("Cycles of a token", f"By what layers are for, at position {measured[0].at}.", rows, kinds)


def _energy(measured: Sequence[MeasuredTokens]) -> Picture:
    parts = tuple(dict.fromkeys(name for one in measured for name in one.joules))
    rows = [
        (
            one.name,
            {name: joules * 1e9 for name, joules in one.joules.items()},
            f"{sum(one.joules.values()) * 1e6:.1f} uJ",
        )
        for one in measured
    ]
    note = f"In nJ, by component, at position {measured[0].at}; by the linear model of the platform."
    return stacked("Energy of a token", note, rows, parts)
