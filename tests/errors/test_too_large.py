"""error[too-large]: a network takes more memory, axes or nodes than are allowed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import refused, relu
from hostile.shapes import alone, declared, folded, ints
from hostile.structure import doubling, loop, step
from onnx_models import model, node, value, write
from tilewright import Options, compile
from tilewright.cli.app import run
from tilewright.errors import TilewrightError
from tilewright.frontend import limits, load


def test_a_tensor_beyond_max_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = relu(tmp_path)
    said = refused("too-large", capsys, "compile", path, "-o", tmp_path / "out", "--max-bytes", "23")
    assert "'x' is float32[2,3]: 24 bytes, 23 are allowed" in said
    assert "--max-bytes" in said
    assert not (tmp_path / "out").exists()
    assert run(["compile", str(path), "-o", str(tmp_path / "out"), "--max-bytes", "24"]) == 0


def test_of_other_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = relu(tmp_path)
    for command in (["run", path], ["plan", path], ["cost", path, "--machine", "tpu-like"]):
        refused("too-large", capsys, *command, "--max-bytes", "23")


def test_constants_altogether(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", folded(6))
    load(path, max_bytes=100_000)
    with pytest.raises(TilewrightError, match="constants take") as caught:
        load(path, max_bytes=2000)
    assert caught.value.code == "too-large"


def test_the_default_is_of_this_machine(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", declared(limits.default_max_bytes() // 4 + 1))
    with pytest.raises(TilewrightError) as caught:
        load(path)
    assert caught.value.code == "too-large"


def test_more_elements_than_an_int_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", declared(1 << 31))
    with pytest.raises(TilewrightError, match="elements") as caught:
        compile(path, Options(max_bytes=1 << 40))
    assert caught.value.code == "too-large"


def test_too_many_axes(tmp_path: Path) -> None:
    made = alone("ConstantOfShape", "s", {"s": ints(*([1] * (limits.RANK_LIMIT + 1)))})
    for built in (declared(*([1] * (limits.RANK_LIMIT + 1))), made):
        with pytest.raises(TilewrightError, match="axes") as caught:
            load(write(tmp_path / "m.onnx", built))
        assert caught.value.code == "too-large"
    load(write(tmp_path / "m.onnx", declared(*([1] * limits.RANK_LIMIT))))


def test_nodes_of_functions_and_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NODE_LIMIT", 100)
    for built in (doubling(10), loop(step(node("Relu", "s0", "s1")), trips=1000)):
        with pytest.raises(TilewrightError, match="more than 100 nodes") as caught:
            load(write(tmp_path / "m.onnx", built))
        assert caught.value.code == "too-large"


def test_nodes_of_the_file_are_not_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NODE_LIMIT", 5)
    nodes = [node("Relu", f"t{i}" if i else "x", f"t{i + 1}") for i in range(20)]
    path = write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["t20"], constants={"c": np.ones(3)}))
    assert len(load(path).nodes) == 20
