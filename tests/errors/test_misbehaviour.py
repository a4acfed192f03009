"""error[misbehaviour]: a program that the checks tell on."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused
from sim.faults import built
from tilewright.cli.app import run

SIM = ("--platform", "siracusa", "--checks")


def test_misbehaviour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("misbehaviour", capsys, "sim", built("read_unwaited", True, tmp_path), *SIM)
    assert "does what it must not do" in said
    assert "race: " in said
    assert "in program" in said
    assert "(read_unwaited.c:" in said
    assert "transfer: DMA " in said


def test_a_correct_program_is_let_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", str(built("correct", False, tmp_path)), *SIM]) != 2
    assert capsys.readouterr().err == ""
