"""error[bad-axis]: axes given as an input are outside the tensor, or named twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


@pytest.mark.parametrize(("axes", "said"), [([2], "axis 2 is outside a tensor of rank 2"), ([1, -1], "an axis twice")])
def test_bad_axis(axes: list[int], said: str, tmp_path: Path) -> None:
    starts = {"starts": np.zeros(len(axes), np.int64), "ends": np.ones(len(axes), np.int64), "axes": np.array(axes)}
    nodes = [node("Slice", "x starts ends axes", "y", name="here")]
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"], constants=starts)))
    assert caught.value.code == "bad-axis"
    assert said in caught.value.what
    assert "'here'" in caught.value.what
