"""Runs a built program on this machine: raw input files in, raw output files out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.sim.limits import USUAL, Limits, Printed, refuse_cycles
from tilewright.sim.processes import Running
from tilewright.sim.settings import EmulatedMachine


class HostRun(Struct, frozen=True):
    """What one execution gave; `nanoseconds` is the fastest of the repeats, None where none were asked for."""

    outputs: tuple[Array, ...]
    nanoseconds: float | None


def host_environment() -> dict[str, str]:
    """The environment of a program that may be built with sanitizers.

    Generated code allocates nothing, and the search for leaks can take longer than the run.
    """
    return {"ASAN_OPTIONS": "detect_leaks=0", **os.environ}


def run_on_host(
    executable: Path,
    inputs: Sequence[Array],
    outputs: Sequence[TensorType],
    *,
    machine: EmulatedMachine | None = None,
    repeat: int = 0,
    limits: Limits = USUAL,
    steps: int = 1,
) -> HostRun:
    """Feeds arrays to the program and reads its results back; `machine` is for programs of platforms with a DMA.

    Arrays hold the values of so many runs, one behind the other.
    """
    refuse_cycles(limits, "on this computer")
    with tempfile.TemporaryDirectory(prefix="tilewright-run-") as folder:
        paths = [Path(folder) / f"in{i}" for i in range(len(inputs))]
        results = [Path(folder) / f"out{i}" for i in range(len(outputs))]
        for path, array in zip(paths, inputs, strict=True):
            path.write_bytes(np.ascontiguousarray(array).tobytes())
        command = [
            str(executable),
            *map(str, paths),
            *map(str, results),
            *(machine.arguments if machine else []),
            *(["--steps", str(steps)] if steps > 1 else []),
            *(["--repeat", str(repeat)] if repeat else []),
        ]
        status, text, messages = _run(command, executable.name, limits)
        if status:
            raise TilewrightError(
                "run-failed",
                f"'{executable.name}' ended with status {status}",
                reasons=messages.decode("utf-8", "backslashreplace").splitlines()[:20],
            )
        try:
            arrays = tuple(
                np.frombuffer(path.read_bytes(), kind.dtype.numpy).reshape(kind.shape)
                for path, kind in zip(results, outputs, strict=True)
            )
            return HostRun(arrays, float(text) if repeat else None)
        except (OSError, ValueError) as reason:
            raise TilewrightError(
                "run-failed",
                f"'{executable.name}' did not write what the network has for outputs",
                reasons=[str(reason)],
                help="is it the program that was built? --cc names the compiler",
            ) from reason


def _run(command: Sequence[str], name: str, limits: Limits) -> tuple[int, bytes, bytes]:
    """Runs a program; its exit status, and what it printed to stdout and to stderr."""
    text, messages = bytearray(), bytearray()
    printed, complained = (Printed(name, limits, kept.extend) for kept in (text, messages))
    environment = host_environment()
    with Running(
        command, name, limits, output=printed.take, messages=complained.take, environment=environment
    ) as running:
        return running.finish(), bytes(text), bytes(messages)
