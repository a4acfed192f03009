"""Which synchronisations the simulator's checks miss when they are dropped from programs for Siracusa.

Networks of `examples/models` and of `--cases DIR` (may be repeated) are compiled with `--l1` bytes of L1. Every wait
for transfers, await of an engine and meeting of cores in the generated C gets a number, and one that is chosen when the
program runs is left out. So one program is run once for each of them, with the checks on, and once without a fault.

`found` are those that the checks tell on. The rest is run again where the DMA or the accelerator is much slower, and
where a core comes late to the place: `missed` is what is told on or computes something else there. What is silent and
right in all of these timings is `ordered`: another wait covers it, as that for a later job of an accelerator, which
runs its jobs in order; or nothing was under way; or each core only reads what it wrote itself.

The last column is how much slower the checks make the program without a fault. The exit status is 1 where something was
missed, or a program without a fault was told on.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from benchmarks.siracusa import ENGINES, PLATFORM
from tilewright.api import Case, Options, compile_model, find_cases, load_case
from tilewright.api.feeding import fit
from tilewright.codegen import build, write_project
from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes, Target
from tilewright.sim.chip import Chip
from tilewright.sim.program import ElfProgram, load_program

EXAMPLES = Path(__file__).parent.parent / "examples" / "models"
L1 = 16384
CORES = 8
REPEATS = 3
STATUSES = ("found", "ordered", "missed")
SLOWER: tuple[tuple[str, str, int], ...] = (("mchan", "read_cycles", 3000), ("neureka", "start_cycles", 30000))
"""A device, a setting and its value: what a program must get along with."""

LATE = (1, CORES, CORES + 1)
"""Cores that come late to a synchronisation that is left out, counted from 1: the last one drives."""

_SYNCHRONISATION = re.compile(r"(?m)^( *)(tw_dma_wait\(.*\)|TW_AWAIT\(.*\)|TW_MEET);$")
_WORK = re.compile(r"(?m)^( *)(TW_CORES(?:_BESIDE)?)\((\w+), (\d+)\) \{$")
_CHOICE = """
int tw_dropped; /* the synchronisation that is left out */
int tw_late;    /* the core that goes on late there, counted from 1 */
static void tw_skip(int me) {
    for (volatile int i = 0; me + 1 == tw_late && i < 1000; i++)
        ;
}
#define TW_CORES_MEETING(core, cores, number) \\
    for (int core = tw_me, core##_first = 1; core##_first; \\
         core##_first = ((tw_dropped != (number) ? tw_barrier() : tw_skip(tw_me)), 0)) \\
        if (core < (cores))
"""


class Faulty(Struct, frozen=True):
    """A program of which one synchronisation can be left out, counted from 1."""

    loaded: ElfProgram
    platform: Target
    inputs: tuple[Array, ...]
    outputs: tuple[TensorType, ...]
    dropped: tuple[str, ...]
    """Their texts."""


class Outcome(Struct, frozen=True):
    """How a run went."""

    told: str
    """By the checks, or by what else stopped it."""
    outputs: tuple[Array, ...] = ()
    seconds: float = 0.0
    """That it took, without loading the program."""


class Row(Struct, frozen=True):
    """What became of the synchronisations of a network."""

    name: str
    kinds: Mapping[str, Counter[str]]
    """Of each kind, how many were found, ordered and missed."""
    silent: tuple[str, ...]
    """Those not found, with what was found out about them."""
    alarm: str
    """What the checks say of the program without a fault."""
    slower: float


def droppable(source: str) -> tuple[str, tuple[str, ...]]:
    """C code in which `tw_dropped` chooses a synchronisation that is left out, and the texts of all of them."""
    texts: list[str] = []

    def number(text: str) -> int:
        texts.append(text)
        return len(texts)

    def one(match: re.Match[str]) -> str:
        return f"{match[1]}if (tw_dropped != {number(match[2])}) {match[2]}; else tw_skip(tw_me);"

    def work(match: re.Match[str]) -> str:
        return f"{match[1]}TW_CORES_MEETING({match[3]}, {match[4]}, {number(f'end of {match[2]}')}) {{"

    changed = _WORK.sub(work, _SYNCHRONISATION.sub(one, source))
    before, include, behind = changed.partition('#include "tilewright_machine.h"\n')
    return before + include + _CHOICE + behind, tuple(texts)


def faulty(case: Case, sizes: Sizes, folder: Path) -> Faulty:
    """Compiles and builds a network; the project is left in the folder."""
    compiled = compile_model(case.model, Options(platform=PLATFORM, sizes=sizes), samples=list(case.inputs))
    name, graph = compiled.program.name, compiled.plan.graph
    source, dropped = droppable(compiled.files[f"{name}.c"].decode())
    write_project({**compiled.files, f"{name}.c": source.encode()}, folder, name)
    built = build(folder, compiled.platform, name, flags=("-Wno-unused",))
    inputs = fit(case.inputs, graph, None)
    loaded = load_program(built.executable)
    return Faulty(loaded, compiled.platform, inputs, tuple(graph.types[o] for o in graph.given), dropped)


def run(
    program: Faulty,
    dropped: int,
    *,
    checks: bool = True,
    slower: tuple[str, str, int] | None = None,
    late: int = 0,
) -> Outcome:
    """One run without one of the synchronisations, or with all (0)."""
    platform = slowed(program.platform, slower) if slower else program.platform
    try:
        chip = Chip(program.loaded, len(program.inputs), program.outputs, platform, steps=1, checks=checks)
        chip.simulator.write("tw_dropped", dropped.to_bytes(4, "little"))
        chip.simulator.write("tw_late", late.to_bytes(4, "little"))
        began = time.process_time()
        outputs = chip.run(program.inputs)
    except TilewrightError as error:
        return Outcome(str(error))
    return Outcome("", outputs, time.process_time() - began)


def slowed(platform: Target, setting: tuple[str, str, int]) -> Target:
    """The platform with another value for a setting of a device."""
    device, name, value = setting
    timing = next(iter(platform.timings.values()))
    found = timing.devices[device]
    devices = {**timing.devices, device: replace(found, settings={**found.settings, name: value})}
    return replace(platform, timings={timing.name: replace(timing, devices=devices)})


def judge(program: Faulty, number: int, right: Sequence[Array]) -> tuple[str, str]:
    """What became of a dropped synchronisation, and what was said of it."""
    outcome = run(program, number)
    if outcome.told:
        return "found", outcome.told
    if not same(outcome.outputs, right):
        return "missed", "another result"
    others = {f"with a slower {setting[0]}": run(program, number, slower=setting) for setting in SLOWER}
    others |= {f"with core {late - 1} late": run(program, number, late=late) for late in LATE}
    for timing, outcome in others.items():
        if outcome.told or not same(outcome.outputs, right):
            return "missed", f"{timing}: {outcome.told or 'another result'}"
    return "ordered", ""


def same(outputs: Sequence[Array], right: Sequence[Array]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(outputs, right, strict=True))


def slow_down(program: Faulty) -> float:
    """How much longer the program without a fault takes with checks: the best of some runs in turn."""
    runs = [(run(program, 0, checks=True).seconds, run(program, 0, checks=False).seconds) for _ in range(REPEATS)]
    return min(on for on, _ in runs) / max(min(off for _, off in runs), 1e-9)


def row_of(name: str, program: Faulty, most: int) -> Row:
    """Drops each synchronisation in turn, or as many of them, spread evenly."""
    plain, checked = run(program, 0, checks=False), run(program, 0)
    slower = slow_down(program)
    kinds: dict[str, Counter[str]] = {}
    silent: list[str] = []
    count = len(program.dropped)
    for number in sorted({1 + index * count // most for index in range(most)} if most < count else range(1, count + 1)):
        text = program.dropped[number - 1]
        status, said = judge(program, number, plain.outputs)
        kinds.setdefault(re.split(r"[(;]", text)[0], Counter())[status] += 1
        if status != "found":
            silent.append(f"{name} {number} {text}: {status} {said}".rstrip())
    return Row(name, kinds, tuple(silent), checked.told or plain.told, slower)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks dropped_waits", description=__doc__)
    parser.add_argument("--cases", action="append", type=Path, default=[], metavar="DIR", help="folders of cases")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="networks with this in their name")
    parser.add_argument("--l1", type=int, default=L1, help=f"bytes of L1 (default {L1})")
    parser.add_argument("--engines", choices=[*ENGINES], default="all", help="with or without NEUREKA")
    parser.add_argument("--most", type=int, default=10**6, help="synchronisations of a network at most")
    options = parser.parse_args()
    console = Console(soft_wrap=True)
    sizes = Sizes({"L1": options.l1}, cores=CORES, without=ENGINES[options.engines])
    rows: list[Row] = []
    for name, place in find_cases([EXAMPLES, *options.cases]):
        if options.only and not any(text in name for text in options.only):
            continue
        with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
            try:
                program = faulty(load_case(name, place), sizes, Path(scratch) / "project")
            except TilewrightError as error:
                console.print(f"{name}: left out: {error.what}")
                continue
            rows.append(row_of(name, program, options.most))
        for line in (*rows[-1].silent, *([f"{name}: {rows[-1].alarm}"] if rows[-1].alarm else [])):
            console.print(line, markup=False)
        console.print(f"{name}: {summary(rows[-1:])}")
    console.print(table_of(rows))
    console.print(f"all: {summary(rows)}")
    missed = any(counts["missed"] for row in rows for counts in row.kinds.values())
    return int(missed or any(row.alarm for row in rows))


def summary(rows: Sequence[Row]) -> str:
    """How many were found, ordered and missed in all."""
    total = sum((counts for row in rows for counts in row.kinds.values()), Counter[str]())
    return ", ".join(f"{total[status]} {status}" for status in STATUSES)


def table_of(rows: Sequence[Row]) -> Table:
    table = Table("network", "synchronisation", *STATUSES, "with checks")
    for row in rows:
        for kind, counts in row.kinds.items():
            table.add_row(row.name, kind, *(str(counts[status]) for status in STATUSES), f"{row.slower:.2f} x")
    return table


if __name__ == "__main__":
    raise SystemExit(main())
