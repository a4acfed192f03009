"""error[no-samples]: a kernel for which no layer can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused

KERNEL = """/* ---
op: Relu
types: {X: float32, Y: float32}
when: {SIZE: "== 123456789"}
cycles: {elements: SIZE}
--- */
static void relu(const float *X, float *Y, int SIZE) {
    (void)X, (void)Y, (void)SIZE;
}
"""


def test_no_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.api.sampled_layers.TRIES", 3)
    (tmp_path / "relu.c").write_text(KERNEL)
    said = refused("no-samples", capsys, "calibrate", "--platform", "siracusa", "--kernels", tmp_path)
    assert "relu.c cannot be calibrated: hardly any layer made from the examples of Relu is for it" in said
    assert "add an example to the declaration of Relu" in said
    assert not (tmp_path / "calibration.json").exists()
