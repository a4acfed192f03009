"""error[no-marks]: a profile of a program that does not say where its groups are."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_models import model, node, value, write
from tilewright.api import Options, run_model
from tilewright.errors import TilewrightError


def test_no_marks(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", (2, 3))], ["y"]))
    flags = ("-DTW_MARK(group,place,number)=((void)0)",)
    with pytest.raises(TilewrightError) as caught:
        run_model(path, Options(platform="siracusa"), flags=flags, profile=True)
    assert caught.value.code == "no-marks"
    assert "TW_MARK" in str(caught.value)
