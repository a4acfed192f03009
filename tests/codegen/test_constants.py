"""Constants that a network copies, built for the processor of this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from onnx_models import model, node, value, write
from tilewright.api import run_model

WORDS = {
    "ends of a sign": [-8, -8, -8, -1, -8],
    "ends of zeros": [5, 5, 5, 0, 5],
    "eight words": [-8] * 7 + [-1],
}


@pytest.mark.parametrize("level", ["-O1", "-O3"])
@pytest.mark.parametrize("words", WORDS.values(), ids=[*WORDS])
def test_copied_constants(words: list[int], level: str, tmp_path: Path) -> None:
    """gcc 12 takes the first of them for {k, k, k, k, k} where the processor has AVX-512."""
    table = np.asarray(words, np.int64)
    built = model(
        [node("Concat", "x table", "y", axis=0), node("Identity", "table", "z")],
        [value("x", (3,), TensorProto.INT64)],
        ["y", "z"],
        constants={"table": table},
    )
    ran = run_model(
        write(tmp_path / "m.onnx", built), inputs=[np.arange(3)], compiler="gcc", flags=(level, "-march=native")
    )
    np.testing.assert_array_equal(ran.outputs[0], [0, 1, 2, *words])
    np.testing.assert_array_equal(ran.outputs[1], words)
