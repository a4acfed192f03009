"""Cycles of the fastest of N measured plans against those of the predicted best, of every network of `--cases DIR`.

Both are simulated with the inputs that come with the network, and results are compared with what is expected. The exit
status is 1 where a result is wrong, where reported cycles are not the simulated ones, where a network became slower, or
where the geometric mean of all ratios is above `--goal`. `--before FILE` takes the cycles to compare with from a file
that `chip_matrix --save` wrote, such as `benchmarks/siracusa_cycles.json` of another version, which is of private units
(`--timing private`). Such a timing is the usual one of a copy of the platform that is made for it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import exp, log
from pathlib import Path

import yaml
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from benchmarks.siracusa import ENGINES, L1, PLATFORM
from tilewright.api import Options, find_cases, load_case, run_model
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes, load_platform

SLOWER = 1.02
"""How much slower a network may be than before."""


class Job(Struct, frozen=True):
    """One network on one machine."""

    name: str
    place: Path
    platform: str
    engines: str
    plans: int
    before: int | None
    """Cycles to compare with; the predicted best is run where there are none."""


class Row(Struct, frozen=True):
    """What became of a job."""

    name: str
    engines: str
    before: int
    """Simulated cycles of the plan predicted to be best, or those of another version."""
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


def row_of(job: Job) -> Row | str:
    """Runs a network both ways, or says why that cannot be done."""
    case = load_case(job.name, job.place)
    sizes = Sizes({"L1": L1}, without=ENGINES[job.engines])
    try:
        known = job.before
        if known is None:
            known = run_model(case.model, Options(job.platform, sizes=sizes), inputs=case.inputs).cycles or 1
        options = Options(job.platform, sizes=sizes, measure=job.plans)
        ran = run_model(case.model, options, inputs=case.inputs, expected=case.expected)
    except TilewrightError as reason:
        return f"{job.name} {job.engines}: {reason}"
    schedule = ran.compiled.plan.schedule
    return Row(job.name, job.engines, known, ran.cycles or 1, schedule.cycles if schedule else 0.0, ran.right)


def platform_with(timing: str, folder: Path) -> str:
    """A copy of the platform whose usual timing is another one; the platform itself where none is asked for."""
    if not timing:
        return PLATFORM
    given = load_platform(PLATFORM).folder
    shutil.copytree(given.parent, folder, dirs_exist_ok=True)
    file = folder / given.name / "platform.yaml"
    described = yaml.safe_load(file.read_text(encoding="utf-8"))
    timings = described["simulator"]["timings"]
    described["simulator"]["timings"] = {timing: timings.pop(timing), **timings}
    file.write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
    return str(file.parent)


def mean(rows: Sequence[Row]) -> float:
    """The geometric mean of all ratios."""
    return exp(sum(log(row.ratio) for row in rows) / len(rows)) if rows else 1.0


def known_cycles(file: Path | None) -> Mapping[tuple[str, str], int]:
    """Cycles by network and engines, of eight cores with all of L1."""
    kept: dict[str, dict[str, int]] = json.loads(file.read_text(encoding="utf-8")) if file else {}
    ways = {engines: f"{PLATFORM} L1={L1} home=L2 engines={engines} cores=8" for engines in ENGINES}
    return {(name, engines): cycles for engines, way in ways.items() for name, cycles in kept.get(way, {}).items()}


def table(rows: Sequence[Row], plans: int) -> Table:
    shown = Table("network", "engines", title=f"the fastest of {plans} plans", title_justify="left")
    for heading in ("before", "measured best", "ratio", ""):
        shown.add_column(heading, justify="right")
    for row in sorted(rows, key=lambda row: row.ratio):
        numbers = (f"{row.before:,}", f"{row.measured:,}", f"{row.ratio:.3f}")
        shown.add_row(row.name, row.engines, *numbers, "" if row.good else "WRONG")
    return shown


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, action="append", default=[])
    parser.add_argument("--plans", type=int, default=3, help="how many are measured")
    parser.add_argument("--engines", nargs="+", choices=[*ENGINES], default=["all"])
    parser.add_argument("--only", default="", help="part of the names of networks to run")
    parser.add_argument("--goal", type=float, default=0.97, help="the mean that is asked for")
    parser.add_argument("--before", type=Path, help="cycles to compare with")
    parser.add_argument("--timing", default="", help="of the simulator, for planning, measuring and running")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="networks at a time")
    parser.add_argument("--json", type=Path, help="writes the figures to this file")
    options = parser.parse_args()
    before = known_cycles(options.before)
    found = [case for case in find_cases(options.cases) if options.only in case[0]]
    # Those that take longest begin first.
    found.sort(key=lambda case: -sum(path.stat().st_size for path in case[1].parent.glob(f"{case[1].stem}*")))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder, ProcessPoolExecutor(options.jobs) as pool:
        platform = platform_with(options.timing, Path(folder))
        jobs = [
            Job(name, place, platform, engines, options.plans, before.get((name, engines)))
            for name, place in found
            for engines in options.engines
        ]
        for done in as_completed([pool.submit(row_of, job) for job in jobs]):
            row = done.result()
            if isinstance(row, str):
                print(row, flush=True)
                continue
            rows.append(row)
            print(f"{row.ratio:.3f} {row.before:>12,} {row.measured:>12,} {row.engines:5} {row.name}", flush=True)
    Console(width=120).print(table(rows, options.plans))
    print(f"geometric mean of {len(rows)} networks: {mean(rows):.4f}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0 if all(row.good for row in rows) and mean(rows) <= options.goal else 1


if __name__ == "__main__":
    raise SystemExit(main())
