"""error[no-simulator]: a program for a platform that is not simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused


def test_no_simulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("no-simulator", capsys, "sim", tmp_path / "program.elf", "--platform", "generic")
    assert "there is no simulator for platform 'generic'" in said
    assert "choose one with a simulator: siracusa" in said
