"""The calibration program of Snitch with timing gvsoc: each figure within 5 % of what GVSoC printed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sim.faults import compiler
from support import cases_folder
from tilewright.sim.simulator import Simulator

pytestmark = pytest.mark.cases

FLAGS = ("-march=rv32imafd_zicsr", "-mabi=ilp32d", "-O2", "-ffreestanding", "-nostdlib", "-nostartfiles")
NUMBER = re.compile(r"(?<==)\d+")


def test_calibration(tmp_path: Path) -> None:
    top = cases_folder()
    assert top is not None
    where = top / "snitch_calibration"
    program = tmp_path / "sn.elf"
    sources = ["-T", str(where / "link.ld"), str(where / "crt0.S"), str(where / "sn.c")]
    options = ["-Wl,--no-warn-rwx-segments", "-o", str(program), "-lgcc"]
    subprocess.run([compiler(), *FLAGS, *sources, *options], check=True)
    simulator = Simulator("snitch", "gvsoc")
    simulator.load(program)
    assert simulator.run(10_000_000) == "exited"
    ours = simulator.output.decode().splitlines()
    theirs = (where / "sn.out").read_text().splitlines()
    assert [NUMBER.sub("", line) for line in ours] == [NUMBER.sub("", line) for line in theirs]
    for mine, line in zip(ours, theirs, strict=True):
        for found, expected in zip(NUMBER.findall(mine), NUMBER.findall(line), strict=True):
            assert int(found) == pytest.approx(int(expected), rel=0.05), (mine, line)
