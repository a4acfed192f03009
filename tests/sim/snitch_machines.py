"""Small machines with Snitch cores for tests."""

from __future__ import annotations

from sim import machines
from tilewright import _native

EXTENSIONS = ["rv32i", "rv32m", "zicsr", "rv32a", "xfloat", "xdma", "xssr", "xfrep"]
PIPELINE = machines.PIPELINE | {"scoreboard": 1}
CORE = {
    "streams": 3,
    "buffer": 16,
    "loops": 1,
    "divider": 1,
    "offload_cycles": 0,
    "back_cycles": 0,
    "ahead_cycles": 2,
    "stream_depth": 4,
    "stream_latency": 2,
    "stream_start": 1,
    "stream_bytes": 8,
}


def machine(size: int = machines.SIZE, **settings: int) -> _native.Machine:
    """One core, one memory; settings of the core may differ from those above."""
    made = machines.machine(size=size, extensions=EXTENSIONS, pipeline=PIPELINE)
    made.add_device("snitch_core", "fpu", 0, 0, CORE | {"first_hart": 0, "harts": 1, "group": 0} | settings)
    return made
