"""error[unusable-gvsoc]: there is a GVSoC, but it cannot run our programs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from command_line import refused, relu
from sim.test_gvsoc import PLAYS, script

NO_MODULE = """#!/bin/sh
echo "Traceback (most recent call last):" >&2
echo "ModuleNotFoundError: No module named 'prettytable'" >&2
exit 1
"""
# What a core does whose register f5 is its register x5: fmv.w.x f5, x0 sets x5 to zero.
ONE_REGISTER_FILE = PLAYS.replace(
    'print("something',
    """code = open(given["binary"], "rb").read()
move, same = (0xF00002D3).to_bytes(4, "little"), (0x00000293).to_bytes(4, "little")
assert code.count(move) == 1
given["binary"] = "changed.elf"
open(given["binary"], "wb").write(code.replace(move, same))
print("something""",
)


def test_registers_that_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GVSOC", str(script(tmp_path, ONE_REGISTER_FILE.replace("{python}", sys.executable))))
    text = refused("unusable-gvsoc", capsys, "run", relu(tmp_path), "--platform", "siracusa", "--simulator", "gvsoc")
    assert "integer and floating-point registers of the cluster's cores are the same" in text
    assert "help: build GVSoC with gvsoc-pulp of 2026-06-17 or later" in text


def test_a_python_without_its_packages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GVSOC", str(script(tmp_path, NO_MODULE)))
    text = refused("unusable-gvsoc", capsys, "run", relu(tmp_path), "--platform", "siracusa", "--simulator", "gvsoc")
    assert "its Python has no module 'prettytable'" in text
    assert "requirements.txt" in text
