"""error[no-kernel]: no code computes a layer; every rejected kernel is quoted with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused
from onnx_models import model, node, value, write

OPERATOR = """
from tilewright.core.domain import elementwise
from tilewright.core.op import Operator, declare, example

declare(Operator(
    "Bodiless", "X", "Y",
    lambda call: (call.type("X"),),
    lambda call: elementwise(call.shape("X"), {"X": call.shape("X")}),
    lambda call, x: x,
    (example("float32[2]"),),
))
"""
KERNEL = """/* ---
op: Bodiless
types: {X: float32, Y: float32}
when: {SIZE: "% 4 == 0"}
--- */
static void bodiless(const float *X, float *Y, int SIZE) {}
"""


def test_no_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bodiless.py").write_text(OPERATOR)
    network = write(tmp_path / "m.onnx", model([node("Bodiless", "x", "y", name="odd")], [value("x", (2, 3))], ["y"]))
    text = refused("no-kernel", capsys, "compile", network, "--ops", tmp_path)
    assert "Bodiless 'odd' has no kernel on 'generic'" in text
    assert "no kernel file declares op: Bodiless" in text
    (tmp_path / "bodiless.c").write_text(KERNEL)
    text = refused("no-kernel", capsys, "compile", network, "--ops", tmp_path, "--kernels", tmp_path)
    assert "needs SIZE % 4 == 0, found 6" in text
    assert "help: " in text
