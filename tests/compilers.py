"""The flag matrix: every C compiler at hand with every level, machine and way to contract products into sums."""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

COMPILERS = ("gcc", "clang")
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
CONTRACTIONS = ("-ffp-contract=off", "-ffp-contract=fast")
FEATURES = {
    "": (),
    "haswell": ("avx2", "fma", "bmi2", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "native": (),
}
"""Machines that code is made for, with what the processor must have; the first is the compiler's own choice."""


@dataclass(frozen=True)
class Combination:
    """A compiler with its flags."""

    compiler: str
    flags: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([self.compiler, *self.flags])


@cache
def machines() -> tuple[str, ...]:
    """Those whose code this processor runs."""
    info = Path("/proc/cpuinfo")
    known = {*info.read_text().split()} if info.is_file() else set[str]()
    x86 = platform.machine() == "x86_64"
    return tuple(name for name, needed in FEATURES.items() if not needed or (x86 and {*needed} <= known))


def combinations() -> list[Combination]:
    """All that there are on this computer."""
    return [
        Combination(compiler, (level, *([f"-march={machine}"] if machine else []), contraction))
        for compiler, level, machine, contraction in product(COMPILERS, LEVELS, machines(), CONTRACTIONS)
        if shutil.which(compiler)
    ]
