"""Steps behind kernels are measured on kernels that were measured."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from msgspec.structs import replace

from tilewright.api import calibrating_steps
from tilewright.api.calibrating import calibrate, outdated
from tilewright.api.sampled_layers import any_steps
from tilewright.base.dtype import FLOAT32, INT8, DType
from tilewright.core.graph import TensorType
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import FILE, STEPS
from tilewright.machine.staleness import stale_steps, warnings
from tilewright.machine.target import load_platform

PLATFORM = "siracusa"


def test_cycles_of_steps_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrating_steps, "PROGRAMS", 9)
    monkeypatch.setattr(calibrating_steps, "TOGETHER", 3)
    (result,) = calibrate(PLATFORM, parts=[STEPS], output=tmp_path)
    found = json.loads((tmp_path / FILE).read_text())[PLATFORM][STEPS]
    assert result.name == STEPS
    assert found["terms"] == dict(result.calibration.terms)
    assert "begin step" in found["terms"]


@pytest.mark.parametrize("kind", [FLOAT32, INT8])
def test_steps_are_of_many_kinds(kind: DType) -> None:
    random = np.random.default_rng(0)
    drawn = [any_steps(TensorType(kind, (4, 16)), random) for _ in range(40)]
    assert len({op for steps in drawn for op, _, _ in steps}) > 10
    assert any(not steps for steps in drawn)


def test_another_compiler_is_told() -> None:
    platform = load_platform(PLATFORM)
    kernel = next(k for k in platform.kernels if any("FUSED" in text for text in k.terms.values()))
    assert stale_steps(platform) == ()
    assert stale_steps(platform, {"compiler": "another"}) == ("their compiler changed",)
    assert warnings(platform, [kernel]) == ()
    assert (STEPS, ("their compiler changed",)) not in outdated(PLATFORM)
    key = MappingProxyType({**platform.calibrations[STEPS].key, "headers": "others"})
    changed = replace(platform.calibrations[STEPS], key=key)
    other = replace(platform, calibrations=MappingProxyType({**platform.calibrations, STEPS: changed}))
    assert [line for line in warnings(other, [kernel]) if "calibrate --platform siracusa --steps" in line]


def test_machines_in_qemu_are_refused() -> None:
    with pytest.raises(TilewrightError, match="steps behind kernels of 'cortex-m4' cannot be measured"):
        calibrate("cortex-m4", parts=[STEPS])


def test_kernels_have_to_be_measured_before() -> None:
    platform = replace(load_platform(PLATFORM), calibrations=MappingProxyType({}))
    with pytest.raises(TilewrightError, match="which measures kernels first"):
        calibrating_steps.measured_steps(platform, 0)
