"""`tilewright diff` from end to end: silent where nothing is wrong, and a reproducer where a kernel is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import refused
from onnx_models import model, node, value, write
from tilewright.cli.app import run

KERNEL = """/* ---
op: Neg
types: {X: float32, Y: float32}
--- */
#include "tilewright_kernel.h"

static void neg_wrong(const float *X, float *Y, int SIZE) {
    for (int i = 0; i < SIZE; i++)
        Y[i] = i == 4 ? X[i] : -X[i];
}
"""


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """A product, sums of it, and a change of sign."""
    weights = {"w": np.arange(12, dtype=np.float32).reshape(4, 3) - 5}
    nodes = [
        node("MatMul", "x w", "product", name="first"),
        node("CumSum", "product axis", "sums", name="second"),
        node("Neg", "sums", "y", name="third"),
    ]
    constants = {**weights, "axis": np.array(1, np.int64)}
    return write(tmp_path / "three.onnx", model(nodes, [value("x", (2, 4))], ["y"], constants=constants))


def diff(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    status = run(["diff", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_nothing_is_said_where_nothing_is_wrong(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, printed = diff(capsys, network)
    assert status == 0, printed
    assert "no layer differs by more than rounding" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["three.onnx"]


def test_a_kernel_with_a_mistake(network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "neg_wrong.c").write_text(KERNEL)
    out = tmp_path / "found"
    status, printed = diff(capsys, network, "--kernels", tmp_path / "kernels", "--output", out, "--json")
    assert status == 1, printed
    told = json.loads(printed)
    assert (told["same"], told["model_by"], told["platform"]) == (False, "onnxruntime", "generic")
    (fault,) = told["faults"]
    assert (fault["layer"], fault["between"], fault["wrong"], fault["index"]) == ("third", "program", 1, [1, 1])
    assert fault["got"] == -fault["expected"] != 0
    assert "neg_wrong" in fault["evidence"][0]
    assert (fault["reproducer"]["layers"], fault["reproducer"]["shows"]) == (1, True)
    layers = {row["layer"]: row["program"]["wrong"] for row in told["layers"]}
    assert layers == {"first": 0, "second": 0, "third": 1}
    assert "third" in (out / "diff.html").read_text()
    # The command that it names shows the fault.
    words = fault["reproducer"]["command"].split()
    assert words[:2] == ["tilewright", "run"]
    assert run(words[1:]) == 1
    assert (out / "reproducer" / "command.txt").read_text().split() == words


def test_sizes_that_are_known_later_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node("Relu", "x", "y", name="only")]
    path = write(tmp_path / "open.onnx", model(nodes, [value("x", ("n", 3))], ["y"]))
    said = refused("bad-argument", capsys, "diff", path, "--dim", "n=1..4")
    assert "--dim n=4" in said
