"""What units that cores share cost a network, against GVSoC; `python -m benchmarks gvsoc` has larger ones, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.device_programs import with_private_units
from support import cases_folder
from tilewright.api import Options, load_case
from tilewright.api.compiling import compile_model
from tilewright.api.feeding import fit
from tilewright.codegen import build
from tilewright.sim.chip import run_on_chip
from tilewright.sim.gvsoc import GVSOC_FLAGS

pytestmark = pytest.mark.cases

TIMING = "gvsoc"
TOLERANCE = 0.03
PLANS = 4
"""How many are measured."""


@pytest.mark.parametrize(
    ("name", "shared", "private"),
    [
        ("FP32/GEMM/Regular", 14_782, 13_159),
        ("FP32/Softmax/Regular", 6_562, 5_941),
        ("FP32/LayerNorm", 6_677, 5_970),
    ],
)
def test_ratio_of_shared_to_private_units(name: str, shared: int, private: int, tmp_path: Path) -> None:
    top = cases_folder()
    assert top is not None
    given = load_case(name, top / "deeploy" / "Kernels" / name / "network.onnx")
    # GVSoC was asked for programs with the fastest plans.
    compiled = compile_model(given.model, Options(platform="siracusa", measure=PLANS), samples=given.inputs)
    compiled.write(tmp_path)
    program = build(tmp_path, compiled.platform, compiled.program.name, flags=GVSOC_FLAGS).executable
    graph, fed = compiled.plan.graph, fit(given.inputs, compiled.plan.graph)
    types = [graph.types[output] for output in graph.outputs]
    ours = [
        run_on_chip(program, fed, types, machine, timing=TIMING, checks=True).cycles[0]
        for machine in (compiled.platform, with_private_units(compiled.platform, TIMING))
    ]
    assert ours[0] / ours[1] == pytest.approx(shared / private, rel=TOLERANCE)
