"""Cycles of the fastest of N measured plans against those of the predicted best, of every network of `--cases DIR`.

Both are simulated with the inputs that come with the network, and results are compared with what is expected. The exit
status is 1 where a result is wrong, where reported cycles are not the simulated ones, where a network became slower, or
where the geometric mean of all ratios is above `--goal`. `--before FILE` takes the cycles of the predicted plans from
the JSON file of an earlier run, such as one of another version.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from math import exp, log
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from benchmarks.siracusa import ENGINES, PLATFORM
from tilewright.api import Options, find_cases, load_case, run_model
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes

SLOWER = 1.02
"""How much slower a network may be than before."""


class Row(Struct, frozen=True):
    """One network on one machine."""

    name: str
    engines: str
    before: int
    """Simulated cycles of the plan predicted to be best."""
    measured: int
    """Simulated cycles of the plan that is kept."""
    reported: float
    """What the compiler says of it."""
    right: bool

    @property
    def ratio(self) -> float:
        return self.measured / self.before

    @property
    def good(self) -> bool:
        return self.right and self.reported == self.measured and self.ratio <= SLOWER


def row_of(name: str, place: Path, engines: str, plans: int, before: Mapping[tuple[str, str], int]) -> Row | None:
    """Runs a network both ways; None where it does not fit."""
    case = load_case(name, place)
    sizes = Sizes(without=ENGINES[engines])
    try:
        known = before.get((name, engines))
        if known is None:
            known = run_model(case.model, Options(PLATFORM, sizes=sizes), inputs=case.inputs).cycles or 1
        options = Options(PLATFORM, sizes=sizes, measure=plans)
        ran = run_model(case.model, options, inputs=case.inputs, expected=case.expected)
    except TilewrightError as reason:
        print(f"{name}: {reason}", flush=True)
        return None
    schedule = ran.compiled.plan.schedule
    row = Row(name, engines, known, ran.cycles or 1, schedule.cycles if schedule else 0.0, ran.right)
    print(f"{row.ratio:.3f} {row.before:>12,} {row.measured:>12,} {engines:5} {name}", flush=True)
    return row


def mean(rows: Sequence[Row]) -> float:
    """The geometric mean of all ratios."""
    return exp(sum(log(row.ratio) for row in rows) / len(rows)) if rows else 1.0


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, action="append", default=[])
    parser.add_argument("--plans", type=int, default=3, help="how many are measured")
    parser.add_argument("--engines", nargs="+", choices=[*ENGINES], default=["all"])
    parser.add_argument("--only", default="", help="part of the names of networks to run")
    parser.add_argument("--goal", type=float, default=0.97, help="the mean that is asked for")
    parser.add_argument("--before", type=Path, help="a file that an earlier run wrote")
    parser.add_argument("--json", type=Path, help="writes the figures to this file")
    options = parser.parse_args()
    kept: list[dict[str, Any]] = json.loads(options.before.read_text()) if options.before else []
    before = {(row["name"], row["engines"]): int(row["before"]) for row in kept}
    ways = [(n, p, e) for n, p in find_cases(options.cases) if options.only in n for e in options.engines]
    rows = [row for name, place, engines in ways if (row := row_of(name, place, engines, options.plans, before))]
    table = Table("network", "engines", title=f"the fastest of {options.plans} plans", title_justify="left")
    for heading in ("predicted best", "measured best", "ratio", ""):
        table.add_column(heading, justify="right")
    for row in sorted(rows, key=lambda row: row.ratio):
        numbers = (f"{row.before:,}", f"{row.measured:,}", f"{row.ratio:.3f}")
        table.add_row(row.name, row.engines, *numbers, "" if row.good else "WRONG")
    Console(width=120).print(table)
    print(f"geometric mean of {len(rows)} networks: {mean(rows):.4f}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0 if all(row.good for row in rows) and mean(rows) <= options.goal else 1
