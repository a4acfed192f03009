"""error[time-limit]: a program takes too much time of this computer, wherever it runs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from command_line import refused, relu
from sim.arm_programs import arm_program
from sim.small_programs import small_program
from tilewright.errors import TilewrightError
from tilewright.sim import run_on_host
from tilewright.sim.limits import Limits

SHORT = ("--timeout", "0.3")


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_on_a_simulated_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = small_program(tmp_path, "ends", "END=spin_forever")
    said = refused("time-limit", capsys, "sim", program, "--platform", "siracusa", *SHORT)
    assert "'ends.elf' has not ended after 0.3 s and was stopped" in said
    assert "in spin_forever" in said
    assert "--timeout" in said


@pytest.mark.parametrize("tries", ["spin_forever", "sleep_forever"])
def test_on_an_emulated_board(tries: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("time-limit", capsys, "sim", arm_program(tmp_path, tries), "--platform", "cortex-m4", *SHORT)
    assert f"'{tries}.elf' has not ended after 0.3 s and was stopped" in said


@pytest.mark.parametrize("text", ["exec sleep 50", "sleep 50 & wait", "exec >&- 2>&-; exec sleep 50"])
def test_on_this_computer(text: str, tmp_path: Path) -> None:
    """Also where it started others, and where it closed its output."""
    with pytest.raises(TilewrightError, match=r"has not ended after 0\.1 s") as caught:
        run_on_host(script(tmp_path / "network", text), [], [], limits=Limits(seconds=0.1))
    assert caught.value.code == "time-limit"


def test_in_gvsoc(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVSOC", str(script(tmp_path / "gvsoc", "sleep 50")))
    program = small_program(tmp_path, "hello", "STATUS=0")
    refused("time-limit", capsys, "sim", program, "--platform", "siracusa", "--simulator", "gvsoc", *SHORT)


def test_of_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("time-limit", capsys, "run", relu(tmp_path), "--repeat", "1000000", "--timeout", "0.001")
    assert "'network' has not ended" in said


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_what_is_no_time(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("bad-argument", capsys, "sim", "program.elf", "--platform", "siracusa", "--timeout", text)
    assert "is not a number of seconds above 0" in said
