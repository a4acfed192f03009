"""DynamicQuantizeLSTM rounds inputs and states as onnxruntime does, whose operator it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_models import Array, model, node, onnxruntime_results, value, write
from tilewright.api import run_model
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.frontend import load

STEPS, DEPTH, HIDDEN = 5, 6, 4


def quantised_lstm(columns: bool, directions: int, batch: int, kind: str = "uint8") -> onnx.ModelProto:
    """Scales are of a direction or of each column; onnxruntime takes one zero point for all columns."""
    rng = np.random.default_rng(5)
    attributes = {"hidden_size": HIDDEN, "direction": "bidirectional" if directions == 2 else "forward"}
    shape = (directions, 4 * HIDDEN) if columns else (directions,)
    constants: dict[str, Array] = {"b": rng.normal(size=(directions, 8 * HIDDEN)).astype(np.float32)}
    for name, rows in (("w", DEPTH), ("r", HIDDEN)):
        # Of signed weights half the range: some processors saturate sums of two products in onnxruntime.
        low, high = (0, 256) if kind == "uint8" else (-64, 64)
        codes = rng.integers(low, high, (directions, rows, 4 * HIDDEN)).astype(kind)
        zero = np.full(shape, 126 if kind == "uint8" else -3, kind)
        scale = rng.uniform(0.004, 0.008, shape).astype(np.float32)
        constants |= {name: codes, f"{name}s": scale, f"{name}z": zero}
    layer = node("DynamicQuantizeLSTM", "x w r b - - - - ws wz rs rz", "y h c", domain="com.microsoft", **attributes)
    inputs = [value("x", (STEPS, batch, DEPTH))]
    return model([layer], inputs, ["y", "h", "c"], constants=constants, domains=["com.microsoft"])


@pytest.mark.parametrize(
    ("columns", "directions", "batch", "kind"),
    [(False, 1, 1, "int8"), (False, 2, 3, "uint8"), (True, 2, 1, "uint8")],
)
def test_same_as_onnxruntime(columns: bool, directions: int, batch: int, kind: str, tmp_path: Path) -> None:
    made = quantised_lstm(columns, directions, batch, kind)
    path = write(tmp_path / "m.onnx", made)
    x = np.random.default_rng(1).normal(size=(STEPS, batch, DEPTH)).astype(np.float32)
    expected = onnxruntime_results(made, {"x": x})
    for found in (interpret(load(path), [x]), run_model(path, inputs=[x]).outputs):
        for ours, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-6)


def test_scales_of_neither_directions_nor_columns(tmp_path: Path) -> None:
    made = quantised_lstm(columns=False, directions=2, batch=1)
    scale = next(tensor for tensor in made.graph.initializer if tensor.name == "ws")
    scale.CopyFrom(onnx.numpy_helper.from_array(np.ones(3, np.float32), "ws"))
    with pytest.raises(TilewrightError, match="neither of each direction nor of each of its columns") as caught:
        load(write(tmp_path / "m.onnx", made))
    assert caught.value.code == "shape-mismatch"
