"""Programs for x86 processors with AVX2, on any machine: natively where it is one, else through QEMU."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

FLAGS = ("-O3", "-march=haswell")
NATIVE = platform.machine() == "x86_64"
COMPILER = "gcc" if NATIVE else "x86_64-linux-gnu-gcc"
LIBRARIES = "/" if NATIVE else "/usr/x86_64-linux-gnu"


def has_avx2() -> bool:
    info = Path("/proc/cpuinfo")
    return NATIVE and info.is_file() and {"avx2", "fma", "bmi2"} <= {*info.read_text().split()}


def need_x86() -> None:
    """Skips a test where no compiler or emulator for such processors is to be had."""
    wanted = [COMPILER, *([] if has_avx2() else ["qemu-x86_64"])]
    missing = [name for name in wanted if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)} (Debian: apt install gcc-x86-64-linux-gnu qemu-user)")


def runnable(executable: Path) -> Path:
    """The program itself, or a script that runs it in QEMU."""
    if has_avx2():
        return executable
    script = executable.with_suffix(".sh")
    script.write_text(f'#!/bin/sh\nexec qemu-x86_64 -cpu Haswell -L {LIBRARIES} "{executable}" "$@"\n')
    script.chmod(0o755)
    return script
