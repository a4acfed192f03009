"""Runs programs in QEMU, on the board that it emulates for a platform.

With `-icount shift=0` QEMU lets a nanosecond pass with each instruction, so that a timer of the board counts
instructions. Programs read their inputs from files of this computer and write results and times to others.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from tilewright.core.graph import Array, TensorType
from tilewright.core.platform import Platform, Qemu
from tilewright.errors import TilewrightError
from tilewright.sim.marks import GroupProfile

LONGEST = 1800.0
"""Seconds after which a run is taken for one that never ends."""
PROFILE = "board/tilewright_marks.h"
"""Included by force into programs that are to say how long their parts take."""


@dataclass(frozen=True)
class Footprint:
    """Bytes of a program, besides the arena and the weights of its network."""

    code: int
    """Machine code, with that of the program around the network."""
    constants: int
    """All that is only read, weights included."""
    stack: int
    """What the inference took."""


@dataclass(frozen=True)
class QemuRun:
    """What one inference gave."""

    outputs: tuple[Array, ...]
    instructions: int
    footprint: Footprint
    parts: tuple[GroupProfile, ...]
    """Instructions of each step, where the program was built to tell."""


def qemu_of(platform: Platform) -> Qemu:
    """How QEMU runs a platform's programs, or an error where it does not."""
    if platform.qemu is None:
        raise TilewrightError(
            "no-simulator",
            f"QEMU runs no programs of platform '{platform.name}'",
            reasons=["its platform.yaml has no 'qemu', the board there"],
            help="leave --simulator away",
        )
    if shutil.which(platform.qemu.program) is None:
        raise TilewrightError(
            "missing-qemu",
            f"there is no '{platform.qemu.program}' on PATH",
            help="install it (Debian, Ubuntu: apt install qemu-system-arm)",
        )
    return platform.qemu


def profile_flags(marks: Sequence[int]) -> tuple[str, ...]:
    """For the compiler, where a program is to tell when it comes to marks of these numbers."""
    return ("-include", PROFILE, f"-DTW_MARKS={max(marks, default=-1) + 2}")


def simulate_in_qemu(
    executable: Path, platform: Platform, folder: Path, *, timeout: float = LONGEST
) -> tuple[str, int]:
    """Runs a program whose files are in `folder`; what it printed, and its exit status."""
    qemu = qemu_of(platform)
    if not executable.is_file():
        raise TilewrightError("missing-file", f"'{executable}' does not exist")
    command = [qemu.program, "-M", qemu.machine, "-kernel", str(executable.resolve()), "-icount", "shift=0"]
    command += ["-display", "none", "-monitor", "none", "-serial", "stdio"]
    command += ["-semihosting-config", "enable=on,target=native"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired as reason:
        raise TilewrightError("run-failed", f"'{executable.name}' ran longer than {timeout:.0f} s in QEMU") from reason
    return done.stdout + done.stderr, done.returncode


def run_in_qemu(
    executable: Path, inputs: Sequence[Array], outputs: Sequence[TensorType], platform: Platform, marks: Sequence[int]
) -> QemuRun:
    """Feeds arrays to a program and reads its results back; `marks` are those of its parts, where it was built so."""
    _check_ports(inputs, outputs, platform)
    with tempfile.TemporaryDirectory(prefix="tilewright-qemu-") as name:
        folder = Path(name)
        for index, array in enumerate(inputs):
            (folder / f"in{index:02d}").write_bytes(np.ascontiguousarray(array).tobytes())
        text, status = simulate_in_qemu(executable, platform, folder)
        if status:
            raise TilewrightError(
                "run-failed",
                f"'{executable.name}' ended with status {status} in QEMU",
                reasons=text.splitlines()[-20:],
            )
        arrays = tuple(
            np.frombuffer((folder / f"out{index:02d}").read_bytes(), kind.dtype.numpy).reshape(kind.shape)
            for index, kind in enumerate(outputs)
        )
        counts = np.frombuffer((folder / "counts").read_bytes(), np.uint64).tolist()
    sizes = section_sizes(executable)
    footprint = Footprint(sizes.get(".text", 0), sizes.get(".rodata", 0), counts.pop(STACK))
    tick = 1e9 / qemu_of(platform).timer
    begin, end, *times = (round(time * tick) for time in counts)
    starts = [*(times[mark] for mark in marks), end]
    parts = [GroupProfile(mark, starts[i] - begin, starts[i + 1] - begin) for i, mark in enumerate(marks)]
    return QemuRun(arrays, end - begin, footprint, tuple(parts))


def _check_ports(inputs: Sequence[Array], outputs: Sequence[TensorType], platform: Platform) -> None:
    """An error where the board has no room for what goes in and comes out."""
    memory = platform.memories[platform.home]
    need = sum(array.nbytes + 15 for array in inputs) + sum(kind.bytes + 15 for kind in outputs)
    if memory.bytes is not None and need > memory.bytes:
        raise TilewrightError(
            "does-not-fit",
            f"inputs and outputs need {need} bytes of {memory.name} on the emulated board, which has {memory.bytes}",
            help="use a smaller network",
        )


STACK = 2
"""The place among the counts of a program of what is no time."""


def section_sizes(executable: Path) -> dict[str, int]:
    """Bytes of the sections of a program."""
    with executable.open("rb") as file:
        return {section.name: section.data_size for section in ELFFile(file).iter_sections()}
