"""A head of attention on a unit of ITA, as a program starts it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sim.device_programs import ended, loaded, platform
from sim.ita_jobs import Requantisation
from tilewright.machine.target import Target
from tilewright.machine.timing import DeviceModel

REQUEST, SCALES, BLOCK, OUTPUT = 0x1C110000, 0x1C118000, 0x1C120000, 0x1C1C0000
"""Addresses in L2, behind the program."""


def with_accelerator(kind: str, settings: dict[str, int | str]) -> Target:
    """The machine that programs for devices are for, with another accelerator in the place of its own."""
    found = platform()
    timings = {
        name: replace(
            timing,
            devices={
                **timing.devices,
                "neureka": DeviceModel("neureka", kind, timing.devices["neureka"].base, 0x400, settings),
            },
        )
        for name, timing in found.timings.items()
    }
    return replace(found, timings=timings)


def ran_unit(
    folder: Path, block: NDArray[np.uint8], sizes: tuple[int, int, int], scales: Requantisation
) -> tuple[NDArray[np.int8], int]:
    """What the unit makes of a block, and cycles until its state shows the end."""
    machine = with_accelerator("ita_units", {"units": 4, "product_cycles": 256, "drain_cycles": 12})
    simulator = loaded("ita_units", folder, 2, machine, "gvsoc")
    tables = struct.pack("<3I", *(SCALES + at for at in (16, 24, 32))) + bytes(4)
    tables += bytes(scales.mult) + bytes(2) + bytes(scales.shift) + bytes(2) + struct.pack("<6i", *scales.add)
    simulator.write(SCALES, tables)
    simulator.write(BLOCK, block.tobytes())
    simulator.write(REQUEST, struct.pack("<6I", BLOCK, OUTPUT, SCALES, *sizes))
    results = ended(simulator).results
    assert results[:3] == (0, 2, 4)
    return np.frombuffer(simulator.read(OUTPUT, sizes[0] * sizes[1]), np.int8), results[3]
