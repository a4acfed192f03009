"""The commands from end to end: what they print, write and return."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright
from command_line import relu
from onnx_models import model, node, value, write
from tilewright.cli.app import COMMANDS, run


@pytest.fixture
def relu_case(tmp_path: Path) -> Path:
    """A network with arrays beside it."""
    path = relu(tmp_path)
    x = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
    np.savez(tmp_path / "relu.npz", input_0=x, output_0=np.maximum(x, 0))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("arguments", [["--help"], [], *([command, "--help"] for command in COMMANDS)])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert "Usage: tilewright" in text
    assert len(text.splitlines()) > 8


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"tilewright {tilewright.__version__}\n"


def test_compile_writes_a_project(relu_case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", str(relu_case), "-o", str(tmp_path / "c"), "--dump-stages", str(tmp_path / "stages")]) == 0
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert {"network.c", "network.h", "main.c", "Makefile", "CMakeLists.txt", "report.html"} <= names
    assert any((tmp_path / "stages").glob("00_*.onnx"))
    printed = capsys.readouterr().out
    assert "loop nest" in printed
    assert "arena" in printed


def test_compile_is_deterministic_and_names_what_it_is_told(relu_case: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        assert run(["compile", str(relu_case), "-o", str(tmp_path / folder), "--name", "mine", "--no-report"]) == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert b"void mine_run(" in (tmp_path / "one" / "mine.h").read_bytes()
    assert not (tmp_path / "one" / "report.html").exists()


def test_a_failing_compile_leaves_the_folder_as_it_was(relu_case: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    assert run(["compile", str(relu_case), "-o", str(folder)]) == 0
    (folder / "notes.txt").write_text("mine")
    before = contents(folder)
    broken = write(tmp_path / "broken.onnx", model([node("NoSuch", "x", "y")], [value("x", (2, 3))], ["y"]))
    assert run(["compile", str(broken), "-o", str(folder)]) == 2
    assert contents(folder) == before


def test_an_interrupted_compile_leaves_the_folder_as_it_was(
    relu_case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "c"
    assert run(["compile", str(relu_case), "-o", str(folder)]) == 0
    before = contents(folder)

    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("tilewright.report.render_report", interrupt)
    assert run(["compile", str(relu_case), "-o", str(folder)]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert contents(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "relu.npz", "relu.onnx"]


def test_compile_for_machines(relu_case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compile", str(relu_case), "-o", str(tmp_path / "c"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["inputs"] == [{"name": "x", "type": "float32[2,3]"}]
    assert summary["layers"][0]["op"] == "Relu"
    assert summary["output"] == str(tmp_path / "c")


def test_run_feeds_noise_where_no_inputs_are_given(relu_case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(relu_case)]) == 0
    assert "not compared" in capsys.readouterr().out


def test_run_compares(relu_case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = str(relu_case.with_suffix(".npz"))
    results = tmp_path / "results.npz"
    command = [
        "run",
        str(relu_case),
        "--inputs",
        arrays,
        "--expected",
        arrays,
        "--outputs",
        str(results),
        "--repeat",
        "2",
    ]
    assert run([*command, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["right"] is True
    assert summary["nanoseconds"] >= 0
    with np.load(results) as found:
        assert found["output_0"].tolist() == [[0, 2, 0], [4, 0, 6]]
    np.save(tmp_path / "other.npy", np.ones((2, 3), np.float32))
    assert run(["run", str(relu_case), "--inputs", arrays, "--expected", str(tmp_path / "other.npy")]) == 1
    assert "6 of 6 wrong" in capsys.readouterr().out


def test_test_prints_a_table_and_fails_where_a_case_does(
    relu_case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["test", str(tmp_path)]) == 0
    assert "1 pass of 1 cases" in capsys.readouterr().out
    relu(tmp_path, "wrong.onnx")
    x = np.ones((2, 3), np.float32)
    np.savez(tmp_path / "wrong.npz", input_0=x, output_0=-x)
    assert run(["test", str(tmp_path), "--json", "-j", "1"]) == 1
    cases = json.loads(capsys.readouterr().out)["cases"]
    assert {found["name"]: found["status"] for found in cases} == {"relu": "pass", "wrong": "fail"}
    assert relu_case.is_file()


@pytest.mark.parametrize("command", ["ops", "platforms", "doctor"])
def test_looking_around(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command]) == 0
    assert capsys.readouterr().out
    assert run([command, "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_ctrl_c_in_the_real_command(relu_case: Path, tmp_path: Path) -> None:
    """The whole process: interrupted while a case runs, it ends at once, with one line and status 130."""
    slow = tmp_path / "cc"
    slow.write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\nexec sleep 20\n")
    slow.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", "run", str(relu_case), "--cc", str(slow)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Started in the background, this test has interrupts switched off, and would hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (tmp_path / "started").exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, printed = process.communicate(timeout=15)
    assert process.returncode == 130
    assert printed == "interrupted; nothing was left half-written\n"


def test_run_builds_the_files_of_the_project_and_no_others(relu_case: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "foreign.c").write_text("#error foreign\n")
    (folder / "foreign.S").write_text(".error\n")
    assert run(["run", str(relu_case), "-o", str(folder)]) == 0
    assert (folder / "foreign.c").exists()
    assert (folder / "network").is_file()


def test_a_new_project_takes_the_place_of_the_old_one(relu_case: Path, tmp_path: Path) -> None:
    """Files that it lacks go, so that nothing of the old one is left beside it."""
    folder = tmp_path / "c"
    assert run(["compile", str(relu_case), "-o", str(folder)]) == 0
    assert (folder / "report.html").exists()
    assert run(["compile", str(relu_case), "-o", str(folder), "--no-report"]) == 0
    assert not (folder / "report.html").exists()
    assert (folder / "network.c").exists()


def test_a_network_without_elements_takes_no_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", (0, 3))], ["y"]))
    assert run(["compile", str(path), "-p", "siracusa", "-o", str(tmp_path / "out"), "--no-report"]) == 0
    assert "\nweights 0 bytes; " in capsys.readouterr().out
