"""Cycles with `--timing gvsoc`, with units that cores share and with units of their own, beside those of GVSoC itself.

Programs are built as `--simulator gvsoc` does it and run in Tilewright's own simulator, once as the timing is and once
with a floating-point unit and a divider for each core. GVSoC's figures were measured in its version of July 2026 and in
a changed one with such private units. Our networks are scheduled differently from time to time, so the two ratios are
compared. Networks that divided in loops when GVSoC was asked, and do so no longer, are not among them. The exit status
is 1 where one differs by over 3 %, or a result is wrong.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from tilewright.api import Options, load_case
from tilewright.api.compiling import compile_model
from tilewright.api.feeding import fit
from tilewright.api.running import compare
from tilewright.codegen import build
from tilewright.machine.target import Sizes, Target
from tilewright.sim.chip import run_on_chip
from tilewright.sim.gvsoc import GVSOC_FLAGS

PLATFORM, TIMING = "siracusa", "gvsoc"
TOLERANCE = 0.03
PLANS = 4
"""How many are measured: GVSoC was asked for programs with the fastest plans."""


class Program(Struct, frozen=True):
    """A network, what it may use, and its cycles in GVSoC."""

    case: str
    shared: int
    private: int
    cores: int = 8
    without: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        notes = (*(f"no {name}" for name in self.without), *(["1 core"] if self.cores == 1 else []))
        return self.case.removesuffix("/network.onnx").removesuffix(".onnx") + "".join(f", {note}" for note in notes)

    def options(self) -> Options:
        sizes = Sizes(cores=self.cores, without=self.without, home="L2")
        return Options(platform=PLATFORM, sizes=sizes, measure=PLANS)


CORES_ONLY = ("neureka",)
PROGRAMS = (
    Program("mbv1_025_int8.onnx", 386_979, 363_089),
    Program("Kernels/FP32/GEMM/Regular/network.onnx", 14_782, 13_159),
    Program("Kernels/FP32/GEMM/Regular/network.onnx", 81_098, 81_098, cores=1),
    Program("Kernels/FP32/Conv/Regular_2D_ZeroValuedBias/network.onnx", 49_072, 45_768),
    Program("Kernels/FP32/Softmax/Regular/network.onnx", 6_562, 5_941),
    Program("Kernels/FP32/LayerNorm/network.onnx", 6_677, 5_970),
    Program("Models/MLPerf/KeywordSpotting/network.onnx", 50_012, 50_106),
    Program("Models/MLPerf/KeywordSpotting/network.onnx", 198_939, 198_939, without=CORES_ONLY),
    Program("Kernels/Integer/Concat/network.onnx", 13_234, 13_234),
    Program("Kernels/Integer/Conv/Regular_3x3_RQ/network.onnx", 24_735, 24_735, without=CORES_ONLY),
    Program("Kernels/Integer/MatMul/Add/network.onnx", 23_186, 23_186, cores=1),
)


def with_private_units(platform: Target) -> Target:
    """The platform with units for each of the cores, in the timing of GVSoC."""
    machine = platform.timings[TIMING]
    harts = {
        name: replace(group, units=tuple(replace(unit, count=group.count) for unit in group.units))
        for name, group in machine.harts.items()
    }
    return replace(platform, timings={**platform.timings, TIMING: replace(machine, harts=harts)})


def cycles_of(program: Program, model: Path) -> tuple[int, int]:
    """Cycles with shared and with private units."""
    case = load_case(program.title, model)
    compiled = compile_model(model, program.options(), samples=case.inputs)
    graph = compiled.plan.graph
    fed, types = fit(case.inputs, compiled.plan.graph), [graph.types[name] for name in graph.outputs]
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        compiled.write(Path(folder))
        built = build(Path(folder), compiled.platform, compiled.program.name, flags=GVSOC_FLAGS)
        runs = [
            run_on_chip(built.executable, fed, types, machine, timing=TIMING, checks=True)
            for machine in (compiled.platform, with_private_units(compiled.platform))
        ]
    for run in runs:
        if any(found.wrong for found in compare(compiled, fed, run.outputs, case.expected)):
            raise RuntimeError(f"{program.title}: the result is wrong")
    return runs[0].cycles[0], runs[1].cycles[0]


def main() -> int:
    """Runs all programs whose cases are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, action="append", required=True, help="folder with cases")
    parser.add_argument("--only", default="", help="part of the names of programs")
    chosen = parser.parse_args()
    table = Table("program", title="timing gvsoc: cycles with shared and private units, and their ratio")
    for column in ("shared", "private", "ratio", "GVSoC shared", "GVSoC private", "ratio", "difference"):
        table.add_column(column, justify="right")
    status = 0
    for program in PROGRAMS:
        found = [folder / program.case for folder in chosen.cases if (folder / program.case).exists()]
        if not found or chosen.only not in program.title:
            continue
        shared, private = cycles_of(program, found[0])
        ours, theirs = shared / private, program.shared / program.private
        status |= abs(ours / theirs - 1) > TOLERANCE
        table.add_row(
            program.title,
            *(f"{shared:,}", f"{private:,}", f"{ours:.3f}"),
            *(f"{program.shared:,}", f"{program.private:,}", f"{theirs:.3f}"),
            f"{ours / theirs - 1:+.1%}",
        )
    Console().print(table)
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main())
