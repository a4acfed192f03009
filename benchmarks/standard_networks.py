"""Times networks as generated C, in onnxruntime and as C of another generator: `--cases DIR`.

DIR holds NAME.onnx with NAME.npz (`input_0`, ..., `output_0`, ...). All programs of all networks take turns, so that a
machine that is busy now and then treats them alike, and the least CPU time of each counts. The exit status is 1 when a
result is wrong or a goal is missed: at most twice the time of onnxruntime (geometric mean), a third of the time of the
other generator for each network, and 30 % of the memory of NAME_fp32 for NAME_int8.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from math import exp, log
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from benchmarks.contenders import (
    Contender,
    Toolchain,
    c_program,
    code_bytes,
    emx_program,
    onnxruntime_program,
    toolchain,
)
from tilewright.api import Compiled, compile_model
from tilewright.api.feeding import fit
from tilewright.api.running import compare
from tilewright.core.graph import Array

GLUE = '#include "network.h"\nvoid bench_once(const void *const *in, void *const *out) { network_run(in, out); }\n'
TURN_US, BATCH_US = 4000.0, 400.0
"""About how long a program runs when it is its turn, and how long between two looks at the clock."""


class Row(Struct, frozen=True):
    """What was measured for one network; times in microseconds, memory in bytes."""

    network: str
    right: bool
    arena: int
    constants: int
    code: int
    times: dict[str, float]
    emx_ram: int | None

    def ratio(self, ours: str, other: str) -> float | None:
        """Our time relative to another one."""
        return self.times[ours] / self.times[other] if other in self.times else None


class Entry(Struct, frozen=True):
    """One network with its programs, ready to be timed."""

    name: str
    compiled: Compiled
    right: bool
    code: int
    programs: dict[str, Contender]


def prepare(model: Path, folder: Path, tools: Sequence[Toolchain], *, emx: bool) -> Entry:
    """Compiles and builds a network in every way, and checks our results."""
    with np.load(model.with_suffix(".npz")) as data:
        given = [data[key] for key in sorted(data.files) if key.startswith("input")]
        expected = [data[key] for key in sorted(data.files) if key.startswith("output")]
    compiled = compile_model(model, samples=given)
    inputs: Sequence[Array] = fit(given, compiled.plan.graph)
    types = [compiled.plan.graph.types[name] for name in compiled.plan.graph.outputs]
    programs: dict[str, Contender] = {}
    right, code = True, 0
    for tool in tools:
        target = folder / f"{model.stem}_{Path(tool.compiler).name}"
        compiled.write(target)
        (target / "glue.c").write_text(GLUE)
        sources = ["glue.c", *(name for name in compiled.files if name.endswith((".c", ".S")) and name != "main.c")]
        library = tool.library(target, sources)
        program = c_program(library, inputs, types)
        right &= all(c.wrong == 0 for c in compare(compiled, inputs, program.outputs(), expected))
        programs[tool.compiler] = program
        code = code or code_bytes(library)
    programs["onnxruntime"] = onnxruntime_program(model, given)
    other = (
        emx_program(model, folder / f"{model.stem}_emx_{tools[0].compiler}", tools[0], inputs, types) if emx else None
    )
    if other is not None:
        programs["emx"] = other
    return Entry(model.stem, compiled, right, code, programs)


def time_all(entries: Sequence[Entry], rounds: int) -> list[Row]:
    """The fastest time of every program, all taking turns."""
    best = {(e.name, label): p.fastest(1, 2) for e in entries for label, p in e.programs.items()}
    for _ in range(rounds):
        for entry in entries:
            for label, program in entry.programs.items():
                key = (entry.name, label)
                runs = max(1, round(BATCH_US / best[key]))
                batches = max(1, round(TURN_US / (runs * best[key])))
                best[key] = min(best[key], program.fastest(batches, runs))
    return [
        Row(
            e.name,
            e.right,
            e.compiled.program.arena_bytes,
            e.compiled.program.constant_bytes,
            e.code,
            {label: best[e.name, label] for label in e.programs},
            e.programs["emx"].ram if "emx" in e.programs else None,
        )
        for e in entries
    ]


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")


def int8_shares(rows: Sequence[Row]) -> dict[str, float]:
    """Arena of each NAME_int8 relative to NAME_fp32."""
    arenas = {row.network: row.arena for row in rows}
    pairs = {name: name.removesuffix("_int8") + "_fp32" for name in arenas if name.endswith("_int8")}
    return {name: arenas[name] / arenas[other] for name, other in pairs.items() if arenas.get(other)}


def missed(rows: Sequence[Row], ours: str) -> list[str]:
    """The goals that were not reached."""
    found = [f"{row.network}: the result is wrong" for row in rows if not row.right]
    over_ort = mean([r for row in rows if (r := row.ratio(ours, "onnxruntime")) is not None])
    if over_ort > 2:
        found.append(f"{over_ort:.2f} times the time of onnxruntime, at most 2 is wanted")
    for row in rows:
        ratio = row.ratio(ours, "emx")
        if ratio is not None and ratio > 1 / 3:
            found.append(f"{row.network}: {1 / ratio:.2f} times faster than emx, at least 3 is wanted")
    for name, share in int8_shares(rows).items():
        if share > 0.3:
            found.append(f"{name}: {share:.0%} of the float arena, at most 30% is wanted")
    return found


def table(rows: Sequence[Row], compilers: Sequence[str]) -> Table:
    """The figures for people."""
    ours = compilers[0]
    shown = Table(title="Standard networks, one thread, CPU microseconds per run")
    for column in ("network", "right"):
        shown.add_column(column)
    numbers = (*compilers, "ort", "emx", "/ ort", "/ emx", "arena", "emx RAM", "int8 arena", "weights", "code")
    for column in numbers:
        shown.add_column(column, justify="right")
    shares = int8_shares(rows)
    for row in rows:
        times = [f"{row.times[c]:.1f}" for c in (*compilers, "onnxruntime")]
        other = row.ratio(ours, "emx")
        shown.add_row(
            row.network,
            "yes" if row.right else "NO",
            *times,
            f"{row.times['emx']:.0f}" if other else "",
            f"{row.ratio(ours, 'onnxruntime'):.2f}",
            f"{other:.3f}" if other else "",
            str(row.arena),
            "" if row.emx_ram is None else str(row.emx_ram),
            f"{shares[row.network]:.1%}" if row.network in shares else "",
            str(row.constants),
            str(row.code),
        )
    shown.add_section()
    means = [mean([r for row in rows if (r := row.ratio(ours, other)) is not None]) for other in ("onnxruntime", "emx")]
    blank = [""] * (len(compilers) + 3)
    shown.add_row("geometric mean", *blank, f"{means[0]:.2f}", f"{means[1]:.3f}", *[""] * 5)
    return shown


def main() -> int:
    """Measures every network of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True, help="folder of NAME.onnx and NAME.npz")
    parser.add_argument("--compiler", action="append", help="C compiler, may be repeated; the first one is compared")
    parser.add_argument("--rounds", type=int, default=40, help="how often every program has its turn")
    parser.add_argument("--only", default="*", help="pattern of network names")
    parser.add_argument("--no-emx", action="store_true", help="leave the other generator out")
    parser.add_argument("--build", type=Path, default=Path("build/bench"), help="folder for generated programs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    tools = [toolchain(name) for name in chosen.compiler or ["gcc"]]
    compilers = [tool.compiler for tool in tools]
    models = sorted(chosen.cases.glob(f"{chosen.only}.onnx"))
    entries = [prepare(model, chosen.build.resolve(), tools, emx=not chosen.no_emx) for model in models]
    rows = time_all(entries, chosen.rounds)
    goals = missed(rows, compilers[0])
    if chosen.json:
        print(json.dumps({"networks": [asdict(row) for row in rows], "int8_arena": int8_shares(rows), "missed": goals}))
    else:
        Console(width=None if Console().is_terminal else 180).print(table(rows, compilers))
        for goal in goals:
            print(f"missed: {goal}")
    return 1 if goals or not rows else 0


if __name__ == "__main__":
    raise SystemExit(main())
