"""Runs cases on the simulated Siracusa in all configurations, checks on: `--cases DIR` (may be repeated).

Every combination of case, L1 size, home memory, engines and number of cores is compiled, built with all warnings, and
simulated with the timing of the chip, or another one (`--timing private`: units that cores do not share). It is `exact`
when all results are right and the checks found nothing, `needs` when the compiler says how many bytes a memory must
have at least, and else it `failed`. The exit status is 1 when anything failed. The table also counts networks whose
predicted cycles are within 10 %, and layers above 5000 cycles within 15 %; `--keep DIR` saves plans and profiles for
`python -m benchmarks prediction --again DIR`. `--save FILE` writes the cycles of all that was exact, and `--against
FILE` compares with such a file: `siracusa_cycles.json` beside this one has those of 8 cores with private units, 224 KiB
of L1 and home L2, before prices were calibrated.

Results are written to a file as they come. A run that was interrupted goes on where it stopped, as long as the package
is the same; combinations that failed are tried again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rich.console import Console
from rich.progress import track
from rich.table import Table

import tilewright
from benchmarks.prediction import LAYER, LEAST, NETWORK, Job, Run, layer_off, network_off, rows_of, save
from benchmarks.siracusa import ENGINES, PLATFORM
from tilewright.api import Options, find_cases, load_case, run_model
from tilewright.codegen.build import STRICT
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform

BYTES = re.compile(r"at least [0-9]+ bytes of \w+")
SHOWN = 400
"""Characters of an error that a line shows."""

Status = Literal["exact", "needs", "failed"]
STATUSES: tuple[Status, ...] = ("exact", "needs", "failed")


class Setting(Struct, frozen=True):
    """One program."""

    name: str
    place: str
    l1: int
    home: str
    engines: str
    cores: int
    timing: str

    @property
    def way(self) -> str:
        """What its cycles are compared by: those of all timings with each other."""
        return f"L1={self.l1} home={self.home} engines={self.engines} cores={self.cores}"

    def __str__(self) -> str:
        return f"{self.name} {self.way} timing={self.timing}"


class Result(Struct, frozen=True):
    """What became of a setting."""

    setting: Setting
    status: Status
    detail: str = ""
    seconds: float = 0.0
    cycles: int = 0
    predicted: float = 0.0
    layers: tuple[tuple[int, float], ...] = ()
    """Cycles of every layer, simulated and predicted."""


def judge(setting: Setting, keep: Path | None) -> Result:
    """Compiles, builds, simulates and compares; never raises for what goes wrong."""
    start = time.perf_counter()
    try:
        result = run(setting, keep)
    except TilewrightError as error:
        small = error.code == "does-not-fit" and BYTES.search(error.what)
        result = Result(setting, "needs" if small else "failed", str(error))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        result = Result(setting, "failed", f"internal error: {type(error).__name__}: {error} ({where})")
    return replace(result, seconds=time.perf_counter() - start)


def run(setting: Setting, keep: Path | None) -> Result:
    """One combination that compiles."""
    case = load_case(setting.name, Path(setting.place))
    job = Job(setting.name, Path(setting.place), setting.l1, setting.cores, setting.engines, setting.home)
    options = Options(platform=PLATFORM, sizes=job.sizes)
    ran = run_model(
        *(case.model, options),
        inputs=case.inputs,
        expected=case.expected,
        rule=case.rule,
        flags=STRICT,
        profile=True,
        timing=setting.timing,
    )
    wrong = [f"{c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.3g}" for c in ran.comparisons if c.wrong]
    profiled = Run(job, ran.compiled.plan, ran.groups, ran.cycles or 0)
    if keep is not None:
        save(profiled, keep)
    layers = tuple((row.cycles, row.predicted) for row in rows_of(profiled))
    return Result(
        *(setting, "failed" if wrong else "exact", "; ".join(wrong)),
        cycles=profiled.cycles,
        predicted=sum(predicted for _, predicted in layers),
        layers=layers,
    )


def package() -> str:
    """Tells one state of the package from another."""
    digest = hashlib.sha256()
    for path in sorted(Path(tilewright.__file__).parent.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def known(file: Path, state: str) -> dict[Setting, Result]:
    """What an earlier run found out about the same package, but for failures."""
    found: dict[Setting, Result] = {}
    for text in file.read_text().splitlines() if file.is_file() else ():
        line = json.loads(text)
        if line.pop("package") == state and line["status"] != "failed":
            setting = Setting(**line.pop("setting"))
            found[setting] = Result(setting, **line)
    return found


def each(settings: Sequence[Setting], file: Path, jobs: int, keep: Path | None) -> list[Result]:
    """Judges settings in processes; prints failures and notes every result as it comes."""
    state = package()
    results = known(file, state)
    left = [setting for setting in settings if setting not in results]
    console = Console(stderr=True)
    console.print(f"{len(settings) - len(left)} of {len(settings)} combinations are known from {file}")
    file.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(max_workers=jobs) as pool, file.open("a") as notes:
        waiting = [pool.submit(judge, setting, keep) for setting in left]
        for done in track(as_completed(waiting), "run", len(left), console=console, disable=not console.is_terminal):
            result = done.result()
            results[result.setting] = result
            notes.write(json.dumps({**to_builtins(result, enc_hook=str), "package": state}) + "\n")
            notes.flush()
            if result.status == "failed":
                # The first lines of a compiler's refusal are its command.
                lines = [part.strip() for part in result.detail.splitlines()]
                telling = [part for part in lines if "error:" in part] or lines
                print(f"FAILED {result.setting}: {' | '.join(telling)[:SHOWN]}", flush=True)
    return [results[setting] for setting in settings]


def table(results: Sequence[Result]) -> Table:
    """Counts by configuration."""
    shown = Table(title="Cases on Siracusa", caption="networks and layers: of how many cycles were predicted well")
    for column in (
        "L1 bytes",
        "home",
        "engines",
        "cores",
        *STATUSES,
        "networks predicted",
        "layers predicted",
        "s each",
    ):
        shown.add_column(column, justify="right")
    ways = sorted({(r.setting.l1, r.setting.home, r.setting.engines, r.setting.cores) for r in results})
    for way in [*ways, None]:
        mine = [r for r in results if way in (None, (r.setting.l1, r.setting.home, r.setting.engines, r.setting.cores))]
        if way is None:
            shown.add_section()
        counts = Counter(r.status for r in mine)
        networks = [network_off(r.predicted, r.cycles) <= NETWORK for r in mine if r.cycles]
        layers = [
            layer_off(predicted, cycles) <= LAYER for r in mine for cycles, predicted in r.layers if cycles >= LEAST
        ]
        shown.add_row(
            *(map(str, way) if way else ("all", "", "", "")),
            *(str(counts[status]) for status in STATUSES),
            *(f"{sum(right)} of {len(right)}" for right in (networks, layers)),
            f"{sum(r.seconds for r in mine) / max(len(mine), 1):.1f}",
        )
    return shown


def cycles_of(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Cycles of exact results, by configuration and case."""
    found: dict[str, dict[str, int]] = {}
    for result in results:
        if result.status == "exact":
            found.setdefault(result.setting.way, {})[result.setting.name] = result.cycles
    return {way: dict(sorted(cases.items())) for way, cases in sorted(found.items())}


def comparison(found: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]]) -> Table:
    """Cycles against those of an earlier state, by configuration."""
    shown = Table(title="Cycles against an earlier state", caption="ratios below 1 are faster")
    for column in ("configuration", "cases", "geometric mean", "best", "worst"):
        shown.add_column(column, justify="left" if column == "configuration" else "right")
    for way, cases in found.items():
        old = before.get(way, {})
        ratios = sorted((cycles / old[name], name) for name, cycles in cases.items() if name in old)
        if ratios:
            mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
            ends = (f"{ratio:.3f} {name}" for ratio, name in (ratios[0], ratios[-1]))
            shown.add_row(way, str(len(ratios)), f"{mean:.4f}", *ends)
    return shown


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, action="append", required=True, help="folder of cases, may be repeated")
    parser.add_argument("--filter", default="", help="only cases whose name contains this text")
    parser.add_argument("--l1", type=int, nargs="+", default=[16384, 65536, 229376], help="the last is all there is")
    parser.add_argument("--home", nargs="+", default=["L2", "L3"], help="memories of inputs, outputs and weights")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--timing", default="rtl", choices=load_platform(PLATFORM).timings, help="of the simulator")
    parser.add_argument("--results", type=Path, default=Path("build/siracusa_matrix.jsonl"), help="where they are kept")
    parser.add_argument("--keep", type=Path, help="saves plans and profiles in this folder")
    parser.add_argument("--save", type=Path, help="writes cycles of exact results to this file")
    parser.add_argument("--against", type=Path, help="compares cycles with those of such a file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args()


def main() -> int:
    """Runs the combinations that were asked for."""
    chosen = arguments()
    cases = [case for case in find_cases(chosen.cases) if chosen.filter in case[0]]
    ways = product(chosen.l1, chosen.home, chosen.engines, chosen.cores)
    settings = [Setting(name, str(place), *way, chosen.timing) for way in ways for name, place in cases]
    results = each(settings, chosen.results, chosen.jobs, chosen.keep)
    Console().print(table(results))
    if chosen.save is not None:
        chosen.save.write_text(json.dumps(cycles_of(results), indent=1) + "\n", encoding="utf-8")
    if chosen.against is not None:
        before = json.loads(chosen.against.read_text(encoding="utf-8"))
        Console().print(comparison(cycles_of(results), before))
    return 1 if not results or any(result.status == "failed" for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
