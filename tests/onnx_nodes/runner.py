"""Runs ONNX's own node tests through the C compiler, many to an executable so that all of them take a minute or two.

Each case is compiled to C under a prefix of its own and becomes one object file; a batch of them is linked with one
driver. Every case then runs in a process of its own, so that a crash is that of one case.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from tilewright.api import Case, Compiled, Options, compile_model, find_cases, load_case
from tilewright.api.cases import UNSUPPORTED
from tilewright.api.feeding import fit
from tilewright.api.running import compare
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.sim import host_environment

BATCH = 50
TIMEOUT = 120.0
FLAGS = ("-O1", *STRICT)
"""Without any optimisation, every object would hold every function of the kernel headers and take longer to compile."""
NODE_TESTS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"

DRIVER = """
#include <stdio.h>
#include <stdlib.h>

struct entry {
    const struct tilewright_tensor *inputs, *outputs;
    int input_count, output_count;
    void (*run)(const void *const *, void *const *);
};

static void *buffer_of(size_t bytes) {
    void *buffer = malloc(bytes ? bytes : 1);
    if (!buffer) exit(3);
    return buffer;
}

int main(int argc, char **argv) {
    static const struct entry entries[] = {@ENTRIES@};
    const void *inputs[64] = {0};
    void *outputs[64] = {0};
    if (argc != 4) return 3;
    const struct entry *e = &entries[atoi(argv[1])];
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    if (!in || !out) return 3;
    for (int i = 0; i < e->input_count; i++) {
        void *buffer = buffer_of(e->inputs[i].bytes);
        if (fread(buffer, 1, e->inputs[i].bytes, in) != e->inputs[i].bytes) return 3;
        inputs[i] = buffer;
    }
    for (int i = 0; i < e->output_count; i++) outputs[i] = buffer_of(e->outputs[i].bytes);
    e->run(inputs, outputs);
    for (int i = 0; i < e->output_count; i++) fwrite(outputs[i], 1, e->outputs[i].bytes, out);
    fclose(in);
    fclose(out);
    for (int i = 0; i < e->input_count; i++) free((void *)(size_t)inputs[i]);
    for (int i = 0; i < e->output_count; i++) free(outputs[i]);
    return 0;
}
"""


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
    """A case on its way: compiled to C under the prefix `prefix`."""

    case: Case
    prefix: str
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
        folder = Path(scratch)
        command = [compiler, *flags, "-I."]
        _write(jobs, folder)
        _call([*command, "-x", "c-header", "all.h", "-o", "all.h.gch"], folder)
        built: list[Job] = []
        for job in jobs:
            message = _objects(job, command, folder)
            if message:
                outcomes.append(Outcome(job.case.name, "error", "build-failed", message))
            else:
                built.append(job)
        _link(built, command, folder)
        outcomes += [_run(job, index, folder) for index, job in enumerate(built)]
    return outcomes


def _compile(name: str, place: Path, prefix: str) -> Job | Outcome:
    try:
        case = load_case(name, place)
        compiled = compile_model(case.model, Options(name=prefix), samples=case.inputs)
        return Job(replace(case, inputs=fit(case.inputs, compiled.plan.graph)), prefix, compiled)
    except TilewrightError as error:
        return Outcome(name, "unsupported" if error.code in UNSUPPORTED else "error", error.code, str(error))
    except Exception as error:
        return Outcome(name, "error", "internal", f"{type(error).__name__}: {error}")


def _write(jobs: Sequence[Job], folder: Path) -> None:
    headers: set[str] = set()
    for job in jobs:
        for name, content in job.compiled.files.items():
            if name.startswith((f"{job.prefix}.", f"{job.prefix}_")):
                (folder / name).write_bytes(content)
        for name, text in job.compiled.program.headers:
            headers.add(name)
            (folder / name).write_text(text)
    # Reading the same headers again for each case would take most of the time.
    includes = [f'#include "{name}"\n' for name in sorted(headers)]
    (folder / "all.h").write_text("".join(["#define TW_GENERATED\n", "#include <stdint.h>\n", *includes]))


def _objects(job: Job, command: list[str], folder: Path) -> str:
    """Compiles the sources of a case; what the compiler says against it."""
    message = _call([*command, "-include", "all.h", "-c", f"{job.prefix}.c"], folder)
    if (folder / f"{job.prefix}_weights.S").exists():
        message += _call([*command, "-c", f"{job.prefix}_weights.S"], folder)
    return message


def _link(jobs: Sequence[Job], command: list[str], folder: Path) -> None:
    entries = [
        f"{{{p}_inputs, {p}_outputs, {len(job.compiled.program.inputs)}, {len(job.compiled.program.outputs)}, {p}_run}}"
        for job in jobs
        for p in [job.prefix]
    ]
    headers = "".join(f'#include "{job.prefix}.h"\n' for job in jobs)
    (folder / "driver.c").write_text(headers + DRIVER.replace("@ENTRIES@", ", ".join(entries)))
    objects = [path.name for path in folder.glob("*.o")]
    message = _call([*command, "driver.c", *objects, "-o", "driver", "-lm"], folder)
    if message:
        raise RuntimeError(message)


def _call(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def _run(job: Job, index: int, folder: Path) -> Outcome:
    name = job.case.name
    into, out = folder / "in", folder / "out"
    into.write_bytes(b"".join(np.ascontiguousarray(array).tobytes() for array in job.case.inputs))
    command = [str(folder / "driver"), str(index), str(into), str(out)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT, env=host_environment()
        )
    except subprocess.TimeoutExpired:
        return Outcome(name, "error", "run-failed", "it does not end")
    if done.returncode:
        return Outcome(name, "error", "run-failed", f"status {done.returncode}: {done.stderr}")
    outputs = _outputs(job, out.read_bytes())
    try:
        compared = compare(job.compiled, job.case.inputs, outputs, job.case.expected, job.case.rule)
    except TilewrightError as error:
        return Outcome(name, "error", error.code, str(error))
    wrong = [f"{c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.3g}" for c in compared if c.wrong]
    return Outcome(name, "fail" if wrong else "pass", detail="; ".join(wrong))


def _outputs(job: Job, content: bytes) -> tuple[Array, ...]:
    arrays: list[Array] = []
    start = 0
    for port in job.compiled.program.outputs:
        raw = content[start : start + port.type.bytes]
        arrays.append(np.frombuffer(raw, port.type.dtype.numpy).reshape(port.type.shape))
        start += port.type.bytes
    return tuple(arrays)


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
