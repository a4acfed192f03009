"""A built program goes on with a text: on this computer, on a simulated chip or on an emulated board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from tilewright.errors import TilewrightError
from tilewright.language.sampling import Sampling
from tilewright.machine.target import Target
from tilewright.sim.arguments import given_words
from tilewright.sim.host import host_environment
from tilewright.sim.limits import USUAL, Limits, Printed, refuse_cycles
from tilewright.sim.processes import Running
from tilewright.sim.qemu import qemu_of, simulate_in_qemu
from tilewright.sim.simulator import Look, Simulator
from tilewright.sim.statistics import statistics_of

Say = Callable[[bytes], object]
"""Takes parts of the text as they come."""

COUNTS = "tw_told"
"""The variable of programs: tokens read and written, and the time of both."""
NAMES = ("read", "written", "reading", "writing")


class Figures(Struct, frozen=True):
    """What a program did."""

    read: int
    """Tokens of the prompt."""
    written: int
    reading: float
    """The time until all of the prompt was read: seconds, or the unit of a platform without a clock."""
    writing: float
    cycles: tuple[int, ...] = ()
    """On a simulated chip, of each run of a network."""
    joules: float | None = None
    """For the tokens that were written, by the energy model of the chip."""


def words_of(prompt: str, tokens: int, how: Sampling) -> list[str]:
    """What a program is called with."""
    # Programs read nine decimals, and no signs.
    options = {"temperature": abs(how.temperature), "top-p": max(how.top_p, 1e-9)}
    numbers = {"tokens": str(tokens), "seed": str(how.seed), **{name: f"{n:.9f}" for name, n in options.items()}}
    return [prompt, *(word for name, number in numbers.items() for word in (f"--{name}", number))]


def tell(executable: Path, platform: Target, words: Sequence[str], say: Say, limits: Limits = USUAL) -> Figures:
    """Calls a program with some words; what it prints is said as it comes."""
    if platform.timings:
        return _on_chip(executable, platform, words, say, limits)
    if platform.qemu:
        return _on_board(executable, platform, words, say, limits)
    return _on_host(executable, words, say, limits)


def _on_host(executable: Path, words: Sequence[str], say: Say, limits: Limits) -> Figures:
    refuse_cycles(limits, "on this computer")
    messages = bytearray()
    printed, complained = Printed(executable.name, limits, say), Printed(executable.name, limits, messages.extend)
    with Running(
        [str(executable), *words],
        executable.name,
        limits,
        output=printed.take,
        messages=complained.take,
        environment=host_environment(),
    ) as running:
        status = running.finish()
    text = messages.decode("utf-8", "backslashreplace")
    found = text.split()
    if status or tuple(found[::2][:4]) != NAMES:
        raise _failed(executable, status, text.splitlines())
    read, written, reading, writing = map(int, found[1:8:2])
    return Figures(read, written, reading / 1e9, writing / 1e9)


def _on_chip(executable: Path, platform: Target, words: Sequence[str], say: Say, limits: Limits) -> Figures:
    chip = Simulator(platform, look=Look(checks=True), limits=limits)
    address, data = given_words(chip.load(executable), words)
    chip.write(address, data)
    cycles: list[int] = []
    said, begin = 0, 0.0
    while (stop := chip.run_until("tw_ready")) == "breakpoint" and not _errors(chip):
        cycles += chip.read_words("tw_cycles")
        new = chip.output_from(said)
        said += len(new)
        if not said:  # the prompt is printed when all of it has been read
            begin = statistics_of(chip).joules
        say(new)
    rest = chip.output_from(said)
    errors = _errors(chip)
    if not errors and (limit := chip.limit_error(stop)) is not None:
        raise limit
    if errors or stop != "exited" or chip.exit_code:
        place = chip.whereabouts() if stop != "exited" else rest.decode("utf-8", "replace").splitlines()
        raise _failed(executable, chip.exit_code if stop == "exited" else None, [*errors, *place])
    say(rest)
    read, written, reading, writing = np.frombuffer(chip.read(COUNTS), np.uint64).tolist()
    hertz = chip.timing.hertz
    joules = statistics_of(chip).joules - begin
    return Figures(read, written, reading / hertz, writing / hertz, tuple(cycles), joules)


def _errors(chip: Simulator) -> list[str]:
    return [str(finding) for finding in chip.findings() if not finding.warning]


def _on_board(executable: Path, platform: Target, words: Sequence[str], say: Say, limits: Limits) -> Figures:
    text = bytearray()

    def take(part: bytes) -> None:
        text.extend(part)
        say(part)

    status, counts = simulate_in_qemu(executable, platform, limits, sink=take, words=words, variable=COUNTS)
    if status:
        raise _failed(executable, status, text.decode("utf-8", "replace").splitlines())
    read, written, reading, writing = np.frombuffer(counts, np.uint64).tolist()
    tick = 1e9 / qemu_of(platform).timer
    return Figures(read, written, reading * tick, writing * tick)


def _failed(executable: Path, status: int | None, reasons: Sequence[str]) -> TilewrightError:
    ended = "was stopped" if status is None else f"ended with status {status}"
    return TilewrightError(
        "run-failed",
        f"'{executable.name}' {ended}",
        reasons=list(reasons[:20]),
        help="status 3 means that the machine's memories are too small for buffers and states together",
    )
