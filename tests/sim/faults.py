"""Small programs that do something wrong, each with a twin that does it right: how they are built and run."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tilewright.core.machine import SimulatedMachine
from tilewright.core.platform import load_platform
from tilewright.sim import _native
from tilewright.sim.findings import Finding, findings_of
from tilewright.sim.program import load_program
from tilewright.sim.stacks import stack_ends

PROGRAMS = Path(__file__).parent / "programs" / "faults"
TOOLS = "riscv64-unknown-elf-"
FLAGS = (
    *("-march=rv32imfc_zicsr", "-mabi=ilp32f", "-O2", "-g", "-std=c11", "-Wall", "-Wextra", "-Werror"),
    *("-ffreestanding", "-nostdlib", "-nostartfiles", "-fno-tree-loop-distribute-patterns"),
    "-Wl,--no-warn-rwx-segments",
)
MOST_CYCLES = 2_000_000


def tool(name: str) -> str:
    found = shutil.which(TOOLS + name)
    if found is None:
        pytest.fail(f"{TOOLS}{name} is missing: install Debian's package gcc-riscv64-unknown-elf")
    return found


@dataclass(frozen=True)
class Run:
    """How a program ended."""

    stop: str
    exit_code: int
    cycles: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if not each.warning)


def built(name: str, faulty: bool, folder: Path, cores: int = 2) -> Path:
    """The ELF file of a program, or of its twin."""
    program = folder / f"{name}.{int(faulty)}.elf"
    sources = [str(PROGRAMS / each) for each in ("start.S", "main.c", f"{name}.c")]
    defines = [f"-DFAULTY={int(faulty)}", f"-DCORES={cores}"]
    command = [tool("gcc"), *FLAGS, *defines, "-T", str(PROGRAMS / "link.ld"), *sources, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


@cache
def description(timing: str) -> SimulatedMachine:
    return load_platform("siracusa").machines[timing]


def ran(path: Path, timing: str = "rtl", checks: bool = True) -> Run:
    program, described = load_program(path), description(timing)
    machine = _machine(described)
    machine.observe_checks(checks)
    for segment in program.segments:
        machine.write(segment.address, segment.data)
    for hart, low in stack_ends(program, described).items():
        machine.set_stack(hart, low)
    machine.start(described.first_hart(described.starts), program.entry, 0)
    stop = machine.run(MOST_CYCLES)
    return Run(stop, machine.exit_code, machine.now, findings_of(machine, program, described.hart_names))


def marked(source: str, mark: str) -> frozenset[str]:
    """FILE:LINE of all lines with a mark in a comment."""
    lines = (PROGRAMS / source).read_text().splitlines()
    return frozenset(f"{source}:{number}" for number, line in enumerate(lines, 1) if f"/* {mark} */" in line)


def _machine(described: SimulatedMachine) -> _native.Machine:
    machine = _native.Machine()
    for memory in described.memories.values():
        if memory.base is None:
            machine.add_outer_memory(memory.name, memory.size, memory.fill)
        else:
            machine.add_memory(memory.name, memory.base, memory.size, memory.banks, memory.executable)
    for group in described.harts.values():
        numbers = {
            "count": group.count,
            "first_id": group.first_id,
            "near_banks": int(group.near_banks),
            "early_counters": int(group.early_counters),
            "clock_numerator": group.clock[0],
            "clock_denominator": group.clock[1],
        }
        machine.add_harts(group.name, group.extensions, numbers, group.pipeline, group.fetch, group.cycles, group.near)
    for alias in described.aliases:
        machine.add_alias(alias.memory, alias.base, alias.size, alias.test_and_set, alias.harts)
    for device in described.devices.values():
        machine.add_device(device.kind, device.name, device.base, device.size, device.settings)
    for window in described.windows:
        machine.add_window(window.name, window.device, window.base, window.size, window.offset)
    return machine
