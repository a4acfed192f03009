"""Programs that compute the same network: generated C as shared libraries, and onnxruntime."""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array, TensorType

HARNESS = """\
#define _POSIX_C_SOURCE 200809L
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
void bench_once(const void *const *in, void *const *out);

/* Stands in for malloc and free of a program that uses them: remembers the peak of bytes alive. */
static size_t alive, peak;
size_t bench_peak(void) { return peak; }
void *bench_malloc(size_t bytes) {
    size_t *block = malloc(bytes + 64);
    if (!block)
        abort();
    *block = bytes;
    alive += bytes;
    peak = alive > peak ? alive : peak;
    return (char *)block + 64;
}
void bench_free(void *data) {
    if (!data)
        return;
    size_t *block = (size_t *)(void *)((char *)data - 64);
    alive -= *block;
    free(block);
}

/* CPU time, not the time of day: on a busy machine whoever runs longer than a time slice is always interrupted. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
/* Nanoseconds per run in the fastest of some batches. */
double bench(const void *const *in, void *const *out, int batches, int runs) {
    double best = 1e300;
    while (batches-- > 0) {
        const double start = now();
        for (int i = 0; i < runs; i++)
            bench_once(in, out);
        const double taken = (now() - start) / runs;
        best = taken < best ? taken : best;
    }
    return best;
}
"""


class Contender(Struct, frozen=True):
    """A program at hand: `fastest(batches, runs)` is the CPU time per run, in microseconds, of its fastest batch."""

    fastest: Callable[[int, int], float]
    outputs: Callable[[], tuple[Array, ...]]
    ram: int | None = None


class Toolchain(Struct, frozen=True):
    """A C compiler and its options."""

    compiler: str
    flags: tuple[str, ...]

    def library(self, folder: Path, sources: Sequence[str]) -> Path:
        """Builds a shared library from the sources of a folder and the harness."""
        (folder / "bench.c").write_text(HARNESS)
        options = [*self.flags, "-w", "-fPIC", "-shared", "-I.", "-o", "bench.so"]
        command = [self.compiler, *options, "bench.c", *sources, "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{self.compiler} refused {folder}:\n{done.stderr[:2000]}")
        return folder / "bench.so"


def toolchain(compiler: str) -> Toolchain:
    """A compiler with full optimisation for this machine; some know it as -march, some as -mcpu."""
    for native in ("-march=native", "-mcpu=native"):
        probe = subprocess.run(
            [compiler, native, "-xc", "-fsyntax-only", "-"], input="", text=True, capture_output=True, check=False
        )
        if probe.returncode == 0:
            return Toolchain(compiler, ("-std=c11", "-O3", native))
    return Toolchain(compiler, ("-std=c11", "-O3"))


def code_bytes(library: Path) -> int:
    """Bytes of machine code; 0 where binutils are not installed."""
    if shutil.which("size") is None:
        return 0
    report = subprocess.run(["size", "-A", str(library)], capture_output=True, text=True, check=True).stdout
    fields = [line.split() for line in report.splitlines()]
    return sum(int(field[1]) for field in fields if field and field[0].startswith(".text"))


def c_program(
    library: Path, inputs: Sequence[Array], types: Sequence[TensorType], frame: int | None = None
) -> Contender:
    """A shared library with the harness inside. `frame` are bytes of RAM that it takes besides malloc."""
    loaded = ctypes.CDLL(str(library))
    loaded.bench.restype = ctypes.c_double
    loaded.bench_peak.restype = ctypes.c_size_t
    kept = [np.ascontiguousarray(a) for a in inputs]
    results = [np.zeros(t.shape, t.dtype.numpy) for t in types]
    ins = (ctypes.c_void_p * len(kept))(*(a.ctypes.data for a in kept))
    outs = (ctypes.c_void_p * len(results))(*(a.ctypes.data for a in results))

    def fastest(batches: int, runs: int) -> float:
        assert kept
        return float(loaded.bench(ins, outs, batches, runs)) / 1e3

    fastest(1, 1)
    ram = None if frame is None else int(loaded.bench_peak()) + frame
    return Contender(fastest, lambda: tuple(r.copy() for r in results), ram)


def onnxruntime_program(model: Path, inputs: Sequence[Array] | Mapping[str, Array]) -> Contender:
    """onnxruntime on one thread, with inputs, in order or by name, and outputs bound beforehand."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    names = [port.name for port in session.get_inputs()]
    given = inputs if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=True))
    for name in names:
        # It would make a vector of a scalar.
        array = given[name]
        binding.bind_cpu_input(name, np.ascontiguousarray(array) if array.ndim else array)
    for port in session.get_outputs():
        binding.bind_output(port.name)

    def bound() -> tuple[Array, ...]:
        session.run_with_iobinding(binding)
        return tuple(binding.copy_outputs_to_cpu())

    def unbound() -> tuple[Array, ...]:
        return tuple(session.run(None, dict(given)))

    try:
        once: Callable[[], object] = partial(session.run_with_iobinding, binding)
        outputs = bound()
        once()
    except RuntimeError:
        # Outputs that come in another shape than the file declares cannot be bound, or not a second time.
        outputs, once = unbound(), unbound

    def fastest(batches: int, runs: int) -> float:
        best = float("inf")
        for _ in range(batches):
            start = time.thread_time_ns()
            for _ in range(runs):
                once()
            best = min(best, (time.thread_time_ns() - start) / runs)
        return best / 1e3

    return Contender(fastest, lambda: outputs)


def emx_program(
    model: Path, folder: Path, tools: Toolchain, inputs: Sequence[Array], types: Sequence[TensorType]
) -> Contender | None:
    """C of emx-onnx-cgen, where that is installed. What it and the compiler make is kept, because both take long."""
    # Beside this Python first: a virtual environment need not be activated.
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = shutil.which("emx-onnx-cgen", path=places)
    if command is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    if _newer(model, folder / "emx.c"):
        arguments = ["compile", str(model), "emx.c", "--model-name", "emx", "--large-weight-threshold", "0"]
        done = subprocess.run([command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            (folder / "emx.c").unlink(missing_ok=True)
            return None
    ports = [f"in[{i}]" for i in range(len(inputs))] + [f"out[{i}]" for i in range(len(types))]
    kinds = ", ".join(["const void *"] * len(inputs) + ["void *"] * len(types))
    (folder / "glue.c").write_text(
        f"void emx({kinds});\nvoid bench_once(const void *const *in, void *const *out) {{ emx({', '.join(ports)}); }}\n"
    )
    if _newer(folder / "emx.c", folder / "emx.o"):
        renamed = ("-Dmalloc=bench_malloc", "-Dfree=bench_free", "-c", "-fPIC", "-w", "-fstack-usage")
        subprocess.run([tools.compiler, *tools.flags, *renamed, "-o", "emx.o", "emx.c"], cwd=folder, check=True)
    library = tools.library(folder, ["glue.c", "emx.o"])
    return c_program(library, inputs, types, frame=_frame(folder / "emx.su", "emx"))


def _newer(source: Path, made: Path) -> bool:
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


def _frame(report: Path, function: str) -> int:
    """Stack bytes of a function, as the compiler reports them."""
    for line in report.read_text().splitlines():
        place, size, _ = line.split("\t")
        if place.rsplit(":", 1)[-1] == function:
            return int(size)
    return 0
