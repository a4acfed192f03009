"""Instructions, flash and RAM on emulated Cortex-M boards: the networks of `--cases DIR`, against another generator.

Both are built by the same compiler with the same flags and run in the same emulator. Every result of ours is compared
with what the case expects. A second table sets what was measured against what is promised. The exit status is 1 where
a result is wrong or a promise is not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from tilewright.api import Case, Compiled, Options, find_cases, load_case, run_model
from tilewright.api.running import Ran, compare
from tilewright.codegen.build import build
from tilewright.codegen.project import runtime_files, write_project
from tilewright.core.graph import TensorType
from tilewright.machine.target import Sizes, Target, load_platform
from tilewright.sim.qemu import run_in_qemu

VARIANTS = ("cortex-m4", "cortex-m7", "cortex-m55")
NETWORKS = tuple(f"{name}_{kind}" for kind in ("int8", "fp32") for name in ("resnet8", "dscnn", "mbv1_025", "ae640"))
FUSED = {"mbv1_025_int8": 0.4}
"""Networks that are also run with less RAM, and the part of it that they get."""
OURS, LESS, EMX = "Tilewright", "Tilewright, less RAM", "emx"

# What is promised. Of the Cortex-M4, where nothing else is said:
INSTRUCTIONS = {
    "resnet8_int8": 22_000_000,
    "dscnn_int8": 6_500_000,
    "mbv1_025_int8": 14_000_000,
    "ae640_int8": 700_000,
}
RAM = {"resnet8_int8": 55_000, "dscnn_int8": 24_000, "mbv1_025_int8": 60_000}
CODE = 40_000
LONGER = 1.15
"""Times as many instructions with less RAM."""
FEWER = {**dict.fromkeys(INSTRUCTIONS, 4.0), "resnet8_fp32": 2.0, "dscnn_fp32": 2.0}
"""Times fewer instructions than the other generator's."""
HELIUM = 3.0
"""Times fewer instructions on the Cortex-M55."""


class Row(Struct, frozen=True):
    """One program on one core."""

    network: str
    variant: str
    generator: str
    instructions: int
    code: int
    flash: int
    ram: int
    """Arena and stack; of inputs and outputs it has none."""
    right: bool


def ours(case: Case, variant: str, ram: int | None = None) -> tuple[Row, Ran]:
    """Compiles, builds and runs a case."""
    options = Options(platform=variant, sizes=Sizes({"RAM": ram} if ram else {}))
    ran = run_model(case.model, options, inputs=case.inputs, expected=case.expected)
    assert ran.footprint is not None
    assert ran.cycles is not None
    found, memory = ran.footprint, ran.compiled.program.arena_bytes + ran.footprint.stack
    flash, generator = found.code + found.constants, LESS if ram else OURS
    return Row(case.name, variant, generator, ran.cycles, found.code, flash, memory, ran.right), ran


def with_less(case: Case, usual: Row) -> Row:
    """The same in a part of the RAM, of which the stack takes more where layers are fused."""
    most = int(usual.ram * FUSED[case.name])
    row, ran = ours(case, usual.variant, most)
    if row.ram > most and ran.footprint:
        row, _ = ours(case, usual.variant, most - ran.footprint.stack)
    return row


def emx_command() -> str | None:
    """Where emx-onnx-cgen is installed: beside Python, or on the path."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which("emx-onnx-cgen", path=places)


def emx_source(case: Case, folder: Path) -> str | None:
    """C of emx-onnx-cgen, where it takes the network."""
    command = emx_command()
    if command is None:
        return None
    # All in one file of C, and everything that is no weight on the stack, where it is counted.
    arguments = ["compile", str(case.model.resolve()), "emx.c", "--model-name", EMX]
    arguments += ["--large-weight-threshold", "0", "--large-temp-threshold", "0"]
    done = subprocess.run([command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return None if done.returncode else (folder / "emx.c").read_text()


def theirs(case: Case, variant: str, compiled: Compiled, source: str) -> Row:
    """The same with C of the other generator."""
    platform, graph = load_platform(variant), compiled.plan.graph
    outputs = [graph.types[name] for name in graph.outputs]
    with tempfile.TemporaryDirectory(prefix="tilewright-emx-") as name:
        folder = Path(name)
        write_project({**_emx_files(case, outputs, platform), "source/emx.c": source.encode()}, folder)
        built = build(folder, platform, EMX, flags=("-w",))
        ran = run_in_qemu(built.executable, case.inputs, outputs, platform, ())
    found = ran.footprint
    right = all(c.wrong == 0 for c in compare(compiled, case.inputs, ran.outputs, case.expected))
    flash = found.code + found.constants
    return Row(case.name, variant, EMX, ran.instructions, found.code, flash, found.stack, right)


def _emx_files(case: Case, outputs: Sequence[TensorType], platform: Target) -> dict[str, bytes]:
    """The program around its C: that of our own networks, and a header as those have one."""
    sizes = [str(array.nbytes) for array in case.inputs], [str(kind.size * kind.dtype.bytes) for kind in outputs]
    ports = [f"in[{i}]" for i in range(len(sizes[0]))] + [f"out[{i}]" for i in range(len(sizes[1]))]
    kinds = ", ".join(["const void *"] * len(sizes[0]) + ["void *"] * len(sizes[1]))
    header = [
        "#include <stddef.h>",
        f"#define EMX_INPUTS {len(sizes[0])}",
        f"#define EMX_OUTPUTS {len(sizes[1])}",
        f"static const struct {{ size_t bytes; }} emx_inputs[] = {{{', '.join(f'{{{n}}}' for n in sizes[0])}}},",
        f"    emx_outputs[] = {{{', '.join(f'{{{n}}}' for n in sizes[1])}}};",
        "void emx_run(const void *const *in, void *const *out);",
    ]
    run = f"void emx({kinds});\nvoid emx_run(const void *const *in, void *const *out) {{ emx({', '.join(ports)}); }}\n"
    files = runtime_files(EMX, ["emx.c"], platform)
    kept = {name: data for name, data in files.items() if name.startswith("board/")}
    return {**kept, "include/emx.h": "\n".join([*header, ""]).encode(), "source/glue.c": run.encode()}


def measure(case: Case, variants: Sequence[str], *, alone: bool) -> list[Row]:
    """All programs of a case."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tilewright-emx-") as folder:
        source = None if alone else emx_source(case, Path(folder))
    for variant in variants:
        row, ran = ours(case, variant)
        rows.append(row)
        if case.name in FUSED:
            rows.append(with_less(case, row))
        rows += [theirs(case, variant, ran.compiled, source)] if source else []
    return rows


class Promise(Struct, frozen=True):
    """A figure and its limit, which it must not exceed; or, where `least`, must reach."""

    network: str
    what: str
    found: float
    limit: float
    least: bool = False

    @property
    def kept(self) -> bool:
        return self.found >= self.limit if self.least else self.found <= self.limit


def promises(rows: Sequence[Row]) -> Iterator[Promise]:
    """Those that the measured programs tell about."""
    by_name = {(row.network, row.variant, row.generator): row for row in rows}
    for row in (row for row in rows if row.variant == "cortex-m4" and row.generator == OURS):
        name = row.network
        if name in INSTRUCTIONS:
            yield Promise(name, "instructions", row.instructions, INSTRUCTIONS[name])
            yield Promise(name, "bytes of code", row.code, CODE)
        if name in RAM:
            yield Promise(name, "bytes of RAM", row.ram, RAM[name])
        other = by_name.get((name, row.variant, EMX))
        if other and name in FEWER:
            yield Promise(name, "times fewer than emx", other.instructions / row.instructions, FEWER[name], least=True)
        vectors = by_name.get((name, "cortex-m55", OURS))
        if vectors and name in INSTRUCTIONS:
            times = row.instructions / vectors.instructions
            yield Promise(name, "times fewer with Helium", times, HELIUM, least=True)
        less = by_name.get((name, row.variant, LESS))
        if less:
            yield Promise(name, "less RAM: part of it", less.ram / row.ram, FUSED[name])
            yield Promise(name, "less RAM: times the instructions", less.instructions / row.instructions, LONGER)


def show_promises(found: Sequence[Promise]) -> None:
    """A table of limits and what was measured."""
    table = Table("network", "Cortex-M4", title="What is promised", title_justify="left")
    for column in ("asked", "measured", ""):
        table.add_column(column, justify="right")
    for promise in found:
        asked, measured = (f"{n:,.2f}" if n < 1000 else f"{n:,.0f}" for n in (promise.limit, promise.found))
        sign = "at least" if promise.least else "at most"
        table.add_row(promise.network, promise.what, f"{sign} {asked}", measured, "kept" if promise.kept else "BROKEN")
    _print(table)


def _print(table: Table) -> None:
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table)


def show(rows: Sequence[Row]) -> None:
    """A table; instructions also as multiples of those of the first program of a network and core."""
    table = Table("network", "core", "generator", title="Cortex-M, emulated", title_justify="left")
    for column in ("instructions", "times", "code", "flash", "RAM"):
        table.add_column(column, justify="right")
    first: dict[tuple[str, str], int] = {}
    for row in rows:
        base = first.setdefault((row.network, row.variant), row.instructions)
        fewer = "" if row.instructions == base else f"{row.instructions / base:.2f}"
        numbers = [f"{row.instructions:,}", fewer, *(f"{n:,}" for n in (row.code, row.flash, row.ram))]
        table.add_row(row.network, row.variant, row.generator + ("" if row.right else " (WRONG)"), *numbers)
    _print(table)
    print("times: as many instructions as the first program of that network and core; RAM: arena and stack")


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, action="append", required=True, help="folders of cases")
    parser.add_argument("--networks", nargs="*", default=NETWORKS, help="names of cases")
    parser.add_argument("--variants", nargs="*", default=VARIANTS)
    parser.add_argument("--alone", action="store_true", help="without the other generator")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {Path(name).name: place for name, place in find_cases(given.cases)}
    if missing := [name for name in given.networks if name not in found]:
        parser.error(f"--cases has none of these networks: {', '.join(missing)}")
    if not given.alone and emx_command() is None:
        parser.error("emx-onnx-cgen is not installed: pip install '.[bench]', or leave it out with --alone")
    rows: list[Row] = []
    for name in given.networks:
        print(name, file=sys.stderr)
        rows += measure(load_case(name, found[name]), given.variants, alone=given.alone)
    kept = tuple(promises(rows))
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        show(rows)
        show_promises(kept)
    return int(not all(row.right for row in rows) or not all(promise.kept for promise in kept))
