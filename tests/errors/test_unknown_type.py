"""error[unknown-type]: --input-type names no element type."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def test_unknown_type(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", (2, 3))], ["y"]))
    with pytest.raises(TilewrightError) as caught:
        load(path, input_types={"x": "i8"})
    assert caught.value.code == "unknown-type"
    assert caught.value.help.startswith("did you mean 'int8'?")
