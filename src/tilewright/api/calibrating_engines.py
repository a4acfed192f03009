"""Calibrate: what it takes to start work on an engine beside the cores, measured on layers that only it computes.

Its jobs take what the simulator says. What a step takes besides is the core that drives: it describes the jobs, and
learns of their end.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.bench import Bench, BenchRun, Progress, compiler_of, quantiles, quiet, rounded
from tilewright.api.sampled_layers import draw_layers
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import COMPILER, START_TERMS, Calibration
from tilewright.machine.staleness import engine_key
from tilewright.machine.target import Target, with_times
from tilewright.price.grid import Array
from tilewright.price.least_squares import smallest_errors
from tilewright.price.tiles import priced
from tilewright.timeline.parts import Costs
from tilewright.timeline.replay import memories, sources

PROGRAMS = 48
"""In all, of an engine's kernels in turn."""
LEAST_PROGRAMS = 5
MOST_MISSES = 40
"""Programs that may come to nothing."""
HELD_OUT = 7
"""In so many turns, each so many-th program is not used to solve, and its errors are told."""


class Started(Struct, frozen=True):
    """A layer on an engine, with cycles of what drives besides those of the jobs."""

    first: float
    """At its first step."""
    others: float
    """At all others together."""
    steps: int
    cycles: float
    """In all, with those of the jobs."""

    @property
    def rows(self) -> tuple[tuple[tuple[float, float], float], ...]:
        """How often it is started, and for the first time, with the cycles that it took."""
        first = ((1.0, 1.0), self.first)
        return (first, ((self.steps - 1.0, 0.0), self.others)) if self.steps > 1 else (first,)

    def error(self, found: Array) -> float:
        """How far cycles that are predicted are off, as a share of those measured."""
        return float(found @ np.array([self.steps, 1.0]) - self.first - self.others) / self.cycles


def measured_engine(platform: Target, engine: str, seed: int = 0, progress: Progress = quiet) -> Calibration:
    """Samples, runs and solves."""
    seen = engine_programs(platform, engine, seed, progress)
    found = _solved([one for layers in seen for one in layers])
    errors: list[float] = []
    for turn in range(HELD_OUT):
        others = [one for number, layers in enumerate(seen) if number % HELD_OUT != turn for one in layers]
        errors += [one.error(_solved(others)) for layers in seen[turn::HELD_OUT] for one in layers]
    return Calibration(
        MappingProxyType({**engine_key(platform, engine), COMPILER: compiler_of(platform)}),
        MappingProxyType(dict(zip(START_TERMS, map(rounded, found.tolist()), strict=True))),
        shapes=len(errors),
        held_out=MappingProxyType(quantiles(errors)),
    )


def _solved(seen: Sequence[Started]) -> Array:
    pairs = [row for one in seen for row in one.rows]
    counts, cycles = np.array([row for row, _ in pairs]), np.array([took for _, took in pairs])
    return smallest_errors(lambda _: (counts, cycles), np.ones(len(START_TERMS)))


def engine_programs(platform: Target, engine: str, seed: int, progress: Progress = quiet) -> list[list[Started]]:
    """Layers for an engine, as they ran, program by program. What was measured before plays no part in their plans."""
    kernels = [kernel for kernel in platform.kernels if kernel.engine == engine]
    of_cores = [kernel for kernel in platform.kernels if kernel.engine == platform.cores.name]
    random = np.random.default_rng([zlib.crc32(engine.encode()), seed])
    bare = with_times(platform, {f"{engine}.{name}": 0 for name in START_TERMS})
    found: list[list[Started]] = []
    number = 0
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        bench = Bench(Path(scratch))
        while number < PROGRAMS + min(MOST_MISSES, len(found)) and len(found) < PROGRAMS:
            progress(engine, len(found), PROGRAMS)
            kernel, turn = kernels[number % len(kernels)], number // len(kernels)
            # One layer alone: the first job of a further one may be started before the last of that before it is done.
            layers = draw_layers(kernel, 1, random, platform.kernels, turn)
            # Of the engine's kernels this one is chosen; layers that the cores compute faster are left out.
            alone = replace(bare, kernels=(kernel, *of_cores))
            ran = bench.run(alone, layers, number, engine=engine) if layers else None
            number += 1
            seen = [] if ran is None else _started(ran, engine)
            if seen:
                found.append(seen)
    progress(engine, PROGRAMS, PROGRAMS)
    if len(found) < LEAST_PROGRAMS:
        raise TilewrightError(
            "no-samples",
            f"engine '{engine}' of '{platform.name}' cannot be calibrated",
            reasons=[f"{len(found)} of {number} programs made from examples of its operators ran on it"],
            help="add examples to the declarations of the operators that it takes",
        )
    return found


def _started(ran: BenchRun, engine: str) -> list[Started]:
    """What was seen of each group that the engine computed alone."""
    planned = ran.plan
    schedule = planned.schedule
    assert schedule is not None
    homes = memories(planned, schedule)
    found: list[Started] = []
    for number, (group, profile) in enumerate(zip(schedule.groups, ran.groups, strict=True)):
        if len(group.works) != 1 or group.ahead or planned.choices[group.works[0].step].engine != engine:
            continue
        source = sources(homes, schedule, number)
        costs = Costs(
            planned.platform,
            group,
            priced(planned.graph, planned.platform, planned.choices, group, source),
            source,
        )
        jobs = [costs.works[0][kind] for kind in costs.classes]
        took = profile.driven
        if len(took) == len(jobs) and min(jobs) > 0:
            first, others = took[0] - jobs[0], sum(took[1:]) - sum(jobs[1:])
            found.append(Started(first, others, len(jobs), sum(took)))
    return found
