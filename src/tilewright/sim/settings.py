"""What can be chosen about a run, apart from what runs it: nothing here is slow to import."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Moment = Literal["start", "wait", "random"]
SimulatorName = Literal["tilewright", "gvsoc", "qemu"]
"""What simulates a chip."""


class EmulatedMachine(Struct, frozen=True):
    """How an emulated machine behaves, where the program emulates one."""

    dma: Moment = "wait"
    """When transfers copy: as late as a program may rely on is what finds most mistakes."""
    seed: int = 0
    """Of random moments, the order of cores, and what memories hold at first."""

    @property
    def arguments(self) -> list[str]:
        return ["--dma", self.dma, "--seed", str(self.seed)]
