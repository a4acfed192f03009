"""Instructions, RAM and code of the standard networks on Cortex-M stay below what is promised."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tilewright.api import Options, Ran, load_case, run_model
from tilewright.codegen.build import STRICT
from tilewright.core.graph import Array


@dataclass(frozen=True)
class Promise:
    """At most: instructions on the Cortex-M4, bytes of the arena."""

    instructions: int
    arena: int


PROMISES = {
    "resnet8_int8": Promise(22_000_000, 55_000),
    "dscnn_int8": Promise(6_500_000, 24_000),
    "mbv1_025_int8": Promise(14_000_000, 60_000),
    "ae640_int8": Promise(700_000, 8_000),
}
CODE = 40_000
HELIUM = 3
"""Times fewer instructions on the Cortex-M55."""


def ran(cases: Path, name: str, variant: str, flags: tuple[str, ...] = ()) -> Ran:
    case = load_case(name, cases / "standard_networks" / f"{name}.onnx")
    inputs: tuple[Array, ...] = case.inputs
    return run_model(case.model, Options(platform=variant), inputs=inputs, expected=case.expected, flags=flags)


@pytest.mark.cases
@pytest.mark.parametrize("name", PROMISES)
def test_figures(name: str, cases: Path) -> None:
    counts: dict[str, int] = {}
    for variant in ("cortex-m4", "cortex-m55"):
        found = ran(cases, name, variant)
        assert found.right
        assert found.compiled.plan.optimal
        assert found.compiled.program.arena_bytes <= PROMISES[name].arena
        assert found.footprint is not None
        assert found.footprint.code <= CODE
        counts[variant] = found.cycles or 0
    assert counts["cortex-m4"] <= PROMISES[name].instructions
    assert counts["cortex-m55"] * HELIUM <= counts["cortex-m4"]


@pytest.mark.slow
@pytest.mark.cases
@pytest.mark.parametrize("level", ["-Os", "-O2", "-O3"])
@pytest.mark.parametrize("variant", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", [*PROMISES, "resnet8_fp32", "dscnn_fp32", "tblock_fp32", "llama_int8"])
def test_right_at_every_level(name: str, variant: str, level: str, cases: Path) -> None:
    """Built with each optimisation, without a warning."""
    assert ran(cases, name, variant, (*STRICT, level)).right
