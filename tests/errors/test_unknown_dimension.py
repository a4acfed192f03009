"""error[unknown-dimension]: --dim names no open extent, or gives it no size."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


@pytest.mark.parametrize(
    ("dims", "help_text"),
    [
        ({"bacth": 1}, "did you mean 'batch'? known: batch, x:0"),
        ({"x:1": 1}, "did you mean 'x:0'? known: batch, x:0"),
        ({"batch": -1}, "an extent is at least 0"),
    ],
)
def test_unknown_dimension(dims: dict[str, int], help_text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", ("batch", 3))], ["y"]))
    with pytest.raises(TilewrightError) as caught:
        load(path, dims=dims)
    assert caught.value.code == "unknown-dimension"
    assert caught.value.help == help_text
