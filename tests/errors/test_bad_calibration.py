"""error[bad-calibration]: a calibration.json that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu
from tilewright.machine.calibration import FILE

KERNEL = """/* ---
op: Relu
types: {X: float32, Y: float32}
cycles: {elements: SIZE}
--- */
static void relu(const float *X, float *Y, int SIZE) {
    for (int i = 0; i < SIZE; i++)
        Y[i] = X[i] > 0 ? X[i] : 0;
}
"""


@pytest.mark.parametrize(
    "text", ["[", "[1]", '{"generic": {"relu.c": {"terms": {}}}}', '{"generic": {"relu.c": {"key": 3}}}']
)
def test_bad_calibration(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "relu.c").write_text(KERNEL)
    (tmp_path / FILE).write_text(text)
    said = refused("bad-calibration", capsys, "plan", relu(tmp_path), "--kernels", tmp_path)
    assert "calibration.json' is no file of calibrations" in said
    assert "delete it, and run `tilewright calibrate --platform generic`" in said
