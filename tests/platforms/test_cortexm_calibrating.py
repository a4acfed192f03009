"""A made-up kernel measured in QEMU, from its file to predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.api import calibrating
from tilewright.api.calibrating import calibrate, outdated
from tilewright.machine.calibration import FILE
from tilewright.machine.target import load_platform

KERNEL = """/* ---
op: Softsign
types: {X: float32, Y: float32}
cycles:
  single: SIZE
  call: some(SIZE)
--- */
static void softsign(const float *X, float *Y, int SIZE) {
    for (int i = 0; i < SIZE; i++)
        Y[i] = X[i] / (1 + (X[i] < 0 ? -X[i] : X[i]));
}
"""


def test_instructions_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Cortex-M7 has the counts of the M4, whose instructions it runs."""
    (tmp_path / "softsign.c").write_text(KERNEL)
    monkeypatch.setattr(calibrating, "LEAST_LAYERS", 8)
    monkeypatch.setattr(calibrating, "LEAST_PROGRAMS", 2)
    (result,) = calibrate("cortex-m7", kernels=(tmp_path,))
    found = json.loads((tmp_path / FILE).read_text())
    assert list(found) == ["cortex-m4"]
    # A load, an absolute value, a sum, a quotient, a store and the loop.
    assert 5 < result.calibration.terms["single"] < 15
    assert (result.calibration.begin, result.calibration.fused, result.calibration.again) == (0, 0, 0)
    assert result.calibration.held_out["median"] < 0.05
    assert outdated("cortex-m7", (tmp_path,)) == outdated("cortex-m4", (tmp_path,)) == []
    platform = load_platform("cortex-m33", (tmp_path,))
    (kernel,) = (k for k in platform.kernels if k.path.name == "softsign.c")
    assert f"{result.calibration.terms['single']:g}*SIZE" in kernel.cycles.replace("(", "").replace(")", "")
