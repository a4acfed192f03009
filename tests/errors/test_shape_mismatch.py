"""error[shape-mismatch]: shapes that do not go together, with both shapes and the node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


@pytest.mark.parametrize(
    ("operator", "shape", "said"),
    [("Add", (4,), "shapes [2, 3] and [4] do not broadcast"), ("MatMul", (4, 2), "A has 3 columns and B has 4 rows")],
)
def test_shape_mismatch(operator: str, shape: tuple[int, ...], said: str, tmp_path: Path) -> None:
    weights = {"w": np.zeros(shape, np.float32)}
    built = model([node(operator, "x w", "y", name="here")], [value("x", (2, 3))], ["y"], constants=weights)
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "shape-mismatch"
    assert said in caught.value.what
    assert "'here'" in caught.value.what


def test_positions_without_a_row(tmp_path: Path) -> None:
    tables = {name: np.zeros((rows, 8), np.float32) for name, rows in (("words", 5), ("places", 4))}
    scales = {name: np.zeros(8, np.float32) for name in ("gamma", "beta")}
    inputs = "x - words places - gamma beta"
    embedded = node("EmbedLayerNormalization", inputs, "y", name="here", domain="com.microsoft")
    built = model([embedded], [value("x", (2, 6), TensorProto.INT32)], ["y"], constants=tables | scales)
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "shape-mismatch"
    assert "no row for each of 6 positions" in caught.value.what
