"""error[missing-external-data]: the weights are not beside the network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_models import model, node, read, value, write, write_apart
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def save_apart(folder: Path) -> Path:
    weights = {"w": np.ones((3, 4), np.float32)}
    built = model([node("MatMul", "x w", "y")], [value("x", (2, 3))], ["y"], constants=weights)
    return write_apart(folder / "m.onnx", built, "m.data")


def test_no_file(tmp_path: Path) -> None:
    path = save_apart(tmp_path)
    (tmp_path / "m.data").unlink()
    with pytest.raises(TilewrightError) as caught:
        load(path)
    assert caught.value.code == "missing-external-data"
    assert "'w'" in caught.value.what
    assert "m.data" in caught.value.what
    assert caught.value.help


def test_a_file_that_is_too_short(tmp_path: Path) -> None:
    path = save_apart(tmp_path)
    (tmp_path / "m.data").write_bytes(b"1234")
    with pytest.raises(TilewrightError) as caught:
        load(path)
    assert caught.value.code == "missing-external-data"
    assert caught.value.reasons == ("48 bytes needed, 4 found",)


def test_a_file_elsewhere_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    path = save_apart(folder)
    (folder / "m.data").rename(tmp_path / "m.data")
    content = read(path)
    content.graph.initializer[0].external_data[0].value = "../m.data"
    write(path, content)
    with pytest.raises(TilewrightError) as caught:
        load(path)
    assert caught.value.code == "bad-model"
