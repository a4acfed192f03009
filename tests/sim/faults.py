"""Small programs that do something wrong, each with a twin that does it right: how they are built and run."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilewright.machine.target import load_platform
from tilewright.sim.findings import Finding
from tilewright.sim.simulator import Look, Simulator

PROGRAMS = Path(__file__).parent / "programs" / "faults"
START = load_platform("siracusa").folder / "runtime" / "start.S"
"""The entry that compiled networks have."""
COMPILER = "riscv64-unknown-elf-gcc"
FLAGS = (
    *("-march=rv32imfc_zicsr", "-mabi=ilp32f", "-O2", "-g", "-std=c11", "-Wall", "-Wextra", "-Werror"),
    *("-ffreestanding", "-nostdlib", "-nostartfiles", "-fno-tree-loop-distribute-patterns"),
    "-Wl,--no-warn-rwx-segments",
)
MOST_CYCLES = 2_000_000


def compiler() -> str:
    found = shutil.which(COMPILER)
    if found is None:
        pytest.fail(f"{COMPILER} is missing: install Debian's package gcc-riscv64-unknown-elf")
    return found


@dataclass(frozen=True)
class Run:
    """How a program ended."""

    stop: str
    exit_code: int
    cycles: int
    findings: tuple[Finding, ...]


def built(name: str, faulty: bool, folder: Path, cores: int = 2) -> Path:
    """The ELF file of a program, or of its twin."""
    program = folder / f"{name}.{int(faulty)}.elf"
    sources = [str(path) for path in (START, PROGRAMS / "main.c", PROGRAMS / f"{name}.c")]
    defines = [f"-DFAULTY={int(faulty)}", f"-DCORES={cores}"]
    command = [compiler(), *FLAGS, *defines, "-T", str(PROGRAMS / "link.ld"), *sources, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def ran(program: Path, timing: str = "rtl", checks: bool = True) -> Run:
    simulator = Simulator("siracusa", timing, look=Look(checks=checks))
    simulator.load(program)
    stop = simulator.run(MOST_CYCLES)
    return Run(stop, simulator.exit_code, simulator.cycles, simulator.findings())


def marked(source: str, mark: str) -> frozenset[str]:
    """FILE:LINE of all lines with a mark in a comment."""
    lines = (PROGRAMS / source).read_text().splitlines()
    return frozenset(f"{source}:{number}" for number, line in enumerate(lines, 1) if f"/* {mark} */" in line)
