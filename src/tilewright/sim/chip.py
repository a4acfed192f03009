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
from tilewright.core.platform import Platform
from tilewright.errors import TilewrightError
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.marks import GroupProfile, Profiler
from tilewright.sim.simulator import Look, Simulator, Stop


@dataclass(frozen=True)
class ChipRun:
    """What one simulated inference gave."""

    outputs: tuple[Array, ...]
    cycles: int
    """Of the inference alone, without starting the machine."""
    groups: tuple[GroupProfile, ...] = ()
    """What each group of nodes took, where that was asked for."""


def run_on_chip(
    executable: Path,
    inputs: Sequence[Array],
    outputs: Sequence[TensorType],
    platform: Platform,
    *,
    timing: str = "",
    checks: bool = False,
    profile: bool = False,
    limits: Limits = USUAL,
) -> ChipRun:
    """Feeds arrays to the program and reads its results back; a fault or a finding of the checks is an error."""
    simulator = Simulator(platform, timing, look=Look(checks=checks), limits=limits)
    simulator.load(executable)
    _expect(simulator, simulator.run_until("tw_ready"), "breakpoint", executable)
    pointers = simulator.read_words("tw_inputs", len(inputs))
    for pointer, array in zip(pointers, inputs, strict=True):
        simulator.write(pointer, np.ascontiguousarray(array).tobytes())
    profiler = Profiler(simulator, platform) if profile else None
    _expect(simulator, simulator.run(), "exited", executable)
    pointers = simulator.read_words("tw_outputs", len(outputs))
    arrays = tuple(
        np.frombuffer(simulator.read(pointer, kind.size * kind.dtype.bytes), kind.dtype.numpy).reshape(kind.shape)
        for pointer, kind in zip(pointers, outputs, strict=True)
    )
    return ChipRun(arrays, simulator.read_words("tw_cycles")[0], profiler.groups() if profiler else ())


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
