"""The calibration programs, with the timing of the simulator that their figures were measured in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sim.device_programs import platform, with_bank_conflicts
from sim.faults import compiler
from support import cases_folder
from tilewright.sim.simulator import Simulator

pytestmark = pytest.mark.cases

TIMING = "gvsoc"
MOST_CYCLES = 5_000_000
# The command of the cases' README.
FLAGS = (
    *("-march=rv32imc_zicsr", "-mabi=ilp32", "-O2", "-g", "-ffreestanding", "-fno-builtin", "-nostdlib"),
    *("-nostartfiles", "-fno-tree-loop-distribute-patterns"),
)
CONTENTION = ("30lw", "dot1024 xpulp/core", "barrier")


def folder() -> Path:
    top = cases_folder()
    assert top is not None
    return top / "siracusa_calibration"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs."""
    where, built = folder(), tmp_path_factory.mktemp("calibration")
    for name in ("bench", "lat"):
        sources = ["-T", str(where / "link.ld"), str(where / "crt0.S"), str(where / f"{name}.c")]
        output = ["-o", str(built / f"{name}.elf"), "-lgcc", "-Wl,--no-warn-rwx-segments"]
        subprocess.run([compiler(), *FLAGS, *sources, *output], check=True)
    return built


def printed(program: Path, conflicts: bool = False) -> list[str]:
    machine = with_bank_conflicts(platform(), TIMING) if conflicts else platform()
    simulator = Simulator(machine, TIMING)
    simulator.load(program)
    assert simulator.run(MOST_CYCLES) == "exited"
    assert simulator.exit_code == 0
    return simulator.output.decode().splitlines()


def expected(name: str) -> list[str]:
    return (folder() / f"{name}.expected.txt").read_text().splitlines()


def pairs(ours: list[str], theirs: list[str]) -> list[tuple[str, list[int], list[int]]]:
    """For each line its text without figures, our figures and theirs; both programs must print the same lines."""
    result: list[tuple[str, list[int], list[int]]] = []
    for our, their in zip(ours, theirs, strict=True):
        text, figures = split(their)
        assert split(our)[0] == text
        result.append((text, split(our)[1], figures))
    return result


def split(line: str) -> tuple[str, list[int]]:
    """What a line says, and the cycles that it says: the figures behind `=` or, in lists of all cores, behind `:`."""
    if ":" in line:
        text, figures = line.split(":")
        return text, [int(figure) for figure in figures.split()]
    parts = re.split(r"(?<==)(-?\d+)", line)
    return "".join(parts[::2]), [int(figure) for figure in parts[1::2]]


def close(ours: list[int], theirs: list[int], relative: float, cycles: int) -> bool:
    allowed = [max(relative * their, cycles) for their in theirs]
    return all(abs(our - their) <= most for our, their, most in zip(ours, theirs, allowed, strict=True))


FUNCTIONAL = ("check", " r=", "_bad", "FC up")


def test_every_warm_line_is_as_measured(programs: Path) -> None:
    wrong: list[str] = []
    for text, ours, theirs in pairs(printed(programs / "bench.elf"), expected("bench")):
        if text.startswith("DMA") or text == " both_done=":
            good = close(ours, theirs, 0, 2)
        elif any(mark in text for mark in FUNCTIONAL):
            good = ours == theirs
        elif "cold=" in text:
            good = close(ours[1:], theirs[1:], 0.03, 3)
        else:
            good = close(ours, theirs, 0.03, 3)
        if not good:
            wrong.append(f"{text} {ours}, measured {theirs}")
    assert wrong == []


def test_contention_is_as_measured(programs: Path) -> None:
    wrong: list[str] = []
    lines = pairs(printed(programs / "bench.elf", conflicts=True), expected("bench_bank_conflicts"))
    for text, ours, theirs in lines:
        contention = text.startswith(CONTENTION)
        if contention and not close(ours, theirs, 0.05, 0):
            wrong.append(f"{text} {ours}, measured {theirs}")
        if any(mark in text for mark in FUNCTIONAL):
            assert ours == theirs
    assert wrong == []


def test_latencies_are_as_measured(programs: Path) -> None:
    for text, ours, theirs in pairs(printed(programs / "lat.elf"), expected("lat")):
        assert close(ours, theirs, 0, 3), text


def test_runs_are_deterministic(programs: Path) -> None:
    assert printed(programs / "bench.elf", conflicts=True) == printed(programs / "bench.elf", conflicts=True)
