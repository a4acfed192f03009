"""error[deadlock]: a program in which everybody waits and nothing is going to happen."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused
from sim.small_programs import small_program


def test_deadlock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = small_program(tmp_path, "ends", "END=sleep_forever")
    said = refused("deadlock", capsys, "sim", program, "--platform", "siracusa")
    assert "'ends.elf' waits forever" in said
    assert "fc: asleep at 0x1c01" in said
    assert "in sleep_forever (ends.c:" in said
