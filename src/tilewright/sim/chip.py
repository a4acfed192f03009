"""Runs a built network on the simulated machine of its platform.

The program calls `tw_ready` once it knows where its inputs and outputs are (`tw_inputs`, `tw_outputs`), and leaves the
cycles of the inference in `tw_cycles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.marks import GroupProfile, Profiler
from tilewright.sim.simulator import Look, Simulator, Stop


@dataclass(frozen=True)
class ChipRun:
    """What one simulated inference gave."""

    outputs: tuple[Array, ...]
    cycles: tuple[int, ...]
    """Of each run alone, without starting the machine."""
    groups: tuple[GroupProfile, ...] = ()
    """What each group of nodes took, where that was asked for."""


def run_on_chip(
    executable: Path,
    inputs: Sequence[Array],
    outputs: Sequence[TensorType],
    platform: Target,
    *,
    timing: str = "",
    checks: bool = False,
    profile: bool = False,
    limits: Limits = USUAL,
    steps: int = 1,
) -> ChipRun:
    """Feeds arrays to the program and reads its results back; a fault or a finding of the checks is an error.

    Arrays hold the values of so many runs, one behind the other.
    """
    simulator = Simulator(platform, timing, look=Look(checks=checks), limits=limits)
    simulator.load(executable)
    _expect(simulator, simulator.run_until("tw_ready"), "breakpoint", executable)
    # A program that is run once need not know of more.
    if steps > 1:
        simulator.write(simulator.address("tw_steps"), steps.to_bytes(4, "little"))
    pointers = simulator.read_words("tw_inputs", len(inputs)), simulator.read_words("tw_outputs", len(outputs))
    profiler = Profiler(simulator, platform) if profile else None
    found: list[bytearray] = [bytearray() for _ in outputs]
    cycles: list[int] = []
    for step in range(steps):
        for pointer, array in zip(pointers[0], inputs, strict=True):
            simulator.write(pointer, np.ascontiguousarray(array).reshape(steps, -1)[step].tobytes())
        last = step == steps - 1
        stop = simulator.run() if last else simulator.run_until("tw_ready")
        _expect(simulator, stop, "exited" if last else "breakpoint", executable)
        for pointer, kind, data in zip(pointers[1], outputs, found, strict=True):
            data += simulator.read(pointer, kind.bytes // steps)
        cycles += simulator.read_words("tw_cycles")
    arrays = (np.frombuffer(d, kind.dtype.numpy).reshape(kind.shape) for d, kind in zip(found, outputs, strict=True))
    return ChipRun(tuple(arrays), tuple(cycles), profiler.groups() if profiler else ())


def _expect(simulator: Simulator, stop: Stop, wanted: Stop, executable: Path) -> None:
    """An error where a run did not end as it should."""
    errors = [str(finding) for finding in simulator.findings() if not finding.warning]
    if stop == wanted and not errors and (stop != "exited" or simulator.exit_code == 0):
        return
    if not errors and (limit := simulator.limit_error(stop)) is not None:
        raise limit
    ended = f"with status {simulator.exit_code}" if stop == "exited" else f"with {stop}"
    raise TilewrightError(
        "run-failed",
        f"'{executable.name}' ended {ended} on the simulated machine",
        reasons=[*errors, *(simulator.whereabouts() if stop != "exited" else [])],
        help="status 3 means that the machine's memories are too small for inputs, outputs and buffers together",
    )
