"""error[cycle-limit]: a program that does not end in time, and where its cores are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import refused, relu
from sim.arm_programs import arm_program
from sim.small_programs import small_program
from tilewright.cli.app import run


def test_cycle_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = small_program(tmp_path, "ends", "END=spin_forever")
    said = refused("cycle-limit", capsys, "sim", program, "--platform", "siracusa", "--max-cycles", "5000")
    assert "'ends.elf' has not ended after 5,000 cycles" in said
    assert "fc: 0x1c01" in said
    assert "in spin_forever" in said
    assert "(ends.c:" in said


def test_on_an_emulated_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = arm_program(tmp_path, "spin_forever")
    said = refused("cycle-limit", capsys, "sim", program, "--platform", "cortex-m4", "--max-cycles", "100000")
    assert "'spin_forever.elf' has not ended after 100,000 instructions" in said
    assert "in spin_forever" in said
    assert "(tries.c:" in said
    assert "--max-cycles" in said


def test_instructions_are_counted_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is a number that is enough, and one less is not, however fast this computer is."""
    program = str(arm_program(tmp_path, "say_hello"))

    def enough(limit: int) -> bool:
        return run(["sim", program, "--platform", "cortex-m4", "--max-cycles", str(limit)]) == 0

    few, many = 1, 1 << 10
    assert enough(many)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    assert not enough(few)
    assert enough(many)
    capsys.readouterr()


@pytest.mark.parametrize("platform", ["siracusa", "cortex-m4"])
def test_of_a_network(platform: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("cycle-limit", capsys, "run", relu(tmp_path), "--platform", platform, "--max-cycles", "100")
    assert "'network' has not ended after 100" in said


def test_where_nobody_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("bad-argument", capsys, "run", relu(tmp_path), "--max-cycles", "100")
    assert "--max-cycles is not for programs that run on this computer" in said
    assert "--timeout" in said


def test_of_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    model = Path(__file__).parents[2] / "examples" / "models" / "tiny_cnn_int8.onnx"
    assert run(["test", str(model), "--platform", "cortex-m4", "--max-cycles", "100", "--json"]) == 1
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["status"] == "error"
    assert case["detail"].startswith("error[cycle-limit]: ")
