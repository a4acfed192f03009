"""error[wrong-inputs]: arrays that do not fit the inputs of the network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright
from command_line import refused, relu
from onnx_models import model, node, value, write


def test_shapes_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = relu(tmp_path)
    np.savez(tmp_path / "none.npz")
    np.savez(tmp_path / "long.npz", x=np.zeros((2, 4), np.float32))
    assert "1 inputs, 0 were given" in refused(
        "wrong-inputs", capsys, "run", network, "--inputs", tmp_path / "none.npz"
    )
    assert "[2, 4]" in refused("wrong-inputs", capsys, "run", network, "--inputs", tmp_path / "long.npz")


def test_values_that_the_type_does_not_hold(tmp_path: Path) -> None:
    built = model([node("Abs", "x", "y")], [value("x", (2,), onnx.TensorProto.INT8)], ["y"])
    with pytest.raises(tilewright.TilewrightError, match="does not hold all of 0 to 1000") as caught:
        tilewright.run(write(tmp_path / "m.onnx", built), inputs=[np.array([0, 1000])])
    assert caught.value.code == "wrong-inputs"
