"""Plans of networks for a scratchpad: all layers together against layer by layer, `--cases DIR [DIR ...]`.

The baseline plans every layer on its own with the largest tile that fits, double-buffered, and keeps nothing in L1
between layers. The exit status is 1 where a joint plan is slower than the baseline, or where one of the networks named
below moves more than 60 % of the baseline's bytes between L2 and L1.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from tilewright.api import Options, find_cases, load_case, plan_model
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions
from tilewright.report.groups import Totals, group_table

PLATFORM = "scratchpad"
WATCHED = ("tblock", "microLlama64_parallel", "resnet8")
SHARE = 0.6
NETWORKS = ("Models/", "_fp32", "_int8")
"""Cases that are networks, by part of their name."""


class Row(Struct, frozen=True):
    """One network at one size of L1."""

    name: str
    l1: int
    cycles: float
    baseline_cycles: float
    moved: int
    baseline_moved: int
    gap: float | None
    seconds: float

    @property
    def cut(self) -> float:
        """Share of the baseline's bytes that are not moved."""
        return 1 - self.moved / self.baseline_moved if self.baseline_moved else 0.0

    @property
    def right(self) -> bool:
        """Whether the plan keeps what is promised."""
        watched = any(name in self.name for name in WATCHED)
        return self.cycles <= self.baseline_cycles and (not watched or self.cut >= 1 - SHARE)


def totals(case: Path, name: str, l1: int, home: str, planning: PlanOptions) -> Totals:
    """What a plan adds up to."""
    found = load_case(name, case)
    options = Options(platform=PLATFORM, sizes=Sizes({"L1": l1}, home), planning=planning)
    plan = plan_model(found.model, options, samples=found.inputs)[1]
    assert plan.schedule is not None
    return group_table(plan, plan.schedule).totals


def row(case: Path, name: str, l1: int, home: str) -> Row | None:
    """Both plans of a network; None where it does not fit."""
    try:
        baseline = totals(case, name, l1, home, PlanOptions(joint=False, fuse="off"))
        began = time.process_time()
        joint = totals(case, name, l1, home, PlanOptions())
    except TilewrightError as error:
        if error.code != "does-not-fit":
            raise
        return None
    seconds = time.process_time() - began
    return Row(name, l1, joint.cycles, baseline.cycles, joint.moved, baseline.moved, joint.gap, seconds)


def main() -> int:
    """Plans every network below the folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, action="append", required=True, help="folder of cases; repeat for more")
    parser.add_argument("--l1", type=int, nargs="+", default=[65536, 262144], help="bytes of L1")
    parser.add_argument("--home", default="L2", help="memory of inputs, outputs and weights")
    parser.add_argument("--filter", default="", help="only cases with this in their name")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    cases = [c for c in find_cases(chosen.cases) if chosen.filter in c[0] and any(n in c[0] for n in NETWORKS)]
    rows = [r for l1 in chosen.l1 for name, case in cases if (r := row(case, name, l1, chosen.home)) is not None]
    if chosen.json:
        print(json.dumps([asdict(r) for r in rows], indent=2))
    else:
        _print(rows)
    return 0 if rows and all(r.right for r in rows) else 1


def _print(rows: list[Row]) -> None:
    table = Table("network", title="joint plan against layer by layer, largest tile that fits")
    for name in ("L1", "cycles", "baseline", "ratio", "moved", "baseline ", "cut", "gap", "CPU s", ""):
        table.add_column(name, justify="right")
    for r in rows:
        table.add_row(
            r.name,
            f"{r.l1:,}",
            f"{r.cycles:,.0f}",
            f"{r.baseline_cycles:,.0f}",
            f"{r.cycles / r.baseline_cycles:.2f}",
            f"{r.moved:,}",
            f"{r.baseline_moved:,}",
            f"{r.cut:.0%}",
            "" if r.gap is None else f"{r.gap:.1%}",
            f"{r.seconds:.2f}",
            "" if r.right else "MISSED",
        )
    Console(width=160).print(table)


if __name__ == "__main__":
    raise SystemExit(main())
