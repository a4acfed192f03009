"""`tilewright run --profile`: tables, JSON and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import refused, relu
from onnx_models import model, node, value, write
from tilewright.cli.app import run

CHIP = ("--platform", "siracusa", "--l1", "4096")


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    nodes = [node("Softmax", "x", "a", name="first", axis=-1), node("Softmax", "a", "y", name="second", axis=0)]
    return write(tmp_path / "m.onnx", model(nodes, [value("x", (16, 32))], ["y"]))


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("layers", ("first", "second", "share", "predicted", "ratio")),
        ("tiles", ("input DMA", "waited", "kernel", "output DMA")),
        ("counters", ("instructions", "bank", "fetch")),
    ],
)
def test_tables(
    chain: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    detail: str,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv("COLUMNS", "180")
    assert run(["run", str(chain), *CHIP, "--profile", detail]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)


def test_json_and_report(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "project"
    assert run(["run", str(chain), *CHIP, "--profile", "tiles", "--json", "-o", str(output)]) == 0
    found = json.loads(capsys.readouterr().out)
    groups = found["profile"]["groups"]
    assert sum(group["cycles"] for group in groups) <= found["cycles"]
    assert [name for group in groups for name in group["layers"]] == ["first", "second"]
    assert all(tile["loading"] >= 0 for group in groups for tile in group["tiles"])
    assert "Simulated run" in (output / "report.html").read_text(encoding="utf-8")


def test_needs_a_simulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "siracusa" in refused("no-simulator", capsys, "run", relu(tmp_path), "--profile", "layers")
