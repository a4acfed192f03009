"""Runs programs in GVSoC, where this computer has it.

GVSoC takes a program and nothing else. So the inputs of a network are linked into it (`given_files`), and where they
are, the program prints its outputs in hexadecimal and the cycles of the inference.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target
from tilewright.sim.confined import confined
from tilewright.sim.limits import USUAL, Limits, Printed, Sink, refuse_cycles
from tilewright.sim.processes import Running

VARIABLE = "GVSOC"
"""Names the executable where it is not on PATH."""
GVSOC_FLAGS = ("-DTW_GVSOC",)
"""For the compiler: a runtime then does without what GVSoC's model of its chip lacks, and looks for a version of GVSoC
that cannot run it."""
NEWS = 5.0
"""Seconds between two words of progress."""
REMEMBERED = 1 << 16
"""Bytes at the end of what was printed that are looked at."""
Progress = Callable[[str], None]

_OUTPUT = re.compile(r"tw_output (\d+) ([0-9a-f]+)")
_CYCLES = re.compile(r"tw_cycles (\d+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_ONE_REGISTER_FILE = "tw_one_register_file"


class GvsocRun(Struct, frozen=True):
    """What one inference gave."""

    outputs: tuple[Array, ...]
    cycles: int


def find_gvsoc() -> str:
    """The path of GVSoC, or an error that says how to get it."""
    named = os.environ.get(VARIABLE, "")
    found = shutil.which(named or "gvsoc")
    if found is None:
        raise TilewrightError(
            "missing-gvsoc",
            f"{VARIABLE} names '{named}', which is no program" if named else "there is no 'gvsoc' on PATH",
            help=f"build it (github.com/gvsoc/gvsoc) and put it on PATH, or name the program with {VARIABLE}=FILE; "
            "leave --simulator away for the simulator that comes with Tilewright",
        )
    return found


def check_gvsoc(platform: Target) -> None:
    """An error where GVSoC cannot run what is compiled for a platform."""
    if not platform.gvsoc:
        raise TilewrightError(
            "no-simulator",
            f"GVSoC has no machine for platform '{platform.name}'",
            reasons=["its platform.yaml has no 'gvsoc', the name of the machine there"],
            help="leave --simulator away",
        )
    find_gvsoc()
    if platform.timings and platform.home and platform.memories[platform.home].base is None:
        raise TilewrightError(
            "bad-argument",
            f"--simulator gvsoc cannot fill {platform.home}: GVSoC puts programs only where cores have addresses",
            help="choose another --home, or leave --simulator away",
        )


def simulate(
    executable: Path,
    platform: Target,
    limits: Limits = USUAL,
    *,
    sink: Sink,
    progress: Progress = lambda _stage: None,
) -> int:
    """Runs a program, whose output goes to `sink`; its exit status. `progress` hears for how long it has run."""
    check_gvsoc(platform)
    refuse_cycles(limits, "in GVSoC")
    last = bytearray()

    def hear(data: bytes) -> None:
        sink(data)
        last.extend(data)
        del last[:-REMEMBERED]

    with tempfile.TemporaryDirectory(prefix="tilewright-gvsoc-") as name:
        folder = Path(name)
        command = [find_gvsoc(), f"--target={platform.gvsoc}", f"--binary={executable.resolve()}", f"--work-dir={name}"]
        command = confined(folder, [*command, "image", "flash", "run"])
        printed = Printed(executable.name, limits, hear)
        with Running(
            command, executable.name, limits, output=printed.take, folder=folder, environment=_environment(folder)
        ) as running:
            try:
                status = running.finish(_news(limits, progress))
            except TilewrightError as error:
                if error.code == "time-limit":
                    raise _endless(executable, limits, last.decode("utf-8", "replace")) from error
                raise
    _check_version(last.decode("utf-8", "replace"), status)
    return status


def _news(limits: Limits, progress: Progress) -> Callable[[], None]:
    """Tells now and then for how long a program has run."""
    begin = told = time.monotonic()

    def tell() -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= NEWS:
            told = now
            progress(f"GVSoC, for {now - begin:.0f} s, at most {limits.seconds:g}")

    return tell


def _environment(folder: Path) -> dict[str, str]:
    """Variables with a folder for temporary files, and without Tilewright's own Python, whose packages are not those
    that GVSoC's launcher needs."""
    variables = {**os.environ, "TMPDIR": str(folder)}
    if sys.prefix == sys.base_prefix:
        return variables
    own = Path(sys.prefix)
    path = [folder for folder in variables.get("PATH", "").split(os.pathsep) if Path(folder) != own / "bin"]
    if shutil.which("python3", path=os.pathsep.join(path)):
        variables["PATH"] = os.pathsep.join(path)
        if Path(variables.get("VIRTUAL_ENV", "")) == own:
            del variables["VIRTUAL_ENV"]
    return variables


def _endless(executable: Path, limits: Limits, text: str) -> TilewrightError:
    return TilewrightError(
        "time-limit",
        f"'{executable.name}' has not ended after {limits.seconds:g} s in GVSoC",
        reasons=_last_lines(text),
        help="give it more with --timeout SECONDS; a DMA command with lines in L1 never ends there: `run` and `test` "
        "build programs without them, others "
        f"need {' '.join(GVSOC_FLAGS)}; `tilewright sim --timing gvsoc --checks` tells. What only takes long is "
        "simulated faster without --simulator",
    )


def _check_version(text: str, status: int) -> None:
    """An error where what was printed says that this GVSoC cannot run our programs."""
    if status and (module := _NO_MODULE.search(text)):
        raise TilewrightError(
            "unusable-gvsoc",
            f"the launcher of GVSoC does not start: its Python has no module '{module[1]}'",
            reasons=["it takes the first python3 on PATH"],
            help="install what GVSoC's requirements.txt lists for that Python, or name with "
            f"{VARIABLE}=FILE a script that calls GVSoC with another",
        )
    if _ONE_REGISTER_FILE in text:
        raise TilewrightError(
            "unusable-gvsoc",
            "in this GVSoC, integer and floating-point registers of the cluster's cores are the same",
            reasons=["gvsoc-pulp was like this from 2025-05-24 to 2026-06-16"],
            help="build GVSoC with gvsoc-pulp of 2026-06-17 or later",
        )


def _last_lines(text: str) -> list[str]:
    """Of what was printed besides results."""
    return [line for line in text.splitlines() if not _OUTPUT.search(line)][-20:]


def given_files(inputs: Sequence[Array]) -> dict[str, bytes]:
    """A source of the program that holds its inputs."""
    lines = ["/* Generated by Tilewright: inputs that come with the program, which prints its outputs then. */"]
    for index, array in enumerate(inputs):
        values = [str(byte) for byte in np.ascontiguousarray(array).tobytes()] or ["0"]
        rows = [f"    {', '.join(values[i : i + 32])}," for i in range(0, len(values), 32)]
        lines += [f"static const _Alignas(16) unsigned char given_{index}[] = {{", *rows, "};"]
    names = [f"given_{index}" for index in range(len(inputs))]
    lines += ["extern const void *const tw_given[];"]
    lines += [f"const void *const tw_given[] = {{{', '.join([*names, '0'])}}};", ""]
    return {"tilewright_given.c": "\n".join(lines).encode()}


def run_on_gvsoc(
    executable: Path,
    outputs: Sequence[TensorType],
    platform: Target,
    limits: Limits = USUAL,
    *,
    progress: Progress = lambda _stage: None,
) -> GvsocRun:
    """Runs a program that has its inputs, and reads its results from what it prints."""
    raw_text = bytearray()
    status = simulate(executable, platform, limits, sink=raw_text.extend, progress=progress)
    text = raw_text.decode("utf-8", "replace")
    found = [bytearray() for _ in outputs]
    for line in text.splitlines():
        if (printed := _OUTPUT.search(line)) and int(printed[1]) < len(found):
            found[int(printed[1])] += bytes.fromhex(printed[2])
    cycles = _CYCLES.search(text)
    sizes = [kind.size * kind.dtype.bytes for kind in outputs]
    if status or cycles is None or [len(raw) for raw in found] != sizes:
        raise TilewrightError(
            "run-failed",
            f"'{executable.name}' ended with status {status} in GVSoC"
            + ("" if status else ", without having printed all results"),
            reasons=_last_lines(text),
        )
    arrays = tuple(
        np.frombuffer(bytes(raw), kind.dtype.numpy).reshape(kind.shape)
        for raw, kind in zip(found, outputs, strict=True)
    )
    return GvsocRun(arrays, int(cycles[1]))
