"""error[not-constant]: a shape, an axis or the like is only known at run time."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def test_not_constant(tmp_path: Path) -> None:
    inputs = [value("x", (2, 3)), value("shape", (2,), TensorProto.INT64)]
    built = model([node("Reshape", "x shape", "y", name="turn")], inputs, ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "not-constant"
    assert "'shape'" in caught.value.what
    assert "'turn'" in caught.value.what
    assert caught.value.help == "state its value: --constant shape=FILE.npy"
