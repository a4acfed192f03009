"""What is printed where it cannot be: full devices, readers that have gone, encodings without a letter; and names that
would steer a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command_line import refused, relu
from onnx_models import model, node, value, write
from tilewright.cli import app as command_line
from tilewright.cli.app import run
from tilewright.cli.console import results, shown
from tilewright.errors import TilewrightError
from tilewright.machine.library import MACHINES

EVIL = "a\x1b]0;owned\x07\x1b[2Jb\x9bc\u202e[/red][bold]"
MAIN = [sys.executable, "-m", "tilewright"]


def of_process(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MAIN, *map(str, arguments)], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize("arguments", ["platforms", "--version", "no-such-command --json"])
def test_a_full_device(arguments: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m tilewright {arguments} >/dev/full",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("error[") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", ["platforms", "no-such-command --json"])
def test_a_reader_that_has_gone(arguments: str) -> None:
    read, written = os.pipe()
    os.close(read)
    done = subprocess.run([*MAIN, *arguments.split()], stdout=written, stderr=subprocess.PIPE, text=True, check=False)
    os.close(written)
    assert done.returncode == (2 if "no-such" in arguments else 141)
    assert done.stderr.count("error[") == (1 if "no-such" in arguments else 0)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("redirected", "status"), [("doctor >&- 2>&-", 0), ("no-such-command 2>/dev/full", 2)])
def test_closed_streams(redirected: str, status: int) -> None:
    done = subprocess.run(
        f"{sys.executable} -m tilewright {redirected}", shell=True, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def test_letters_that_an_encoding_does_not_have(tmp_path: Path) -> None:
    path = write(tmp_path / "größe.onnx", model([node("Relu", "x", "y", name="schön")], [value("x", (2, 3))], ["y"]))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = of_process("compile", path, "-o", tmp_path / "größe", env=environment)
    assert done.returncode == 0, done.stderr
    assert "sch\\xf6n" in done.stdout
    done = of_process("compile", tmp_path / "größer.onnx", env=environment)
    assert done.returncode == 2
    assert "gr\\xf6\\xdfer.onnx" in done.stderr


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    path = relu(tmp_path).rename(tmp_path / os.fsdecode(b"no\xfftext.onnx"))
    folder = tmp_path / os.fsdecode(b"c\xff")
    done = of_process("compile", path, "-o", folder)
    assert done.returncode == 0, done.stderr
    assert "c\\udcff" in done.stdout
    assert run(["run", str(path), "--json", "-o", str(folder)]) == 0
    assert run(["cost", str(path), "--machine", "gemm-array", "--html", str(tmp_path / os.fsdecode(b"\xff.html"))]) == 0
    assert run(["compile", str(path), "-o", str(folder), "--dump-stages", str(folder)]) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain [x] größe", "plain [x] größe"),
        ("two\nlines", "two\nlines"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b2J\x7f\r\t", "\\x9b2J\\x7f\\r\\t"),
        ("\u202e\ud800\u2028", "\\u202e\\ud800\\u2028"),
    ],
)
def test_shown(text: str, expected: str) -> None:
    assert shown(text) == expected


def assert_harmless(text: str) -> None:
    assert not {c for c in text if not c.isprintable()} - {"\n"}, ascii(text)


def test_names_of_a_network_do_not_steer_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node("Relu", EVIL, "t", name=EVIL), node("Sigmoid", "t", EVIL + "y", name=EVIL + "2")]
    path = write(tmp_path / f"{EVIL.replace('/', '')}.onnx", model(nodes, [value(EVIL, (2, 3))], [EVIL + "y"]))
    np.savez(path.with_suffix(".npz"), input_0=np.zeros((2, 3), np.float32), output_0=np.ones((2, 3), np.float32))
    outputs: dict[str, tuple[int, str]] = {}
    for command in ("compile", "plan", "run", "test", "cost", "map"):
        more = {"compile": ["-o", str(tmp_path / "c")], "cost": ["-m", "gemm-array"], "map": ["-m", "gemm-array"]}
        status = run([command, str(path), *more.get(command, [])])
        printed = capsys.readouterr()
        outputs[command] = status, printed.out + printed.err
    for command, (status, text) in outputs.items():
        assert status == (1 if command == "test" else 0), text
        assert_harmless(text)
    assert "\\x1b" in outputs["plan"][1]
    assert_harmless(refused("unknown-layer", capsys, "map", path, "-m", "gemm-array", "--layer", EVIL + "3"))


def test_names_of_a_machine_do_not_steer_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (MACHINES / "gemm-array.yaml").read_text(encoding="utf-8")
    name = '"' + "".join(c if c.isascii() and c.isprintable() else f"\\u{ord(c):04x}" for c in EVIL) + '"'
    (tmp_path / "m.yaml").write_text(text.replace("name: gemm-array", f"name: {name}"), encoding="utf-8")
    arguments = ["map", "O[m][n] += A[m][k] * B[k][n]", "--sizes", "M=8,N=8,K=8", "--machine", str(tmp_path / "m.yaml")]
    assert run([*arguments, "--why"]) == 0
    printed = capsys.readouterr()
    assert "\\x1b" in printed.out
    assert_harmless(printed.out + printed.err)
    (tmp_path / "bad.yaml").write_text(f"kind: {name}", encoding="utf-8")
    assert_harmless(refused("bad-machine", capsys, *arguments[:-1], tmp_path / "bad.yaml"))


def test_colours_are_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In a terminal as well, where rich writes escape sequences of its own."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    results().print(EVIL)
    text = capsys.readouterr().out
    assert "\x1b]0;" not in text
    assert "\x1b[2J" not in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == shown(EVIL) + "\n"


def test_lines_of_an_error_stay_below_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise TilewrightError("bad-model", "one\nerror[fake]: two", reasons=["three\nfour"], help="five")

    monkeypatch.setattr(command_line, "app", fail)
    assert run(["ops"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error[bad-model]: one",
        "  error[fake]: two",
        "  three",
        "  four",
        "  help: five",
    ]
