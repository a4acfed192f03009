"""Programs on this machine get their options as arguments behind the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.sim import EmulatedMachine, run_on_host


@pytest.mark.parametrize(
    ("machine", "repeat", "expected"),
    [
        (None, 0, ""),
        (None, 3, "--repeat 3"),
        (EmulatedMachine(), 0, "--dma wait --seed 0"),
        (EmulatedMachine("random", 7), 2, "--dma random --seed 7 --repeat 2"),
    ],
)
def test_arguments(machine: EmulatedMachine | None, repeat: int, expected: str, tmp_path: Path) -> None:
    program = tmp_path / "network"
    program.write_text(f'#!/bin/sh\necho "$*" > "{tmp_path}/arguments"\necho 1\n')
    program.chmod(0o755)
    run_on_host(program, [], [], machine=machine, repeat=repeat)
    assert (tmp_path / "arguments").read_text().strip() == expected
