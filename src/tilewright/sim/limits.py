"""How far programs may go, in simulators, in emulators and on this computer, and the errors where one goes further."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from tilewright.errors import TilewrightError

MOST_CYCLES = 20_000_000_000
MOST_OUTPUT = 16 * 1024 * 1024
MOST_SECONDS = 1800.0


class Limits(Struct, frozen=True):
    """What a program gets; the defaults are far beyond what networks need."""

    cycles: int | None = None
    """Of the simulated machine, in the platform's unit of time; None is `MOST_CYCLES`. A program that runs on this
    computer itself, or in a simulator that takes no such number, cannot be given one."""
    output: int = MOST_OUTPUT
    """Bytes that it may print."""
    seconds: float = MOST_SECONDS
    """Of this computer's time."""

    @property
    def most_cycles(self) -> int:
        return MOST_CYCLES if self.cycles is None else self.cycles


USUAL = Limits()


def refuse_cycles(limits: Limits, where: str) -> None:
    """An error where cycles are limited but nobody counts them."""
    if limits.cycles is not None:
        raise TilewrightError(
            "bad-argument",
            f"--max-cycles is not for programs that run {where}, where nobody counts cycles",
            help="limit their time with --timeout SECONDS",
        )


def cycle_limit(name: str, limits: Limits, unit: str, whereabouts: Sequence[str]) -> TilewrightError:
    """A program has not ended within its cycles."""
    return TilewrightError(
        "cycle-limit",
        f"'{name}' has not ended after {limits.most_cycles:,} {unit}",
        reasons=[*whereabouts],
        help="give it more with --max-cycles, or look where it is",
    )


def output_limit(name: str, limits: Limits) -> TilewrightError:
    """A program prints more than it may."""
    return TilewrightError(
        "output-limit",
        f"'{name}' printed more than {limits.output:,} bytes and was stopped",
        help="give it more with --max-output BYTES",
    )


def time_limit(name: str, limits: Limits, whereabouts: Sequence[str] = ()) -> TilewrightError:
    """A program takes more time than it may."""
    return TilewrightError(
        "time-limit",
        f"'{name}' has not ended after {limits.seconds:g} s and was stopped",
        reasons=[*whereabouts],
        help="give it more with --timeout SECONDS, or look whether it ends at all",
    )


Sink = Callable[[bytes], object]
"""Takes what a program prints, as it comes."""


class Printed:
    """Hands on what a program prints, up to its limit."""

    def __init__(self, name: str, limits: Limits, sink: Sink) -> None:
        self._name = name
        self._limits = limits
        self._sink = sink
        self._room = limits.output

    def take(self, data: bytes) -> None:
        """More of it; an error where it is too much."""
        self._sink(data[: self._room])
        if len(data) > self._room:
            raise output_limit(self._name, self._limits)
        self._room -= len(data)
