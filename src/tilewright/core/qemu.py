"""How programs of a platform run in QEMU."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.core.reader import Reader


@dataclass(frozen=True)
class Qemu:
    """A board of QEMU's, which counts instructions, one a nanosecond, by a timer of the board."""

    program: str
    machine: str
    uart: int
    """Address of the UART (CMSDK) that programs print to."""
    timer: float
    """Ticks of the timer in a second."""


def read_qemu(part: Reader) -> Qemu:
    """What a platform.yaml says under `qemu`."""
    qemu = Qemu(part.text("program"), part.text("machine"), part.integer("uart"), part.number("timer", 1.0))
    part.finish()
    return qemu
