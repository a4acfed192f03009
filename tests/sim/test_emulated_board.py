"""Programs on emulated Cortex-M boards reach nothing of this computer, and end whatever they do."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

import pytest

from command_line import refused
from sim.arm_programs import arm_program
from tilewright.cli.app import run

BOARD = ("--platform", "cortex-m4")
VARIANTS = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m0plus")


@pytest.mark.parametrize("variant", VARIANTS)
def test_prints_over_the_uart(variant: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    program = arm_program(tmp_path, "say_hello", variant=variant)
    assert run(["sim", str(program), "--platform", variant]) == 0
    assert capfdbinary.readouterr() == (b"hello\n", b"")


def test_ends_with_a_status(tmp_path: Path) -> None:
    """One that does not fit is the largest that does, never success."""
    assert run(["sim", str(arm_program(tmp_path, "end_with_status")), *BOARD]) == 255


@pytest.mark.parametrize(
    "tries",
    [
        "open_a_file",
        "run_a_command",
        "print_by_semihosting",
        "exit_by_semihosting",
        "semihosting_with_endless_handlers",
    ],
)
def test_no_semihosting(tries: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither files nor commands of this computer; an old program is told why, and does not hang."""
    place = tmp_path / "outside"
    program = arm_program(tmp_path, tries, f'PLACE="{place}"')
    assert run(["sim", str(program), *BOARD]) == 2
    said = capsys.readouterr().err  # its handler of faults may have printed something meanwhile
    assert said.startswith(f"error[program-fault]: '{tries}.elf' asks for semihosting, which is off")
    assert re.search(r"BKPT 0xAB at 0x[0-9a-f]{8} in semihosting.* \(tries\.c:\d+\)", said)
    assert "UART" in said
    assert not place.exists()


def test_other_breakpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", str(arm_program(tmp_path, "stop_at_a_breakpoint")), *BOARD]) == 2
    assert "came to a breakpoint (BKPT), where nobody debugs it" in capsys.readouterr().err


def test_a_fault_is_told_by_the_program(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["sim", str(arm_program(tmp_path, "fault")), *BOARD]) == 4
    assert capfdbinary.readouterr().out == b"fault with status 00010000\n"


def test_a_lockup_is_told_by_the_emulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("program-fault", capsys, "sim", arm_program(tmp_path, "lock_up"), *BOARD)
    assert "it faulted while it handled a fault (lockup)" in said
    assert "the core is at 0x" in said


def test_only_programs_for_the_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """QEMU itself would load anything."""
    text = tmp_path / "text.elf"
    text.write_text("no program\n")
    assert "it is not an ELF file" in refused("bad-elf", capsys, "sim", text, *BOARD)
    program = arm_program(tmp_path, "say_hello")
    assert "EM_ARM" in refused("bad-elf", capsys, "sim", program, "--platform", "siracusa")


def test_nothing_is_left_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    program = arm_program(tmp_path, "say_hello")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert run(["sim", str(program), *BOARD]) == 0
    assert not list(here.iterdir())
    assert capfdbinary.readouterr().out == b"hello\n"


def test_a_lower_limit_of_the_user_stays(tmp_path: Path) -> None:
    program = arm_program(tmp_path, "say_hello")
    child = os.fork()
    if not child:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 14 << 30))
            status = run(["sim", str(program), *BOARD])
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
