"""error[output-limit]: a program prints without end, wherever it runs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sim.arm_programs import arm_program
from sim.small_programs import small_program
from tilewright.cli.app import run
from tilewright.errors import TilewrightError
from tilewright.sim import run_on_host
from tilewright.sim.limits import Limits

LIMIT = 5000


def stopped(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str | Path) -> bytes:
    """Runs a program that has to be stopped for what it prints; what came through."""
    status = run(["sim", *map(str, arguments), "--max-output", str(LIMIT)])
    printed = capfdbinary.readouterr()
    assert status == 2
    assert b"printed more than 5,000 bytes and was stopped" in printed.err
    assert b"--max-output" in printed.err
    return printed.out


def test_on_a_simulated_machine(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    program = small_program(tmp_path, "ends", "END=print_forever")
    assert stopped(capfdbinary, program, "--platform", "siracusa") == b"x" * LIMIT


def test_on_an_emulated_board(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Also without an end of line."""
    printed = stopped(capfdbinary, arm_program(tmp_path, "print_forever"), "--platform", "cortex-m4")
    assert printed == (b"0123456789abcdef" * LIMIT)[:LIMIT]


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_in_gvsoc(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GVSOC", str(script(tmp_path / "gvsoc", "exec yes")))
    program = small_program(tmp_path, "hello", "STATUS=0")
    printed = stopped(capfdbinary, program, "--platform", "siracusa", "--simulator", "gvsoc")
    assert printed == b"y\n" * (LIMIT // 2)


@pytest.mark.parametrize("stream", ["1", "2"])
def test_on_this_computer(stream: str, tmp_path: Path) -> None:
    program = script(tmp_path / "network", f"exec yes >&{stream}")
    with pytest.raises(TilewrightError, match="printed more than 5,000 bytes") as caught:
        run_on_host(program, [], [], limits=Limits(output=LIMIT))
    assert caught.value.code == "output-limit"


def test_exactly_as_much_is_right(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    programs = {
        "siracusa": small_program(tmp_path, "hello", "STATUS=0"),
        "cortex-m4": arm_program(tmp_path, "say_hello"),
    }
    for platform, program in programs.items():
        assert run(["sim", str(program), "--platform", platform, "--max-output", "6"]) == 0
        assert run(["sim", str(program), "--platform", platform, "--max-output", "5"]) == 2
        assert capfdbinary.readouterr().out == b"hello\nhello"
