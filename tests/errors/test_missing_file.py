"""error[missing-file]: there is no such network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import TilewrightError
from tilewright.frontend import load


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError) as caught:
        load(tmp_path / "nothing.onnx")
    assert caught.value.code == "missing-file"
    assert "nothing.onnx" in caught.value.what
    assert caught.value.help
