"""One model: compiled, built, run on random inputs, compared with onnxruntime, and both timed.

`python -m benchmarks.real.judging` reads a job from its input and prints a verdict, so that a model that takes all
memory, or crashes, takes nobody along.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
from msgspec import Struct
from msgspec.structs import asdict

from benchmarks.real.packages import Setting
from tilewright.core.graph import Array, TensorType

Status = Literal["right", "refused", "wrong", "traceback", "crash", "hang"]
FINE: frozenset[Status] = frozenset({"right", "refused"})
GLUE = '#include "network.h"\nvoid bench_once(const void *const *in, void *const *out) { network_run(in, out); }\n'
TOP = Path(__file__).resolve().parent.parent.parent
UNSTEADY = "rounding decides"
TRIES = 6
ROUNDS, TURN_US = 8, 50_000.0
"""How often both programs have their turn, and about how long one takes."""


class Verdict(Struct, frozen=True):
    """What became of a model. Times are microseconds of CPU time of one run on one thread."""

    status: Status
    detail: str = ""
    """Code and message of the error, or what is wrong."""
    error: float = 0.0
    """The largest difference of an element; of a tensor with values beyond 1, as a fraction of the largest."""
    ours: float = 0.0
    theirs: float = 0.0

    @property
    def fine(self) -> bool:
        return self.status in FINE


def judge(model: Path, setting: Setting, seconds: float, most_bytes: int, seed: int = 0) -> Verdict:
    """The verdict of a process with limits."""
    job = {"model": str(model.resolve()), **asdict(setting), "most_bytes": most_bytes, "seed": seed}
    with tempfile.TemporaryFile("w+") as told:
        command = [sys.executable, "-m", "benchmarks.real.judging", json.dumps(job)]
        child = subprocess.Popen(
            command, cwd=TOP, stdout=told, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            _, complaint = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return Verdict("hang", f"no verdict within {seconds:.0f} s")
        told.seek(0)
        lines = told.read().splitlines()
    if child.returncode or not lines:
        last = next(reversed(complaint.strip().splitlines()), "")
        return Verdict("crash", f"the process ended with status {child.returncode}: {last}"[:400])
    return Verdict(**json.loads(lines[-1]))


def _judged(model: Path, setting: Setting, seed: int) -> Verdict:
    from benchmarks.contenders import c_program, onnxruntime_program, toolchain
    from tilewright.api import Options, compile_model
    from tilewright.api.running import compare
    from tilewright.errors import TilewrightError

    declared = onnx.ModelProto.FromString(model.read_bytes()).graph.input
    kinds = {port.name: onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type) for port in declared}
    fixed = {name: np.asarray(value, kinds[name]) for name, value in setting.constants.items()}
    try:
        compiled = compile_model(model, Options(dims=setting.dims, constants=fixed))
    except TilewrightError as error:
        return Verdict("refused", f"{error.code}: {next(iter(error.reasons), error.what)}")
    graph, source = compiled.plan.graph, compiled.source
    fed = random_inputs({name: graph.types[name] for name in graph.fed}, setting.ranges, seed)
    given = {**dict(zip(source.fed, fed, strict=True)), **fixed}
    theirs = onnxruntime_program(model, given)
    with tempfile.TemporaryDirectory(prefix="tilewright-real-") as scratch:
        folder = Path(scratch) / "project"
        compiled.write(folder)
        (folder / "glue.c").write_text(GLUE)
        sources = ["glue.c", *(name for name in compiled.files if name.endswith((".c", ".S")) and name != "main.c")]
        library = toolchain("gcc").library(folder, sources)
        ours = c_program(library, fed, [graph.types[name] for name in graph.outputs])
        found, expected = ours.outputs(), theirs.outputs()
        compared = compare(compiled, fed, found, expected)
        wrong = "; ".join(f"{c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.3g}" for c in compared if c.wrong)
        error = max((_error(*pair) for pair in zip(found, expected, strict=True)), default=0.0)
        if wrong and not _rounding(model, given, found, expected):
            return Verdict("wrong", wrong, error)
        fastest = [program.fastest(1, 1) for program in (ours, theirs)]
        for _ in range(ROUNDS):
            for at, program in enumerate((ours, theirs)):
                runs = max(1, round(TURN_US / fastest[at]))
                fastest[at] = min(fastest[at], program.fastest(1, runs))
    return Verdict("right", UNSTEADY if wrong else "", error, *fastest)


def _rounding(model: Path, given: Mapping[str, Array], found: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Whether onnxruntime's floats move a quarter as far as ours are off, when its numbers change by a millionth."""
    from benchmarks.fuzzing import TESTS as TESTS
    from samples import shaken  # of the tests, which the line above finds

    moved = np.zeros(len(expected))
    for results in shaken(onnx.ModelProto.FromString(model.read_bytes()), given, TRIES):
        moved = np.maximum(moved, [_error(*pair) for pair in zip(results, expected, strict=True)])
    return all(
        wanted.dtype.kind == "f" and _error(ours, wanted) <= 4 * most
        for ours, wanted, most in zip(found, expected, moved, strict=True)
    )


def random_inputs(
    kinds: Mapping[str, TensorType], ranges: Mapping[str, Sequence[float]], seed: int
) -> tuple[Array, ...]:
    """Seeded inputs of the types of a network."""
    rng = np.random.default_rng(seed)
    return tuple(_random(kind, ranges.get(name), rng) for name, kind in kinds.items())


def _random(kind: TensorType, ends: Sequence[float] | None, rng: np.random.Generator) -> Array:
    from tilewright.api.feeding import noise_of

    if ends is None:
        return noise_of(kind, rng)
    return np.asarray(rng.uniform(ends[0], ends[1], kind.shape)).astype(kind.dtype.numpy)


def _error(found: Array, expected: Array) -> float:
    """The largest difference; of values beyond 1, as a fraction of the largest."""
    if found.size != expected.size or not found.size:
        return 0.0
    left, right = found.astype(np.float64).reshape(-1), expected.astype(np.float64).reshape(-1)
    with np.errstate(invalid="ignore"):
        worst = float(np.max(np.where(left == right, 0.0, np.abs(left - right))))
    return worst / max(1.0, float(np.max(np.abs(right))))


def main() -> int:
    job = json.loads(sys.argv[1])
    most = job.pop("most_bytes")
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    model, seed = Path(job.pop("model")), job.pop("seed")
    try:
        verdict = _judged(model, Setting(**job), seed)
    except Exception as error:
        import traceback

        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        verdict = Verdict("traceback", f"{type(error).__name__} at {where}: {error}".replace("\n", " ")[:400])
    print(json.dumps(asdict(verdict)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
