"""error[no-simulator]: a program for a platform that is not simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_no_simulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("no-simulator", capsys, "sim", tmp_path / "program.elf", "--platform", "generic")
    assert "there is no simulator for platform 'generic'" in said
    assert "choose one with a simulator: mempool, mempool-1024, mempool-16, mempool-ita, siracusa, snitch" in said


def test_not_in_qemu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("no-simulator", capsys, "run", relu(tmp_path), "--simulator", "qemu")
    assert "QEMU runs no programs of platform 'generic'" in said


def test_only_in_qemu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(
        "no-simulator", capsys, "run", relu(tmp_path), "--platform", "cortex-m4", "--simulator", "tilewright"
    )
    assert "there is no simulator for platform 'cortex-m4'" in said


@pytest.mark.parametrize("platform", ["generic", "scratchpad", "cortex-m4"])
def test_not_measured(platform: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("no-simulator", capsys, "plan", relu(tmp_path), "--platform", platform, "--measure", "2")
    assert f"plans for platform '{platform}' cannot be measured" in said
    assert "leave --measure away, or choose another platform: mempool, mempool-1024, mempool-16, mempool-ita, " in said
