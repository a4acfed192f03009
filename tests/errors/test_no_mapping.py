"""error[no-mapping]: nothing fits: which memory is too small for which operand, and by how much."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused
from tilewright.machine.library import MACHINES

PRODUCT = ["map", "O[m][n] += A[m][k] * B[k][n]", "--sizes", "M=64,N=64,K=64"]


def smaller(tmp_path: Path, old: str, new: str) -> Path:
    text = (MACHINES / "tpu-like.yaml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_outermost_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = smaller(tmp_path, "bits: 10000000000", "bits: 90000")
    text = refused("no-mapping", capsys, *PRODUCT, "--machine", machine)
    assert "memory 'dram' is 8304 bits too small for O and A and B" in text
    assert "A needs 32768 of 90000 bits" in text


def test_innermost_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = smaller(tmp_path, "bits: 1024", "bits: 4")
    text = refused("no-mapping", capsys, *PRODUCT, "--machine", machine)
    assert "memory 'rf_128B' is 4 bits too small for one element of B" in text


def test_operand_that_no_memory_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    layers = tmp_path / "layers.yaml"
    layers.write_text("layers:\n- {equation: 'O[m] += A[m] * B[m]', sizes: {M: 8}, slots: {B: I3}}\n", encoding="utf-8")
    text = refused("no-mapping", capsys, "cost", layers, "--machine", "tpu-like")
    assert "no memory of 'tpu-like' holds B (operand I3)" in text


def test_limits(capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("no-mapping", capsys, *PRODUCT, "--machine", "tpu-like", "--max-cycles", "10")
    assert "has no mapping on 'tpu-like' within the limits that were given" in text
    assert "cycles, not 10" in text
    limits = ["--max-energy", "5", "--min-utilisation", "1"]
    text = refused("no-mapping", capsys, *PRODUCT, "--machine", "tpu-like", *limits)
    assert "pJ, not 5" in text
    assert "of the units, not 100.0%" in text
