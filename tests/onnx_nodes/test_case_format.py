"""Cases in the layout of ONNX's own tests: how they are found, read and compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from onnx_models import Array, model, node, value, write
from tilewright.api import Options, compile_model, find_cases, load_case, run_case
from tilewright.api.running import compare
from tilewright.errors import TilewrightError

X = np.array([-1.0, np.nan, np.inf], np.float32)


def write_case(folder: Path, *outputs: Array) -> None:
    """Relu of X with one data set per expected output."""
    folder.mkdir(parents=True)
    write(folder / "model.onnx", model([node("Relu", "x", "y")], [value("x", X.shape)], ["y"]))
    for index, output in enumerate(outputs):
        place = folder / f"test_data_set_{index}"
        place.mkdir()
        (place / "input_0.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
        (place / "output_0.pb").write_bytes(numpy_helper.from_array(output).SerializeToString())


def test_each_data_set_is_a_case(tmp_path: Path) -> None:
    write_case(tmp_path / "one", X)
    write_case(tmp_path / "two", X, X + 1)
    found = find_cases([tmp_path])
    assert [name for name, _ in found] == ["one", "two/test_data_set_0", "two/test_data_set_1"]
    case = load_case(*found[2])
    assert case.model == tmp_path / "two" / "model.onnx"
    assert case.rule == "official"
    assert np.array_equal(case.inputs[0], X, equal_nan=True)
    assert np.array_equal(case.expected[0], X + 1, equal_nan=True)


def test_a_case_runs(tmp_path: Path) -> None:
    write_case(tmp_path / "relu", np.array([0, np.nan, np.inf], np.float32), np.array([0, 0, np.inf], np.float32))
    results = [run_case(*found, Options(), flags=("-O0",)) for found in find_cases([tmp_path])]
    assert [result.status for result in results] == ["pass", "fail"]


def test_other_kinds_than_tensors_are_unsupported(tmp_path: Path) -> None:
    write_case(tmp_path / "list", X)
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [3]))
    built = model([node("Identity", "x", "y")], [helper.make_value_info("x", kind)], ["y"])
    write(tmp_path / "list" / "model.onnx", built)
    with pytest.raises(TilewrightError, match="'x' has kind sequence") as caught:
        load_case(*find_cases([tmp_path])[0])
    assert caught.value.code == "unsupported-type"


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([1.0, np.nan, np.inf], 0),
        ([1.0009, np.nan, np.inf], 0),
        ([1.002, np.nan, np.inf], 1),
        ([1.0, 0.0, np.inf], 1),
        ([np.nan, np.nan, np.inf], 1),
        ([1.0, np.nan, -np.inf], 1),
        ([1.0, np.nan, 3e38], 1),
    ],
)
def test_official_rule(found: list[float], wrong: int, tmp_path: Path) -> None:
    write_case(tmp_path / "relu", X)
    compiled = compile_model(tmp_path / "relu" / "model.onnx")
    expected = np.array([1.0, np.nan, np.inf], np.float32)
    (result,) = compare(compiled, [X], [np.array(found, np.float32)], [expected], "official")
    assert result.wrong == wrong


def test_official_rule_is_strict_about_types(tmp_path: Path) -> None:
    write_case(tmp_path / "relu", X)
    compiled = compile_model(tmp_path / "relu" / "model.onnx")
    for other in (X.astype(np.float64), X[None]):
        (result,) = compare(compiled, [X], [other], [X], "official")
        assert result.wrong == 3
    large = np.array([2**53], np.int64)
    (result,) = compare(compiled, [X], [large + 1], [large], "official")
    assert result.wrong == 1
