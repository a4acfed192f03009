"""Runs the command line inside the test's process, and small networks to run it on."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_models import model, node, value, write
from tilewright.cli.app import run


def relu(folder: Path, name: str = "relu.onnx") -> Path:
    """A network of one operator."""
    return write(folder / name, model([node("Relu", "x", "y", name="only")], [value("x", (2, 3))], ["y"]))


def refused(code: str, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Runs a command that must end with status 2 and one error of this code; returns what it printed to stderr."""
    status = run([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert status == 2, printed.err
    assert printed.err.startswith(f"error[{code}]: "), printed.err
    assert printed.err.count("error[") == 1
    assert printed.out == ""
    return printed.err
