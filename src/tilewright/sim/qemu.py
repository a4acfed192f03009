"""Runs programs in QEMU, on the board that it emulates for a platform.

With `-icount shift=0` QEMU lets a nanosecond pass with each instruction, so that a timer of the board counts
instructions.

A program reaches nothing of this computer. Its inputs are in its memory before it starts; it prints over the board's
UART and ends by a reset of the system, with its exit status in the variable `tw_status`; results are read from its
memory then. There is no semihosting, network, disk or monitor. QEMU itself may start no process and change nothing
outside of a folder of its own.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from elftools.elf.elffile import ELFFile
from msgspec import Struct

from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.machine.target import Qemu, Target
from tilewright.sim.arguments import given_words
from tilewright.sim.confined import confined
from tilewright.sim.limits import MOST_SECONDS, USUAL, Limits, Printed, Sink, cycle_limit
from tilewright.sim.marks import GroupProfile
from tilewright.sim.processes import Running
from tilewright.sim.program import ARM, ElfProgram, load_program
from tilewright.sim.qmp import Control

PROFILE = "board/tilewright_marks.h"
"""Included by force into programs that are to say how long their parts take."""
ALIGNMENT = 16
"""Of inputs in the memory of the board."""
SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
"""QEMU gives up system calls that it does not need."""
SEMIHOSTING = b"\xab\xbe"
"""BKPT 0xAB, by which programs ask a debugger to do something on its computer."""
COUNTED = 0.05
"""Seconds between two looks at how many instructions a program has taken."""
GIBIBYTE = 1024**3
NOTHING = slice(0, 0)
STACK = 2
"""The place among the counts of a program of what is no time."""


class Footprint(Struct, frozen=True):
    """Bytes of a program, besides the arena and the weights of its network."""

    code: int
    """Machine code, with that of the program around the network."""
    constants: int
    """All that is only read, weights included."""
    stack: int
    """What the inference took."""


class QemuRun(Struct, frozen=True):
    """What one inference gave."""

    outputs: tuple[Array, ...]
    instructions: int
    footprint: Footprint
    parts: tuple[GroupProfile, ...]
    """Instructions of each step, where the program was built to tell."""
    left: bytes = b""
    """What it left behind in the memory of inputs and outputs, where that was asked for."""


def qemu_of(platform: Target) -> Qemu:
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
    executable: Path,
    platform: Target,
    limits: Limits = USUAL,
    *,
    sink: Sink,
    words: Sequence[str] = (),
    variable: str = "",
) -> tuple[int, bytes]:
    """Runs a program, called with some words, whose output goes to `sink`: its exit status, and a variable of its."""
    with _emulated(executable, platform, limits, sink, words=words) as board:
        board.run()
        return board.status, board.variable(variable) if variable else b""


def run_in_qemu(
    executable: Path,
    inputs: Sequence[Array],
    outputs: Sequence[TensorType],
    platform: Target,
    marks: Sequence[int],
    limits: Limits = USUAL,
    *,
    left: slice = NOTHING,
) -> QemuRun:
    """Feeds arrays to a program and reads its results back; `marks` are those of its parts, where it was built so.

    `left` says which bytes of the memory of inputs and outputs are read, too.
    """
    _check_ports(inputs, outputs, platform)
    text = bytearray()
    with _emulated(executable, platform, limits, text.extend, inputs) as board:
        board.run()
        if board.status:
            raise TilewrightError(
                "run-failed",
                f"'{executable.name}' ended with status {board.status} in QEMU",
                reasons=text.decode("utf-8", "replace").splitlines()[-20:],
            )
        pointers = np.frombuffer(board.variable("tw_outputs"), np.uint32).tolist()
        arrays = tuple(
            np.frombuffer(board.read(pointer, kind.size * kind.dtype.bytes), kind.dtype.numpy).reshape(kind.shape)
            for pointer, kind in zip(pointers, outputs, strict=False)
        )
        counts = np.frombuffer(board.variable("tw_counts"), np.uint64).tolist()
        base = platform.memories[platform.home].base or 0
        kept = board.read(base + left.start, left.stop - left.start)
    sizes = section_sizes(executable)
    footprint = Footprint(sizes.get(".text", 0), sizes.get(".rodata", 0), counts.pop(STACK))
    tick = 1e9 / qemu_of(platform).timer
    begin, end, *times = (round(time * tick) for time in counts)
    starts = [*(times[mark] for mark in marks), end]
    parts = [GroupProfile(mark, starts[i] - begin, starts[i + 1] - begin) for i, mark in enumerate(marks)]
    return QemuRun(arrays, end - begin, footprint, tuple(parts), kept)


def _check_ports(inputs: Sequence[Array], outputs: Sequence[TensorType], platform: Target) -> None:
    """An error where the board has no room for what goes in and comes out."""
    memory = platform.memories[platform.home]
    need = sum(array.nbytes + 15 for array in inputs) + sum(kind.bytes + 15 for kind in outputs)
    if memory.bytes is not None and need > memory.bytes:
        raise TilewrightError(
            "does-not-fit",
            f"inputs and outputs need {need} bytes of {memory.name} on the emulated board, which has {memory.bytes}",
            help="use a smaller network",
        )


def section_sizes(executable: Path) -> dict[str, int]:
    """Bytes of the sections of a program."""
    with executable.open("rb") as file:
        return {section.name: section.data_size for section in ELFFile(file).iter_sections()}


@contextmanager
def _emulated(
    executable: Path,
    platform: Target,
    limits: Limits,
    sink: Sink,
    inputs: Sequence[Array] = (),
    words: Sequence[str] = (),
) -> Generator[Board]:
    """A board with a program that has not started yet; the emulator works in an empty folder."""
    qemu = qemu_of(platform)
    program = load_program(executable, ARM)
    printed, log, control = Printed(executable.name, limits, sink), Log(), Control()
    with tempfile.TemporaryDirectory(prefix="tilewright-qemu-") as name:
        folder = Path(name)
        command = [*_command(qemu, executable), *control.arguments, *_given(inputs, platform, folder)]
        if words:
            _, data = given_words(program, words, platform.memories[platform.home].bytes)
            command += _loaded("words", data, platform, folder)
        try:
            with Running(
                confined(folder, command),
                executable.name,
                limits,
                output=printed.take,
                messages=log.take,
                folder=folder,
                environment={},
                pass_fds=[control.theirs.fileno()],
            ) as running:
                control.attach(running)
                _confine(running.process.pid, limits)
                yield Board(running, control, log, program, folder, limits, platform.unit)
        finally:
            control.close()


def _command(qemu: Qemu, executable: Path) -> list[str]:
    found = shutil.which(qemu.program) or qemu.program
    return [
        *(found, "-M", qemu.machine, "-kernel", str(executable.resolve()), "-icount", "shift=0", "-S"),
        *("-nodefaults", "-display", "none", "-semihosting-config", "enable=off", *_sandbox(found)),
        *("-chardev", "stdio,id=uart,signal=off", "-serial", "chardev:uart"),
        # A reset ends the program, but the board is still there to be looked at. Exceptions are told on stderr.
        *("-action", "reboot=shutdown,shutdown=pause", "-d", "int"),
    ]


@cache
def _sandbox(qemu: str) -> tuple[str, ...]:
    """The options for QEMU's sandbox, where it was built with it and this computer's kernel lets it."""
    command = [qemu, "-M", "none", "-nodefaults", "-display", "none", "-S", "-monitor", "stdio", *SANDBOX]
    done = subprocess.run(command, input=b"quit\n", capture_output=True, check=False, timeout=MOST_SECONDS)
    return () if done.returncode else SANDBOX


def _given(inputs: Sequence[Array], platform: Target, folder: Path) -> list[str]:
    """Options that put inputs into the memory for them, one behind the other."""
    data = bytearray()
    for array in inputs:
        data += np.ascontiguousarray(array).tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    if not data:
        return []
    return _loaded("inputs", data, platform, folder)


def _loaded(name: str, data: bytes | bytearray, platform: Target, folder: Path) -> list[str]:
    """Options that put bytes to the beginning of the memory for what programs are given."""
    (folder / name).write_bytes(data)
    base = platform.memories[platform.home].base or 0
    return ["-device", f"loader,file={name},addr={base:#x},force-raw=on"]


def _confine(process: int, limits: Limits) -> None:
    """What QEMU gets of this computer, should a program find a hole in it; it has not started the program yet."""
    seconds = int(limits.seconds) + 60
    most = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: GIBIBYTE,
        resource.RLIMIT_AS: 16 * GIBIBYTE,
    }
    for kind, value in most.items():
        # Whoever has a lower limit (ulimit) keeps it.
        given = [limit for limit in resource.prlimit(process, kind) if limit != resource.RLIM_INFINITY]
        least = min([value, *given])
        resource.prlimit(process, kind, (least, least))


class Log:
    """What QEMU says on stderr: the exceptions of the emulated core, and its own messages."""

    def __init__(self) -> None:
        self._rest = b""
        self.messages: list[str] = []
        """The last of its own."""
        self.breakpoint = False
        """The program came to a BKPT."""
        self.lockup = False
        """It faulted while it handled a fault."""

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._read(line.decode("utf-8", "replace"))

    def _read(self, line: str) -> None:
        if line.startswith(("Taking exception", "...", "Loaded reset", "Exception return")):
            self.breakpoint = self.breakpoint or "[Breakpoint]" in line
            return
        self.lockup = self.lockup or "fatal: Lockup" in line
        self.messages = [*self.messages[-30:], line]


class Board:
    """An emulated board with a program."""

    def __init__(
        self, running: Running, control: Control, log: Log, program: ElfProgram, folder: Path, limits: Limits, unit: str
    ) -> None:
        self._running = running
        self._control = control
        self._log = log
        self._program = program
        self._folder = folder
        self._limits = limits
        self._unit = unit

    def run(self) -> None:
        """Runs the program to its end."""
        self._ask("qmp_capabilities")
        self._ask("cont")
        counted = time.monotonic()
        while not self._control.ended:
            if self._control.closed:
                raise self._gone()
            self._running.pump(COUNTED)
            self._refuse_semihosting()
            if time.monotonic() - counted > COUNTED:
                self._count()
                counted = time.monotonic()
        while self._running.pump(0):  # all that it printed is there by now
            pass
        self._refuse_semihosting()
        self._count()

    def _ask(self, command: str, **arguments: object) -> Any:
        """What QEMU answers; an error where it is gone."""
        answer = self._control.ask(self._running, command, **arguments)
        if self._control.closed:
            raise self._gone()
        return answer

    def _refuse_semihosting(self) -> None:
        if self._log.breakpoint:
            raise self._asked_for_semihosting()

    def _count(self) -> None:
        """An error where the program has taken more instructions than it may."""
        if self._ask("query-replay")["icount"] > self._limits.most_cycles:
            self._ask("stop")
            registers = str(self._ask("human-monitor-command", command_line="info registers"))
            raise cycle_limit(self._program.path.name, self._limits, self._unit, [self._place(registers)])

    def _place(self, registers: str) -> str:
        """Where the core is, by its registers as QEMU prints them."""
        found = re.search(r"\bR15=([0-9a-f]{8})", registers)
        return f"the core is at {self._program.place(int(found[1], 16))}" if found else ""

    def variable(self, name: str) -> bytes:
        """The bytes of a variable of the program."""
        symbol = self._program.symbols.get(name)
        if symbol is None:
            raise TilewrightError(
                "unknown-symbol",
                f"'{self._program.path.name}' has no variable '{name}', in which its results would be",
                help="build it from the files of `tilewright compile`",
            )
        return self.read(symbol.address, symbol.size)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of its memory."""
        if not size:
            return b""
        self._ask("memsave", val=address, size=size, filename="memory")
        return (self._folder / "memory").read_bytes()

    @property
    def status(self) -> int:
        """What the program ended with, 0 where it does not say. One that would look like success must not."""
        symbol = self._program.symbols.get("tw_status")
        return min(int.from_bytes(self.read(symbol.address, 4), "little"), 255) if symbol else 0

    def _asked_for_semihosting(self) -> TilewrightError:
        name = self._program.path.name
        places = [f"BKPT 0xAB at {self._program.place(address)}" for address in _semihosting_calls(self._program)]
        if not places:
            return TilewrightError("program-fault", f"'{name}' came to a breakpoint (BKPT), where nobody debugs it")
        return TilewrightError(
            "program-fault",
            f"'{name}' asks for semihosting, which is off: programs have no files and commands of this computer",
            reasons=[*places[:5], *(["..."] if len(places) > 5 else [])],
            help="print over the UART of the board and end by a reset of the system, as docs/security.md says",
        )

    def _gone(self) -> TilewrightError:
        """QEMU ended by itself."""
        self._running.finish()
        if self._log.breakpoint:
            return self._asked_for_semihosting()
        name, messages = self._program.path.name, self._log.messages
        if self._log.lockup:
            return TilewrightError(
                "program-fault",
                f"'{name}' was stopped: it faulted while it handled a fault (lockup)",
                reasons=[self._place("\n".join(messages))],
                help="give it handlers of faults that cannot fault themselves, or look why it faults at all",
            )
        return TilewrightError("run-failed", f"QEMU cannot run '{name}'", reasons=messages[-20:])


def _semihosting_calls(program: ElfProgram) -> Iterator[int]:
    """Addresses of instructions that ask for semihosting, or of data that look so."""
    for segment in program.segments:
        at = segment.data.find(SEMIHOSTING)
        while at >= 0:
            if (segment.address + at) % 2 == 0:
                yield segment.address + at
            at = segment.data.find(SEMIHOSTING, at + 1)
