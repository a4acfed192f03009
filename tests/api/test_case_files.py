"""Test cases on disk in their layouts, and what becomes of good and bad ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from onnx_models import write
from onnx_networks import Model, Network
from tilewright.api import Options, find_cases, load_case, run_case
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError


def network(op: str = "Neg") -> Network:
    m = Model()
    return m.network(m.op(op, m.input("x", m.noise(2, 3))))


def folder_case(folder: Path, expected: Array | None = None, op: str = "Neg") -> None:
    """network.onnx with inputs.npz and outputs.npz."""
    folder.mkdir(parents=True)
    model, (x,) = network(op)
    write(folder / "network.onnx", model)
    np.savez(folder / "inputs.npz", x=x)
    np.savez(folder / "outputs.npz", y=-x if expected is None else expected)


def file_case(folder: Path) -> None:
    """X.onnx beside X.npz."""
    folder.mkdir(parents=True)
    model, (x,) = network()
    write(folder / "net.onnx", model)
    np.savez(folder / "net.npz", input_0=x, output_0=-x)


def official_case(folder: Path, sets: int) -> None:
    """model.onnx with folders of protobuf files."""
    model, (x,) = network()
    for index in range(sets):
        data = folder / f"test_data_set_{index}"
        data.mkdir(parents=True)
        (data / "input_0.pb").write_bytes(numpy_helper.from_array(x + index).SerializeToString())
        (data / "output_0.pb").write_bytes(numpy_helper.from_array(-(x + index)).SerializeToString())
    write(folder / "model.onnx", model)


def test_all_layouts_are_found_below_a_folder(tmp_path: Path) -> None:
    folder_case(tmp_path / "a" / "first")
    file_case(tmp_path / "b")
    official_case(tmp_path / "c" / "one", 1)
    official_case(tmp_path / "c" / "two", 2)
    (tmp_path / "d").mkdir()
    write(tmp_path / "d" / "lonely.onnx", network()[0])
    found = find_cases([tmp_path])
    names = ["a/first", "b/net", "c/one", "c/two/test_data_set_0", "c/two/test_data_set_1"]
    assert sorted(name for name, _ in found) == names
    for name, place in found:
        case = load_case(name, place)
        np.testing.assert_array_equal(case.inputs[0], -case.expected[0])
        assert case.rule == ("official" if name.startswith("c/") else "network")


def test_a_model_file_names_its_case(tmp_path: Path) -> None:
    folder_case(tmp_path / "mine")
    assert [name for name, _ in find_cases([tmp_path / "mine" / "network.onnx"])] == ["mine"]


def test_no_cases_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError) as caught:
        find_cases([tmp_path])
    assert caught.value.code == "no-cases"


def test_right_wrong_and_unsupported_cases(tmp_path: Path) -> None:
    folder_case(tmp_path / "right")
    folder_case(tmp_path / "wrong", expected=np.zeros((2, 3), np.float32))
    folder_case(tmp_path / "unsupported", op="NoSuchOperator")
    folder_case(tmp_path / "broken")
    (tmp_path / "broken" / "network.onnx").write_bytes(b"nothing of the kind")
    results = {name: run_case(name, place, Options(), flags=("-O0",)) for name, place in find_cases([tmp_path])}
    status = {name: result.status for name, result in results.items()}
    assert status == {"right": "pass", "wrong": "fail", "unsupported": "unsupported", "broken": "error"}
    assert "6 of 6 wrong" in results["wrong"].detail
    assert "NoSuchOperator" in results["unsupported"].detail
    assert results["right"].comparisons[0].wrong == 0
