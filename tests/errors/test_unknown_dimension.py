"""error[unknown-dimension]: --dim names no open extent, or gives it no size; a layer or an array has no such one."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused
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


PRODUCT = ["map", "O[m][n] += A[m][k] * B[k][n]", "--machine", "tpu-like", "--sizes"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["M=4,N=4"], "operand A uses the dimension K, which has no size"),
        (["M=4,N=4,K=4,Q=3"], "Q has a size, but the equation has no such dimension"),
        (["M=4,N=4,K=4", "--order", "M,Q"], "the order names Q"),
        (["M=4,N=4,K=4", "--unroll", "D1=Q:4"], "unrolled steps of 'Q': nothing has this name"),
        (["M=4,N=4,K=4", "--unroll", "D9=K:4"], "array 'tpu-like' has no dimension D9"),
    ],
)
def test_dimensions_of_layers_and_arrays(arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert what in refused("unknown-dimension", capsys, *PRODUCT, *arguments)
