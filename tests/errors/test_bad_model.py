"""error[bad-model]: the file is no network, or not a whole one."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


@pytest.mark.parametrize("content", [b"", b"no protobuf at all", bytes(range(256))])
def test_other_bytes(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(TilewrightError) as caught:
        load(path)
    assert caught.value.code == "bad-model"
    assert str(path) in caught.value.what
    assert caught.value.help


def test_a_truncated_file(tmp_path: Path) -> None:
    whole = model([node("Relu", "x", "y")], [value("x", (2, 3))], ["y"]).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TilewrightError) as caught:
        load(tmp_path / "m.onnx")
    assert caught.value.code == "bad-model"


def test_a_tensor_that_nothing_makes(tmp_path: Path) -> None:
    built = model([node("Add", "x ghost", "y", name="sum")], [value("x", (2, 3))], ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "bad-model"
    assert "'ghost'" in caught.value.what
    assert "'sum'" in caught.value.what


def test_an_output_that_nothing_makes(tmp_path: Path) -> None:
    built = model([node("Relu", "x", "y")], [value("x", (2, 3))], ["y", "ghost"])
    with pytest.raises(TilewrightError, match="ghost") as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "bad-model"


def test_weights_that_do_not_fill_their_shape(tmp_path: Path) -> None:
    built = model([node("Add", "x w", "y")], [value("x", (2, 3))], ["y"])
    built.graph.initializer.add(name="w", data_type=onnx.TensorProto.FLOAT, dims=[3], raw_data=b"1234")
    with pytest.raises(TilewrightError, match="'w'") as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "bad-model"


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    loop = onnx.helper.make_function(
        "mine", "Loop", ["a"], ["b"], [node("Loop", "a", "b", domain="mine")], [onnx.helper.make_opsetid("mine", 1)]
    )
    nodes = [node("Loop", "x", "y", domain="mine")]
    built = model(nodes, [value("x", (2, 3))], ["y"], functions=[loop], domains=["mine"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "bad-model"
