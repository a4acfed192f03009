"""Calibrate: what steps take that are fused behind kernels, measured on layers with steps of all kinds behind them.

What kernels themselves take is known from their own calibration, up to a factor for each; the rest is the steps'.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from tilewright.api.bench import Bench, BenchRun, Progress, quiet
from tilewright.api.calibrating_nests import operations_solution
from tilewright.api.sampled_layers import SampledLayer, any_steps, draw_layers
from tilewright.core.graph import TensorType
from tilewright.core.plan import Group
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import STEPS, Calibration
from tilewright.machine.kernel import Kernel
from tilewright.machine.target import Target
from tilewright.ops.usual_steps import Behind, usual_steps
from tilewright.price.step_terms import StepsSeen, solved_steps, steps_seen
from tilewright.sim.marks import GroupProfile

PROGRAMS = 144
"""In all, of the kernels in turn."""
TOGETHER = 6
"""Layers of a program, each with steps of its own."""
USUAL = 0.75
"""The share of layers with what networks usually have behind them, and nothing else."""
MOST_CYCLES = 1 << 22
"""Of a program, as predicted: longer ones tell no more."""
HELD_OUT = 6
"""In so many turns, each so many-th program is not used to solve, and its errors are told."""


def measured_steps(platform: Target, seed: int, progress: Progress = quiet) -> Calibration:
    """Samples, runs and solves."""
    return steps_solution(platform, step_programs(platform, seed, progress))


def step_programs(platform: Target, seed: int, progress: Progress = quiet) -> list[BenchRun]:
    """Layers for kernels that were measured, with any steps behind them, as they ran."""
    kernels = [kernel for kernel in platform.kernels if _asks(platform, kernel)]
    random = np.random.default_rng(seed)
    found: list[BenchRun] = []

    def steps(result: TensorType, _: np.random.Generator) -> tuple[Behind, ...]:
        return usual_steps(result, random) if random.random() < USUAL else any_steps(result, random)

    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        bench = Bench(Path(scratch))
        for number in range(PROGRAMS if kernels else 0):
            progress(STEPS, number * TOGETHER, PROGRAMS * TOGETHER)
            kernel, turn = kernels[number % len(kernels)], number // len(kernels)
            layers = draw_layers(kernel, TOGETHER, random, platform.kernels, turn, steps)
            ran = _run(bench, replace(platform, kernels=(kernel,)), layers, number)
            if ran is not None:
                found.append(ran)
    progress(STEPS, PROGRAMS * TOGETHER, PROGRAMS * TOGETHER)
    if len(found) < HELD_OUT:
        raise TilewrightError(
            "no-samples",
            f"steps behind kernels of '{platform.name}' cannot be calibrated",
            reasons=[f"{len(kernels)} of its kernels ask for FUSED and were measured, {len(found)} programs ran"],
            help=f"run `tilewright calibrate --platform {platform.name}`, which measures kernels first",
        )
    return found


def _asks(platform: Target, kernel: Kernel) -> bool:
    """Whether a kernel of the cores was measured that may have something behind it, which takes time of its own."""
    found = platform.calibrations.get(kernel.path.name)
    return (
        kernel.engine == platform.cores.name
        and kernel.epilogue
        and found is not None
        and any("FUSED" in text and found.terms.get(name) for name, text in kernel.terms.items())
    )


def _run(bench: Bench, platform: Target, layers: Sequence[SampledLayer], number: int) -> BenchRun | None:
    """A program of some layers; none where an operator refuses what its examples have."""
    try:
        return bench.run(platform, layers, number, MOST_CYCLES) if layers else None
    except TilewrightError:
        return None


def steps_solution(platform: Target, ran: Sequence[BenchRun]) -> Calibration:
    """What follows from programs that ran."""
    seen = [[*observed_steps(one)] for one in ran]
    return operations_solution(platform, seen, lambda some: solved_steps(some, platform.operations), HELD_OUT)


def observed_steps(ran: BenchRun) -> Iterator[StepsSeen]:
    """What was seen of each group in which a kernel ran."""
    planned = ran.plan
    assert planned.schedule is not None
    pairs: Iterator[tuple[Group, GroupProfile]] = zip(planned.schedule.groups, ran.groups, strict=True)
    for group, profile in pairs:
        (work,) = group.works
        if planned.choices[work.step].kernel is not None:
            cycles = [tile.kernel for tile in profile.tiles]
            yield steps_seen(planned.graph, planned.platform, planned.choices, group, cycles)
