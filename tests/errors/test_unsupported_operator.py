"""error[unsupported-operator]: everything that is not supported, listed at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def refusal(path: Path) -> TilewrightError:
    with pytest.raises(TilewrightError) as caught:
        load(path)
    assert caught.value.code == "unsupported-operator"
    assert caught.value.help
    return caught.value


def test_all_of_them_are_listed_with_names(tmp_path: Path) -> None:
    nodes = [
        node("NoSuchOperator", "x", "a", name="first"),
        node("Relu", "a", "b"),
        node("Other", "b", "c", name="second", domain="some.where"),
        node("Relu", "c", "y"),
    ]
    error = refusal(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    assert error.reasons == ("NoSuchOperator 'first'", "Other of 'some.where' 'second'")
    assert "2 parts" in error.what


def test_element_types(tmp_path: Path) -> None:
    inputs = [value("x", (2, 3), onnx.TensorProto.STRING), value("z", (2,), onnx.TensorProto.FLOAT8E4M3FN)]
    nodes = [node("Identity", "x", "y"), node("NoSuchOperator", "z", "w", name="n")]
    error = refusal(write(tmp_path / "m.onnx", model(nodes, inputs, ["y", "w"])))
    assert error.reasons == (
        "input 'x' has element type string",
        "input 'z' has element type float8e4m3fn",
        "NoSuchOperator 'n'",
    )


def test_sequences(tmp_path: Path) -> None:
    nodes = [
        node("SequenceConstruct", "x x", "s", name="both"),
        node("ConcatFromSequence", "s", "y", axis=0, name="one"),
    ]
    error = refusal(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    assert error.reasons == ("SequenceConstruct 'both'", "ConcatFromSequence 'one'")


def test_a_definition_that_needs_what_is_missing(tmp_path: Path) -> None:
    nodes = [node("Bernoulli", "x", "y", name="noise")]
    error = refusal(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    assert error.reasons == ("Bernoulli 'noise': its definition needs RandomUniformLike",)


def test_shapes_that_depend_on_data(tmp_path: Path) -> None:
    nodes = [node("NonZero", "x", "y", name="where")]
    error = refusal(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    assert error.reasons[0].startswith("NonZero 'where': ")
    assert error.reasons[0].count("where") == 1


def test_training(tmp_path: Path) -> None:
    constants = {"ratio": np.array(0.5, np.float32), "mode": np.array(True)}
    nodes = [node("Dropout", "x ratio mode", "y", name="drop")]
    error = refusal(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"], constants=constants)))
    assert error.reasons == ("Dropout 'drop': training mode",)
