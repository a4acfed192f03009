"""Small programs for an emulated board, compiled when a test asks for them, with the start-up of compiled networks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.codegen.project import runtime_files
from tilewright.machine.target import load_platform

SOURCE = Path(__file__).parent / "programs" / "arm" / "tries.c"


def arm_program(folder: Path, tries: str, *defines: str, variant: str = "cortex-m4") -> Path:
    """The ELF file of a program that tries something."""
    platform = load_platform(variant)
    compiler = shutil.which(platform.build["compiler"])
    if compiler is None:
        pytest.fail("arm-none-eabi-gcc is missing: install Debian's package gcc-arm-none-eabi")
    for name, data in runtime_files("tries", [], platform).items():
        if name.startswith("board/"):
            (folder / "board").mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
    program = folder / f"{tries}.elf"
    flags = [*platform.build["flags"].split(), "-g", "-Iboard", f"-DTRY={tries}", *(f"-D{each}" for each in defines)]
    sources = ["board/start.c", str(SOURCE), "-o", str(program)]
    subprocess.run([compiler, *flags, *sources, *platform.build["link"].split()], cwd=folder, check=True)
    return program
