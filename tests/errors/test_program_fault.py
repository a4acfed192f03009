"""error[program-fault]: a program does something that the machine cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused
from sim.small_programs import SMALL, small_program


def test_store_outside_of_all_memories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = small_program(tmp_path, "ends", "END=store_nowhere")
    said = refused("program-fault", capsys, "sim", program, "--platform", "siracusa")
    assert "'ends.elf' was stopped: store outside of all memories" in said
    line = next(n for n, text in enumerate((SMALL / "ends.c").read_text().splitlines(), 1) if "/* here */" in text)
    assert f"(ends.c:{line})" in said
    assert "fc at 0x1c01" in said
    assert "in store_nowhere" in said
    assert "address 0x30000004" in said


def test_illegal_instruction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = small_program(tmp_path, "ends", "END=run_nonsense")
    said = refused("program-fault", capsys, "sim", program, "--platform", "siracusa")
    assert "illegal instruction 0xffffffff" in said
    assert "in run_nonsense (ends.c:" in said
