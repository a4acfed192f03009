"""error[cycle-limit]: a program that does not end in time, and where its cores are."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused
from sim.small_programs import small_program


def test_cycle_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = small_program(tmp_path, "ends", "END=spin_forever")
    said = refused("cycle-limit", capsys, "sim", program, "--platform", "siracusa", "--max-cycles", "5000")
    assert "'ends.elf' has not ended after 5,000 cycles" in said
    assert "fc: 0x1c01" in said
    assert "in spin_forever" in said
    assert "(ends.c:" in said
