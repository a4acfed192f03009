"""error[bad-argument]: the command line itself is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import refused, relu
from tilewright.cli.app import run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dim", "batch"], "'batch' is not NAME=VALUE"),
        (["--dim", "batch=some"], "'some' is not a whole number"),
        (["--input-type", "=int8"], "'=int8' is not NAME=VALUE"),
        (["--name", "two words"], "not a C identifier"),
        (["--no-such-option"], "--no-such-option"),
        (["--seed", "many"], "'--seed'"),
    ],
)
def test_options(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("bad-argument", capsys, "compile", relu(tmp_path), "-o", tmp_path / "c", *arguments)
    assert said in text
    assert not (tmp_path / "c").exists()


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert "help: tilewright --help" in refused("bad-argument", capsys, "no-such-command")
    assert "help: tilewright compile --help" in refused("bad-argument", capsys, "compile")


def test_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.npz").write_text("no arrays")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 cut short")
    np.savez(tmp_path / "two.npz", a=np.zeros(1), b=np.zeros(1))
    model = relu(tmp_path)
    for name in ("text.npz", "cut.npz", "absent.npz"):
        assert name in refused("bad-argument", capsys, "run", model, "--inputs", tmp_path / name)
    assert "one array" in refused("bad-argument", capsys, "compile", model, "--constant", f"x={tmp_path / 'two.npz'}")


def test_machines_get_the_error_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["platforms", "--json", "--colour"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "bad-argument"
