"""`tilewright sim`: what goes where, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sim.small_programs import small_program
from tilewright.cli.app import run

SIM = ("--platform", "siracusa")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("programs")
    return {
        "hello": small_program(folder, "hello", "STATUS=0"),
        "transfers": small_program(folder, "transfers", on_cores=True),
        "endless": small_program(folder, "ends", "END=spin_forever"),
    }


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_only_the_program_prints_to_stdout(
    programs: dict[str, Path], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["sim", str(programs["hello"]), *SIM]) == 0
    printed = capfdbinary.readouterr()
    assert printed.out == b"hello\n"
    assert printed.err == b""
    assert run(["sim", str(programs["hello"]), *SIM, "--stats", "--profile"]) == 0
    printed = capfdbinary.readouterr()
    assert printed.out == b"hello\n"
    assert b"instructions" in printed.err


@pytest.mark.parametrize(("code", "status"), [(0, 0), (1, 1), (77, 77), (255, 255), (256, 255), (0x7FFFFFFF, 255)])
def test_status_of_the_program(code: int, status: int, tmp_path: Path) -> None:
    assert run(["sim", str(small_program(tmp_path, "hello", f"STATUS={code}")), *SIM]) == status


def test_tables(programs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    run(["sim", str(programs["transfers"]), *SIM, "--stats", "--profile"])
    said = plain(capsys.readouterr().err)
    assert re.search(r"[\d,]+ cycles \([\d.]+ us at 360 MHz\), [\d,]+ instructions, timing rtl", said)
    for word in ("cluster 1", "asleep", "bank", "fetch", "mchan", "bytes in 2,048", "transfers 2", "always on", "mW"):
        assert word in said
    assert "cluster: cycles by function" in said
    assert "sum_of_half" in said


def test_timing_by_name(programs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    run(["sim", str(programs["transfers"]), *SIM, "--stats", "--timing", "gvsoc"])
    assert "timing gvsoc" in plain(capsys.readouterr().err)


def test_trace_file(programs: dict[str, Path], tmp_path: Path) -> None:
    run(["sim", str(programs["transfers"]), *SIM, "--trace", str(tmp_path / "t.json")])
    names = {event["name"] for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if "name" in event}
    assert {"main", "program", "sum_of_half", "asleep"} <= names


def test_trace_that_cannot_be_written(
    programs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sim", str(programs["hello"]), *SIM, "--trace", str(tmp_path / "no" / "t.json")]) == 2
    assert capsys.readouterr().err.startswith("error[cannot-write]: ")


def listening() -> None:
    """Whoever started the tests may have told processes to ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupted(programs: dict[str, Path], tmp_path: Path) -> None:
    """Ctrl-C ends a run at once, with the trace so far."""
    trace = tmp_path / "t.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", "sim", str(programs["endless"]), *SIM, "--trace", str(trace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listening,
    )
    while not trace.exists():
        time.sleep(0.05)
        assert process.poll() is None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert "spin_forever" in {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}


def test_progress_line_on_a_terminal(programs: dict[str, Path]) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "tilewright", "sim", str(programs["endless"]), *SIM],
        stderr=theirs,
        stdout=theirs,
        preexec_fn=listening,
    ) as process:
        os.close(theirs)
        said = b""
        while b"MIPS" not in said:
            said += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
    os.close(ours)
    assert re.search(rb"[\d.]+ M cycles, [\d.]+ M instructions, [\d.]+ MIPS", said)


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    run(["sim", "--help"])
    said = plain(capsys.readouterr().out)
    assert "tilewright sim hello.elf --platform siracusa" in said
    for option in ("--timing", "--stats", "--profile", "--trace", "--checks", "--max-cycles"):
        assert option in said
