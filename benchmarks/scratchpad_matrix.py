"""Compiles, builds and runs cases for scratchpads of many sizes: `--cases DIR` (may be repeated).

Every combination of case, L1 size, home memory and number of cores is compiled and built once, with sanitizers and
without optimisation, and run with every moment at which the DMA may copy. It is `exact` when all results are right,
`needs` when the compiler says how many bytes a memory must have at least, and else it `failed`. The exit status is 1
when anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tilewright.api import Options, compile_model, find_cases, load_case
from tilewright.api.feeding import fit
from tilewright.api.running import compare
from tilewright.codegen.build import SANITIZE, STRICT, build
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions
from tilewright.sim import EmulatedMachine, Moment, run_on_host

PLATFORM = "scratchpad"
FLAGS = (*STRICT, *SANITIZE, "-O0")
MOMENTS: tuple[Moment, ...] = ("start", "wait", "random")
TOO_SMALL = "does-not-fit"
LEAST = re.compile(r"at least ([0-9]+) bytes of (\w+)")
SHOWN = 400
"""Characters of an error that a line shows."""

Status = Literal["exact", "needs", "failed"]
STATUSES: tuple[Status, ...] = ("exact", "needs", "failed")
Value = TypeVar("Value")


class Setting(Struct, frozen=True):
    """One program to build, and the runs of it."""

    name: str
    place: Path
    memories: tuple[tuple[str, int], ...]
    home: str
    cores: int
    moments: tuple[Moment, ...]
    seed: int

    @property
    def l1(self) -> int:
        return dict(self.memories)["L1"]

    def __str__(self) -> str:
        sizes = " ".join(f"{memory}={size}" for memory, size in self.memories)
        return f"{self.name} {sizes} home={self.home} cores={self.cores}"


class Result(Struct, frozen=True):
    """What became of a setting; `needed` are the memories that need at least so many bytes."""

    setting: Setting
    status: Status
    detail: str
    seconds: float
    needed: tuple[tuple[str, int], ...] = ()


def judge(setting: Setting) -> Result:
    """Compiles, builds, runs and compares; never raises for what goes wrong."""
    start = time.perf_counter()
    try:
        wrong = run(setting)
        result = Result(setting, "failed" if wrong else "exact", wrong, 0.0)
    except TilewrightError as error:
        result = _refusal(setting, error)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        result = Result(setting, "failed", f"internal error: {type(error).__name__}: {error} ({where})", 0.0)
    return replace(result, seconds=time.perf_counter() - start)


def run(setting: Setting) -> str:
    """Builds one program and runs it at every moment; what is wrong, or nothing."""
    case = load_case(setting.name, setting.place)
    sizes = Sizes(memories=dict(setting.memories), home=setting.home, cores=setting.cores)
    compiled = compile_model(
        case.model,
        Options(platform=PLATFORM, sizes=sizes, planning=PlanOptions(seed=setting.seed)),
        samples=case.inputs,
    )
    fed, graph = fit(case.inputs, compiled.plan.graph), compiled.plan.graph
    types = [graph.types[name] for name in graph.outputs]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="tilewright-matrix-") as scratch:
        compiled.write(Path(scratch))
        built = build(Path(scratch), compiled.platform, compiled.program.name, flags=FLAGS)
        for moment in setting.moments:
            try:
                ran = run_on_host(built.executable, fed, types, machine=EmulatedMachine(dma=moment, seed=setting.seed))
            except TilewrightError as error:
                wrong.append(f"dma={moment}: {error}")
                continue
            found = compare(compiled, fed, ran.outputs, case.expected, case.rule)
            wrong += [
                f"dma={moment}: {c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.3g}" for c in found if c.wrong
            ]
    return "; ".join(wrong)


def _refusal(setting: Setting, error: TilewrightError) -> Result:
    """An error of the compiler: what is needed where it says so, else a failure."""
    text = str(error)
    needed = tuple((memory, int(size)) for size, memory in LEAST.findall(error.what))
    if error.code != TOO_SMALL or not needed:
        return Result(setting, "failed", text, 0.0)
    return Result(setting, "needs", text, 0.0, needed)


def resized(setting: Setting, sizes: Sequence[tuple[str, int]]) -> Setting:
    """The setting with some memories of another size."""
    return replace(setting, memories=tuple(sorted({**dict(setting.memories), **dict(sizes)}.items())))


def prove(result: Result) -> Result:
    """Whether what is said to be needed is enough, and one byte less of any of these memories is not."""
    enough = resized(result.setting, result.needed)
    at = judge(enough)
    wrong = [] if at.status == "exact" else [f"{dict(result.needed)} is said to be enough, but: {at.detail}"]
    seconds = at.seconds
    for memory, size in result.needed:
        below = judge(resized(enough, [(memory, size - 1)]))
        seconds += below.seconds
        if below.status != "needs" or (memory, size) not in below.needed:
            said = below.detail or "it compiles and runs"
            wrong.append(f"{memory} of {size - 1} bytes is said to be too small, but: {said}")
    return Result(result.setting, "failed" if wrong else "exact", "; ".join(wrong), seconds)


def sampled(values: Sequence[Value], count: int | None, seed: int) -> list[Value]:
    """Some of the values, the same ones for the same seed."""
    if count is None or count >= len(values):
        return list(values)
    return random.Random(seed).sample(values, count)


def line(result: Result) -> str:
    """A failure in one line."""
    text = " | ".join(part.strip() for part in result.detail.splitlines())
    return f"FAILED {result.setting}: {text[:SHOWN]}"


def each(work: Callable[[Value], Result], values: Sequence[Value], jobs: int, title: str) -> list[Result]:
    """Does the work in processes; prints failures as they come, and returns the results in the given order."""
    console = Console(stderr=True)
    results: dict[int, Result] = {}
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        waiting = {pool.submit(work, value): index for index, value in enumerate(values)}
        for done in track(as_completed(waiting), title, len(values), console=console, disable=not console.is_terminal):
            result = results[waiting[done]] = done.result()
            if result.status == "failed":
                print(line(result), flush=True)
    return [results[index] for index in range(len(values))]


def table(results: Sequence[Result], proofs: Sequence[Result]) -> Table:
    """Counts by L1 size; proofs are counted with the size at which more was needed."""
    shown = Table(
        title="Cases on scratchpads", caption="a count is of case, home memory and cores; runs at all moments"
    )
    for column in ("L1 bytes", *STATUSES, "proved", "s each"):
        shown.add_column(column, justify="right")
    for size in [*sorted({r.setting.l1 for r in results}), None]:
        mine, proved = ([r for r in group if size in (None, r.setting.l1)] for group in (results, proofs))
        counts = Counter(r.status for r in mine)
        exact = sum(p.status == "exact" for p in proved)
        if size is None:
            shown.add_section()
        shown.add_row(
            "all" if size is None else str(size),
            *(str(counts[status]) for status in STATUSES),
            f"{exact} of {len(proved)}" if proved else "",
            f"{sum(r.seconds for r in mine) / max(len(mine), 1):.2f}",
        )
    return shown


def byte_count(text: str) -> int:
    """Bytes, or KiB with a K behind the number."""
    return int(text[:-1]) * 1024 if text[-1:] in "kK" else int(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, action="append", required=True, help="folder of cases, may be repeated")
    parser.add_argument("--filter", default="", help="only cases whose name contains this text")
    parser.add_argument("--l1", type=byte_count, nargs="+", default=[4096, 16384, 65536, 262144], help="64000 or 64K")
    parser.add_argument("--home", nargs="+", default=["L2", "L3"], help="memories of inputs, outputs and weights")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--dma", nargs="+", choices=MOMENTS, default=MOMENTS, help="moments at which it copies")
    parser.add_argument("--sample", type=int, metavar="N", help="take N random combinations")
    parser.add_argument("--prove", type=int, metavar="N", default=0, help="check N random results that need more bytes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="of samples, plans and random moments")
    parser.add_argument("--json", action="store_true", help="print all results as JSON instead of the table")
    return parser.parse_args()


def main() -> int:
    """Runs the combinations that were asked for."""
    chosen = arguments()
    cases = [case for case in find_cases(chosen.cases) if chosen.filter in case[0]]
    settings = [
        Setting(name, place, (("L1", size),), home, cores, tuple(chosen.dma), chosen.seed)
        for name, place in cases
        for size in chosen.l1
        for home in chosen.home
        for cores in chosen.cores
    ]
    results = each(judge, sampled(settings, chosen.sample, chosen.seed), chosen.jobs, "run")
    needs = [result for result in results if result.status == "needs"]
    proofs = each(prove, sampled(needs, chosen.prove, chosen.seed), chosen.jobs, "prove")
    if chosen.json:
        groups = {"results": results, "proofs": proofs}
        print(json.dumps(to_builtins(groups, enc_hook=str), indent=1))
    else:
        Console().print(table(results, proofs))
    return 1 if not results or any(r.status == "failed" for r in (*results, *proofs)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
