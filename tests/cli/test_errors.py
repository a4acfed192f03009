"""Networks that cannot be compiled end in one error, status 2 and an untouched output folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from command_line import refused
from onnx_models import model, node, value, write, write_apart


def broken(path: Path) -> None:
    path.write_bytes(b"no protobuf at all")


def external(path: Path) -> None:
    weights = {"w": np.zeros((2, 3), np.float32)}
    write_apart(path, model([node("Add", "x w", "y")], [value("x", (2, 3))], ["y"], constants=weights), "weights.bin")
    (path.parent / "weights.bin").unlink()


def dynamic(path: Path) -> None:
    write(path, model([node("Relu", "x", "y")], [value("x", ("batch", 3))], ["y"]))


def unsupported(path: Path) -> None:
    nodes = [node("First", "x", "a", name="one"), node("Second", "a", "y", name="two")]
    write(path, model(nodes, [value("x", (2, 3))], ["y"]))


def types(path: Path) -> None:
    inputs = [value("x", (2, 3)), value("z", (2, 3), onnx.TensorProto.INT32)]
    write(path, model([node("Add", "x z", "y", name="sum")], inputs, ["y"]))


def cycle(path: Path) -> None:
    nodes = [node("Add", "x b", "a", name="there"), node("Relu", "a", "b", name="back")]
    write(path, model(nodes, [value("x", (2, 3))], ["b"]))


@pytest.mark.parametrize(
    ("make", "code", "said"),
    [
        (broken, "bad-model", ["m.onnx"]),
        (external, "missing-external-data", ["weights.bin"]),
        (dynamic, "dynamic-shape", ["batch", "--dim batch="]),
        (unsupported, "unsupported-operator", ["First 'one'", "Second 'two'"]),
        (types, "type-mismatch", ["'sum'", "float32", "int32"]),
        (cycle, "cyclic-graph", ["'there'", "'back'"]),
    ],
)
def test_errors(
    make: Callable[[Path], None], code: str, said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "m.onnx")
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "network.c").write_text("mine")
    text = refused(code, capsys, "compile", tmp_path / "m.onnx", "-o", folder)
    assert all(part in text for part in said), text
    assert "help: " in text
    assert [path.name for path in folder.iterdir()] == ["network.c"]
    assert (folder / "network.c").read_text() == "mine"
