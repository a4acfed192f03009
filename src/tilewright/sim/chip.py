"""Runs a built network on the simulated machine of its platform.

The program calls `tw_ready` once it knows where its inputs and outputs are (`tw_inputs`, `tw_outputs`), and leaves the
cycles of the inference in `tw_cycles`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.marks import GroupProfile, Profiler
from tilewright.sim.program import ElfProgram
from tilewright.sim.simulator import Look, Simulator, Stop


class ChipRun(Struct, frozen=True):
    """What one simulated inference gave."""

    outputs: tuple[Array, ...]
    cycles: tuple[int, ...]
    """Of each run alone, without starting the machine."""
    groups: tuple[GroupProfile, ...] = ()
    """What each group of nodes took, where that was asked for."""


class Chip:
    """A program that is fed run by run, and keeps its states between."""

    def __init__(
        self,
        executable: Path | ElfProgram,
        inputs: int,
        outputs: Sequence[TensorType],
        platform: Target,
        *,
        steps: int,
        timing: str = "",
        checks: bool = False,
        limits: Limits = USUAL,
    ) -> None:
        """`steps` is how often it will be run at most."""
        self.simulator = Simulator(platform, timing, look=Look(checks=checks), limits=limits)
        self._name = self.simulator.load(executable).path.name
        self._kinds, self._left = outputs, steps
        self._expect(self.simulator.run_until("tw_ready"), "breakpoint")
        # A program that is run once need not know of more.
        if steps > 1:
            self.simulator.write(self.simulator.address("tw_steps"), steps.to_bytes(4, "little"))
        self.inputs = self.simulator.read_words("tw_inputs", inputs)
        self.outputs = self.simulator.read_words("tw_outputs", len(outputs))

    def run(self, inputs: Sequence[Array], go: Callable[[], Stop] | None = None) -> tuple[Array, ...]:
        """One run; a fault or a finding of the checks is an error. `go` may be another way to the end of the last."""
        for pointer, array in zip(self.inputs, inputs, strict=True):
            self.simulator.write(pointer, np.ascontiguousarray(array).tobytes())
        self._left -= 1
        stop = self.simulator.run_until("tw_ready") if self._left else (go or self.simulator.run)()
        self._expect(stop, "breakpoint" if self._left else "exited")
        found = zip(self.outputs, self._kinds, strict=True)
        return tuple(
            np.frombuffer(self.simulator.read(pointer, kind.bytes), kind.dtype.numpy).reshape(kind.shape)
            for pointer, kind in found
        )

    @property
    def cycles(self) -> int:
        """Of the last run alone, without starting the machine."""
        return self.simulator.read_words("tw_cycles")[0]

    def _expect(self, stop: Stop, wanted: Stop) -> None:
        _expect(self.simulator, stop, wanted, self._name)


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
    """Feeds arrays to the program and reads its results back. Arrays hold the values of so many runs."""
    kinds = [kind if steps == 1 else kind.with_shape((kind.size // steps,)) for kind in outputs]
    chip = Chip(executable, len(inputs), kinds, platform, steps=steps, timing=timing, checks=checks, limits=limits)
    profiler = Profiler(chip.simulator, platform) if profile else None
    found: list[tuple[Array, ...]] = []
    cycles: list[int] = []
    for step in range(steps):
        found.append(chip.run([np.ascontiguousarray(array).reshape(steps, -1)[step] for array in inputs]))
        cycles.append(chip.cycles)
    arrays = (np.stack(a).reshape(kind.shape) for a, kind in zip(zip(*found, strict=True), outputs, strict=True))
    return ChipRun(tuple(arrays), tuple(cycles), profiler.groups() if profiler else ())


def _expect(simulator: Simulator, stop: Stop, wanted: Stop, name: str) -> None:
    """An error where a run did not end as it should."""
    errors = [str(finding) for finding in simulator.findings() if not finding.warning]
    if stop == wanted and not errors and (stop != "exited" or simulator.exit_code == 0):
        return
    if not errors and (limit := simulator.limit_error(stop)) is not None:
        raise limit
    if errors and stop != "fault":
        mistakes = "a mistake" if len(errors) == 1 else f"{len(errors)} mistakes"
        raise TilewrightError(
            "run-failed",
            f"the checks found {mistakes} in what '{name}' did on the simulated machine",
            reasons=errors,
            help="repair the first one first: others may follow from it",
        )
    ended = f"with status {simulator.exit_code}" if stop == "exited" else f"with {stop}"
    raise TilewrightError(
        "run-failed",
        f"'{name}' ended {ended} on the simulated machine",
        reasons=[*errors, *(simulator.whereabouts() if stop != "exited" else [])],
        help="status 3 means that the machine's memories are too small for inputs, outputs and buffers together"
        if stop == "exited"
        else "",
    )
