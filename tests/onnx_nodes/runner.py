"""Runs ONNX's own node tests through the C compiler, many to an executable so that all of them take a minute or two.

Batches of cases are built into one program. Every case runs in a process of its own: a crash is that of one case.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import onnx
from msgspec.structs import replace

from batches import Batch, BatchError, Member
from tilewright.api import Case, Compiled, Options, compile_model, find_cases, load_case
from tilewright.api.cases import UNSUPPORTED
from tilewright.api.feeding import fit
from tilewright.api.running import compare
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.errors import TilewrightError

BATCH = 50
FLAGS = ("-O1", *STRICT)
NODE_TESTS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"


@dataclass(frozen=True)
class Outcome:
    """What became of a case: `pass`, `fail`, `unsupported` or `error`, with the error code behind the latter two."""

    name: str
    status: str
    code: str = "-"
    detail: str = ""

    @property
    def line(self) -> str:
        return f"{self.name} {self.status} {self.code}"


@dataclass(frozen=True)
class Job:
    """A case on its way, compiled to C."""

    case: Case
    compiled: Compiled


def run_all(
    names: Iterable[str] = (), *, compiler: str = "cc", flags: tuple[str, ...] = FLAGS, workers: int = 0
) -> list[Outcome]:
    """The outcomes of all node tests (or of some), sorted by name."""
    wanted = frozenset(names)
    found = [(name, place) for name, place in find_cases([NODE_TESTS]) if not wanted or name in wanted]
    batches = [found[start : start + BATCH] for start in range(0, len(found), BATCH)]
    with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        done = pool.map(run_batch, batches, [compiler] * len(batches), [flags] * len(batches))
        return sorted((outcome for outcomes in done for outcome in outcomes), key=lambda o: o.name)


def run_batch(cases: Sequence[tuple[str, Path]], compiler: str, flags: tuple[str, ...]) -> list[Outcome]:
    """The outcomes of some cases, which are built into one executable."""
    outcomes: list[Outcome] = []
    jobs: list[Job] = []
    for index, (name, place) in enumerate(cases):
        made = _compile(name, place, f"n{index}")
        if isinstance(made, Outcome):
            outcomes.append(made)
        else:
            jobs.append(made)
    if not jobs:
        return outcomes
    with tempfile.TemporaryDirectory(prefix="tilewright-nodes-") as scratch:
        batch = Batch([Member(job.compiled, job.case.inputs) for job in jobs], Path(scratch))
        batch.build(compiler, flags)
        outcomes += [_run(job, batch, index) for index, job in enumerate(jobs)]
    return outcomes


def _compile(name: str, place: Path, prefix: str) -> Job | Outcome:
    try:
        case = load_case(name, place)
        compiled = compile_model(case.model, Options(name=prefix), samples=case.inputs)
        return Job(replace(case, inputs=fit(case.inputs, compiled.plan.graph)), compiled)
    except TilewrightError as error:
        return Outcome(name, "unsupported" if error.code in UNSUPPORTED else "error", error.code, str(error))
    except Exception as error:
        return Outcome(name, "error", "internal", f"{type(error).__name__}: {error}")


def _run(job: Job, batch: Batch, index: int) -> Outcome:
    name = job.case.name
    try:
        compared = compare(job.compiled, job.case.inputs, batch.run(index), job.case.expected, job.case.rule)
    except (BatchError, TilewrightError) as error:
        return Outcome(name, "error", error.code, str(error))
    wrong = [f"{c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.3g}" for c in compared if c.wrong]
    return Outcome(name, "fail" if wrong else "pass", detail="; ".join(wrong))


def main() -> None:
    """`runner.py [--cc COMPILER] [--sanitize] [NAME ...]` prints every case that does not pass, and counts."""
    arguments = sys.argv[1:]
    compiler = "cc"
    if "--cc" in arguments:
        at = arguments.index("--cc")
        compiler = arguments[at + 1]
        del arguments[at : at + 2]
    flags = FLAGS
    if "--sanitize" in arguments:
        arguments.remove("--sanitize")
        flags = (*FLAGS, *SANITIZE)
    outcomes = run_all(arguments, compiler=compiler, flags=flags)
    for outcome in outcomes:
        if outcome.status != "pass":
            print(outcome.line, outcome.detail.replace("\n", " | "))
    counts = {key: sum(o.status == key for o in outcomes) for key in ("pass", "fail", "error", "unsupported")}
    print(", ".join(f"{count} {key}" for key, count in counts.items()), f"of {len(outcomes)}")


if __name__ == "__main__":
    main()
