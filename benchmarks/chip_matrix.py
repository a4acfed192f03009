"""Runs cases on simulated chips, checks on: `--cases DIR` (may be repeated), `--platform NAME ...`.

Every combination of case, platform, L1 size, home memory, engines and number of cores is compiled, built with all
warnings, and simulated with the timing of the chip, or another one (`--timing private` of Siracusa: units that cores do
not share). It is `exact` when all results are right and the checks found nothing, `needs` when the compiler says how
many bytes a memory must have at least, `late` when it takes longer than `--seconds`, and else it `failed`. The exit
status is 1 when anything failed. Sizes are those of the platform, on Siracusa several (`WAYS`), unless they are given.
Cases run by size, small ones first. The table also counts networks whose predicted cycles are within 10 %, and layers
above 5000 cycles within 15 %; `--keep DIR` saves plans and profiles for `python -m benchmarks prediction --again DIR`.
`--each` prints a line for each case. `--save FILE` writes the cycles of all that was exact, and `--against FILE`
compares with such a file. Beside this one are `siracusa_cycles.json`, of 8 cores with private units, 224 KiB of L1 and
home L2, before prices were calibrated, `snitch_cycles.json`, of all cases, and `mempool_cycles.json`, of most: 104 of
111 on `mempool`, 98 on `mempool-ita`.

Results are written to a file as they come. A run that was interrupted goes on where it stopped, as long as the package
is the same; combinations that failed, or were late with less time, are tried again.
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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Literal

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace
from rich.console import Console
from rich.progress import track
from rich.table import Table

import tilewright
from benchmarks.fuzzing.workers import Verdict, judged
from benchmarks.prediction import LAYER, LEAST, NETWORK, Job, Run, layer_off, network_off, rows_of, save
from benchmarks.siracusa import ENGINES, PLATFORM
from tilewright.api import Options, find_cases, load_case, run_model
from tilewright.codegen.build import STRICT
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform
from tilewright.sim.limits import Limits

BYTES = re.compile(r"at least [0-9]+ bytes of \w+")
SHOWN = 400
"""Characters of an error that a line shows."""
WIDTH = 180
"""Of tables in a file."""

PLATFORMS = (PLATFORM, "snitch", "snitch-ita", "mempool", "mempool-ita")

Status = Literal["exact", "needs", "late", "failed"]
STATUSES: tuple[Status, ...] = ("exact", "needs", "late", "failed")


class Ways(Struct, frozen=True):
    """The machines that one platform is run as; the last size of L1 is all there is."""

    l1: tuple[int, ...]
    home: tuple[str, ...]
    engines: tuple[str, ...]
    cores: tuple[int, ...]


WAYS = {PLATFORM: Ways((16384, 65536, 229376), ("L2", "L3"), tuple(ENGINES), (1, 8))}
"""Of platforms that are run as more than what their description says."""


class Setting(Struct, frozen=True):
    """One program."""

    name: str
    place: str
    platform: str
    l1: int
    home: str
    engines: str
    cores: int
    timing: str

    @property
    def machine(self) -> tuple[str, int, str, str, int]:
        return self.platform, self.l1, self.home, self.engines, self.cores

    @property
    def way(self) -> str:
        """What its cycles are compared by: those of all timings with each other."""
        return f"{self.platform} L1={self.l1} home={self.home} engines={self.engines} cores={self.cores}"

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


def within(setting: Setting, keep: Path | None, most: float) -> Result:
    """The same in a process of its own, which ends with all that it started when the time is over."""

    def work(_: Sequence[int]) -> Iterator[Verdict]:
        yield Verdict(0, "right", json.dumps(to_builtins(judge(setting, keep))))

    (verdict,) = judged(work, [0], most, cpu_seconds=math.ceil(most))
    if verdict.fine:
        return convert(json.loads(verdict.detail), Result)
    return Result(setting, "late" if verdict.status == "hang" else "failed", verdict.detail, most)


def run(setting: Setting, keep: Path | None) -> Result:
    """One combination that compiles."""
    case = load_case(setting.name, Path(setting.place))
    sizes = (setting.l1, setting.cores, setting.engines, setting.home)
    job = Job(setting.name, Path(setting.place), *sizes, platform=setting.platform)
    options = Options(platform=setting.platform, sizes=job.sizes)
    ran = run_model(
        *(case.model, options),
        inputs=case.inputs,
        expected=case.expected,
        rule=case.rule,
        flags=STRICT,
        profile=True,
        timing=setting.timing,
        limits=Limits(seconds=math.inf),
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


def known(file: Path, state: str, most: float) -> dict[Setting, Result]:
    """What an earlier run found out about the same package, but for failures and what may end in `most` seconds."""
    found: dict[Setting, Result] = {}
    for text in file.read_text().splitlines() if file.is_file() else ():
        line = json.loads(text)
        if line.pop("package") == state:
            result = convert(line, Result)
            if result.status in ("exact", "needs") or (result.status == "late" and result.seconds >= most):
                found[result.setting] = result
    return found


def each(settings: Sequence[Setting], file: Path, jobs: int, keep: Path | None, most: float) -> list[Result]:
    """Judges settings in processes; prints failures and notes every result as it comes."""
    state = package()
    results = known(file, state, most)
    left = [setting for setting in settings if setting not in results]
    console = Console(stderr=True)
    console.print(f"{len(settings) - len(left)} of {len(settings)} combinations are known from {file}")
    file.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(max_workers=jobs) as pool, file.open("a") as notes:
        waiting = [pool.submit(within, setting, keep, most) for setting in left]
        for done in track(as_completed(waiting), "run", len(left), console=console, disable=not console.is_terminal):
            result = done.result()
            results[result.setting] = result
            notes.write(json.dumps({**to_builtins(result), "package": state}) + "\n")
            notes.flush()
            if result.status in ("late", "failed"):
                # The first lines of a compiler's refusal are its command.
                lines = [part.strip() for part in result.detail.splitlines()]
                telling = [part for part in lines if "error:" in part] or lines
                print(f"{result.status.upper()} {result.setting}: {' | '.join(telling)[:SHOWN]}", flush=True)
    return [results[setting] for setting in settings]


def table(results: Sequence[Result]) -> Table:
    """Counts by configuration."""
    shown = Table(
        title="Cases on simulated chips", caption="networks and layers: of how many cycles were predicted well"
    )
    for column in (
        "platform",
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
    for way in [*sorted({r.setting.machine for r in results}), None]:
        mine = [r for r in results if way in (None, r.setting.machine)]
        if way is None:
            shown.add_section()
        counts = Counter(r.status for r in mine)
        networks = [network_off(r.predicted, r.cycles) <= NETWORK for r in mine if r.cycles]
        layers = [
            layer_off(predicted, cycles) <= LAYER for r in mine for cycles, predicted in r.layers if cycles >= LEAST
        ]
        shown.add_row(
            *(map(str, way) if way else ("all", "", "", "", "")),
            *(str(counts[status]) for status in STATUSES),
            *(f"{sum(right)} of {len(right)}" for right in (networks, layers)),
            f"{sum(r.seconds for r in mine) / max(len(mine), 1):.1f}",
        )
    return shown


def by_case(results: Sequence[Result]) -> Table:
    """What became of each case, with its cycles or the bytes that it needs, by configuration."""
    found: dict[str, dict[str, str]] = {}
    for result in results:
        bytes_needed = BYTES.search(result.detail)
        told = f"{result.cycles:,}" if result.status == "exact" else result.status
        told = bytes_needed[0] if result.status == "needs" and bytes_needed else told
        found.setdefault(result.setting.name, {})[result.setting.way] = told
    ways = sorted({result.setting.way for result in results})
    shown = Table("case", *ways, title="Cycles")
    for name, cells in found.items():
        shown.add_row(name, *(cells.get(way, "") for way in ways))
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


def ways_of(platform: str) -> Ways:
    """How a platform is run where nothing else is asked for."""
    target = load_platform(platform)
    near = target.memories[target.cores.memory].bytes
    assert near is not None
    return WAYS.get(platform, Ways((near,), (target.home,), ("all",), (target.cores.count,)))


def settings_of(chosen: argparse.Namespace) -> list[Setting]:
    """All combinations, small cases first."""
    cases = [case for case in find_cases(chosen.cases) if chosen.filter in case[0]]
    cases.sort(key=lambda case: sum(path.stat().st_size for path in case[1].parent.glob(f"{case[1].stem}*")))
    found: list[Setting] = []
    for platform in chosen.platform:
        usual, timing = ways_of(platform), chosen.timing or next(iter(load_platform(platform).timings))
        ways = product(
            *(chosen.l1 or usual.l1, chosen.home or usual.home),
            *(chosen.engines or usual.engines, chosen.cores or usual.cores),
        )
        found += [Setting(name, str(place), platform, *way, timing) for way in ways for name, place in cases]
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, action="append", required=True, help="folder of cases, may be repeated")
    parser.add_argument("--filter", default="", help="only cases whose name contains this text")
    parser.add_argument("--platform", nargs="+", default=list(PLATFORMS), help="simulated platforms")
    parser.add_argument("--l1", type=int, nargs="+", help="bytes")
    parser.add_argument("--home", nargs="+", help="memories of inputs, outputs and weights")
    parser.add_argument("--engines", nargs="+", choices=ENGINES)
    parser.add_argument("--cores", type=int, nargs="+")
    parser.add_argument("--timing", default="", help="of the simulator")
    parser.add_argument("--seconds", type=float, default=1800, help="of this computer, for one combination")
    parser.add_argument("--results", type=Path, default=Path("build/chip_matrix.jsonl"), help="where they are kept")
    parser.add_argument("--keep", type=Path, help="saves plans and profiles in this folder")
    parser.add_argument("--each", action="store_true", help="prints a table of all cases, too")
    parser.add_argument("--save", type=Path, help="writes cycles of exact results to this file")
    parser.add_argument("--against", type=Path, help="compares cycles with those of such a file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args()


def main() -> int:
    """Runs the combinations that were asked for."""
    chosen = arguments()
    results = each(settings_of(chosen), chosen.results, chosen.jobs, chosen.keep, chosen.seconds)
    console = Console(width=None if Console().is_terminal else WIDTH)
    if chosen.each:
        console.print(by_case(results))
    console.print(table(results))
    if chosen.save is not None:
        chosen.save.write_text(json.dumps(cycles_of(results), indent=1) + "\n", encoding="utf-8")
    if chosen.against is not None:
        before = json.loads(chosen.against.read_text(encoding="utf-8"))
        Console().print(comparison(cycles_of(results), before))
    return 1 if not results or any(result.status == "failed" for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
