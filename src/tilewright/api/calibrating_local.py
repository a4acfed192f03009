"""Calibrate: copies that all cores make together inside of their memory, in parts of tiles of random shapes."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.timed_programs import BYTES, WARM, Seen, TimedProgram
from tilewright.core.program import Copy, Mark
from tilewright.machine.parts import Link
from tilewright.machine.target import Target
from tilewright.price.least_squares import smallest_errors

SHAPES = 64
LARGEST = BYTES // 2
"""Bytes of a part, as far as it reaches in its tile."""
ALIGNED = 16
"""Bytes of which every other shape has a multiple in a run."""
MOST_PLANES = 8
APART = 16
"""Bytes between runs, so that they are not dense."""


class CopySeen(Struct, frozen=True):
    """A copy as it ran."""

    bytes: int
    waves: int
    """Runs that a core copies."""
    cold: float
    cycles: float
    """When its code is in the caches."""


def local_times(platform: Target, link: Link, seed: int = 0) -> Seen:
    """What such copies take: each, for each run of a core, for each byte, and more at first; these are solved for."""
    ran = [*_copies(platform, link, np.random.default_rng(seed))]
    rows = np.array([(1.0, one.waves, one.bytes / platform.cores.count) for one in ran])
    took = np.array([one.cycles for one in ran])
    setup, run, byte = smallest_errors(lambda _: (rows, took), np.ones(3)).tolist()
    return {
        f"{link.name}.setup": [setup],
        f"{link.name}.run": [run],
        f"{link.name}.bytes_per_cycle": [1 / max(byte, 1 / BYTES)],
        f"{link.name}.cold": [one.cold - one.cycles for one in ran],
    }


def _copies(platform: Target, link: Link, random: np.random.Generator) -> Iterator[CopySeen]:
    program = TimedProgram(platform)
    to = replace(program.load.to, offset=0)
    for number in range(SHAPES):
        size = int(LARGEST ** random.uniform(0, 0.9))
        size = -(-size // ALIGNED) * ALIGNED if number % 2 else size
        most = LARGEST // (size + APART)
        rows = int(min(most, 4 * platform.cores.count) ** random.uniform())
        planes = int(random.integers(1, min(most // rows, MOST_PLANES) + 1)) if link.rank > 2 else 1
        counts, strides = _shape(size, rows, planes)
        copied = Copy(0, to, replace(to, offset=LARGEST), size, counts, strides, strides, link.rank)
        turns = program.turns((Mark(0, "now"), copied, Mark(0, "now")))
        times = [turn.marks[1] - turn.marks[0] for turn in turns]
        waves = -(-rows * planes // platform.cores.count)
        yield CopySeen(size * rows * planes, waves, times[0], median(times[WARM:]))


def _shape(size: int, rows: int, planes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of runs and their strides, outermost first."""
    row = size + APART
    if planes > 1:
        return (planes, rows), (rows * row, row)
    return ((rows,), (row,)) if rows > 1 else ((), ())
