"""Loop nests are measured on layers that no kernel fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.api import calibrating_nests
from tilewright.api.calibrating import calibrate, outdated
from tilewright.api.sampled_layers import draw_nest
from tilewright.core.op import REGISTRY
from tilewright.machine.calibration import FILE, NESTS, stale_nests, warnings
from tilewright.machine.target import load_platform

PLATFORM = "siracusa"
FEW = ("Neg", "Sin", "Sub", "ReduceSum")


def test_cycles_of_operations_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrating_nests, "operators", lambda: {name: REGISTRY[name] for name in FEW})
    monkeypatch.setattr(calibrating_nests, "TOGETHER", 2)
    (result,) = calibrate(PLATFORM, nests=True, output=tmp_path)
    found = json.loads((tmp_path / FILE).read_text())[PLATFORM][NESTS]
    assert result.name == NESTS
    assert found["terms"] == dict(result.calibration.terms)
    assert 60 < found["terms"]["sinf"] < 300
    assert "begin" not in found


def test_layers_are_for_no_kernel() -> None:
    platform, random = load_platform(PLATFORM), calibrating_nests.np.random.default_rng(0)
    drawn = [draw_nest(REGISTRY["Conv"], platform.kernels, random, "x") for _ in range(20)]
    # Convolutions of bytes and of floats have kernels.
    assert all(layer is None or layer.types["x_X"].dtype.bits == 16 for layer in drawn)


def test_another_function_or_compiler_is_told() -> None:
    platform = load_platform(PLATFORM)
    assert stale_nests(platform) == ()
    assert stale_nests(platform, {"compiler": "another"}) == ("their compiler changed",)
    assert warnings(platform, [None]) == ()
    assert (NESTS, ("their compiler changed",)) not in outdated(PLATFORM)
