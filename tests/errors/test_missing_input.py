"""error[missing-input]: a required input of an operator is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def test_missing_input(tmp_path: Path) -> None:
    built = model([node("MatMul", "x", "y", name="product")], [value("x", (2, 3))], ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "missing-input"
    assert "'B' is required" in caught.value.what
    assert "'product'" in caught.value.what
