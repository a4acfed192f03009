"""`tilewright plan`, and what the other commands say of tiled plans."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import refused, relu
from onnx_models import model, node, value, write
from tilewright.cli.app import run

SMALL = ("--platform", "scratchpad", "--l1", "1K", "--cores", "2")


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    nodes = [node("Softmax", "x", "a", name="first", axis=-1), node("Softmax", "a", "y", name="second", axis=0)]
    return write(tmp_path / "m.onnx", model(nodes, [value("x", (16, 32))], ["y"]))


def test_without_tiles(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(chain)]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("first", "second", "output 0", "arena", "proven minimal"))
    assert run(["plan", str(chain), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["layer"] for row in found["layers"]] == ["first", "second"]
    assert found["arena_optimal"] is True


def test_with_tiles(chain: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert run(["plan", str(chain), *SMALL]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("predicted cycles", "L1 bytes", "bound by", "activation peak", "of 1,024"))
    assert "layer by layer" not in printed


def test_text(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(chain), "--text"]) == 0
    assert "%a: arena + 0" in capsys.readouterr().out
    assert run(["plan", str(chain), *SMALL, "--text"]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("residencies", "group 0", "run %a = Softmax(%x)", "load 0 -> ", "store"))


@pytest.mark.parametrize("other", ["--json", "--baseline"])
def test_text_and_nothing_else(other: str, chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(chain), *SMALL, "--text", other]) == 2
    printed = capsys.readouterr()
    # Who asks for JSON gets errors in it, too.
    said = printed.out if other == "--json" else printed.err
    assert "bad-argument" in said
    assert f"--text and {other} print different things" in said


def test_baseline_and_json(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(chain), *SMALL, "--baseline", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["home"] == "L2"
    assert found["cores"] == 2
    assert [name for group in found["groups"] for name in group["layers"]] == ["first", "second"]
    assert found["totals"]["used"]["L1"] <= 1024
    assert found["totals"]["cycles"] <= found["baseline"]["cycles"]
    assert run(["plan", str(chain), *SMALL, "--baseline"]) == 0
    assert "layer by layer" in capsys.readouterr().out


def test_baseline_needs_tiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--baseline" in refused("bad-argument", capsys, "plan", relu(tmp_path), "--baseline")


def test_sizes_and_homes_change_the_plan(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for name, extra in {"small": [], "large": ["--l1", "1M"], "far": ["--home", "L3"]}.items():
        assert run(["plan", str(chain), *SMALL, *extra, "--json"]) == 0
        found[name] = json.loads(capsys.readouterr().out)
    assert found["large"]["totals"]["cycles"] < found["small"]["totals"]["cycles"] < found["far"]["totals"]["cycles"]
    assert found["far"]["home"] == "L3"
    assert found["far"]["totals"]["used"]["L3"] > 0


def test_compile_sums_up_memories(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", str(chain), *SMALL, "-o", str(tmp_path / "c"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["memories"]["L1"] <= 1024
    assert found["predicted_cycles"] > 0
    assert "Predicted timeline" in (tmp_path / "c" / "report.html").read_text()


@pytest.mark.parametrize("dma", ["start", "wait", "random"])
def test_moments_of_the_dma(dma: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relu(tmp_path)
    x = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
    np.savez(tmp_path / "relu.npz", input_0=x, output_0=np.maximum(x, 0))
    assert run(["test", str(tmp_path), *SMALL, "--dma", dma, "--seed", "3", "-j", "1"]) == 0
    assert "1 pass of 1 cases" in capsys.readouterr().out
