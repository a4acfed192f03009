"""Small programs for a simulated machine, compiled when a test asks for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sim.faults import FLAGS, PROGRAMS, START, compiler

SMALL = PROGRAMS.parent / "small"


def small_program(
    folder: Path, name: str, *defines: str, on_cores: bool = False, flags: tuple[str, ...] = FLAGS
) -> Path:
    """The ELF file of a program in programs/small; one for cores is called by them, others have a main of their own."""
    program = folder / f"{name}.elf"
    sources = [START, *([PROGRAMS / "main.c"] if on_cores else []), SMALL / f"{name}.c"]
    command = [
        *(compiler(), *flags, f"-I{PROGRAMS}", "-DCORES=2", *(f"-D{each}" for each in defines)),
        *("-T", str(PROGRAMS / "link.ld"), *map(str, sources), "-o", str(program)),
    ]
    subprocess.run(command, check=True)
    return program
