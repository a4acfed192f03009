"""error[dynamic-shape]: an input's shape is open and nothing fixes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def test_all_open_extents_are_named_at_once(tmp_path: Path) -> None:
    inputs = [value("x", ("batch", 3, None)), value("z", ("batch", "tokens"))]
    built = model([node("Relu", "x", "y"), node("Relu", "z", "w")], inputs, ["y", "w"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "dynamic-shape"
    assert caught.value.reasons == ("input 'x' is [batch, 3, ?]", "input 'z' is [batch, tokens]")
    assert caught.value.help == "fix it with --dim batch=VALUE --dim x:2=VALUE --dim tokens=VALUE"


def test_extents_given_so_far_are_not_asked_for(tmp_path: Path) -> None:
    built = model([node("Relu", "x", "y")], [value("x", ("batch", "tokens"))], ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built), dims={"batch": 1})
    assert caught.value.help == "fix it with --dim tokens=VALUE"


def test_an_input_without_rank(tmp_path: Path) -> None:
    built = model([node("Relu", "x", "y")], [value("x", None)], ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "dynamic-shape"
