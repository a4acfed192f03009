"""error[bad-value]: a constant input has a value that no result can follow from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def test_a_step_of_zero(tmp_path: Path) -> None:
    constants = {name: np.array([number]) for name, number in zip("abcd", (0, 1, 0, 0), strict=True)}
    built = model([node("Slice", "x a b c d", "y", name="here")], [value("x", (2, 3))], ["y"], constants=constants)
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "bad-value"
    assert "step must not be zero" in caught.value.what
    assert "'here'" in caught.value.what
