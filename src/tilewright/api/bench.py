"""Programs that are built and run one after the other, to see what their parts take."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path

import numpy as np
from msgspec import Struct

from tilewright.api.sampled_layers import SampledLayer, network
from tilewright.codegen import build, lower, project_files, project_in
from tilewright.codegen.build import build_drivers
from tilewright.codegen.project import compiler_version, drivers
from tilewright.core.graph import Array, Graph, TensorType
from tilewright.core.plan import Plan
from tilewright.core.program import Program
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes, Target, resize
from tilewright.passes import LAST, run_pipeline
from tilewright.plan import PlanOptions, plan
from tilewright.sim.chip import Chip, run_on_chip
from tilewright.sim.marks import GroupProfile, MarkPlace, Profiler
from tilewright.sim.qemu import profile_flags, run_in_qemu

Random = np.random.Generator
Progress = Callable[[str, int, int], None]
"""Is told what is measured, and how many of its programs have run, of how many."""
Passage = tuple[int, MarkPlace]
"""When a core came to a mark."""

SHARES = (1, 1 / 16, 1 / 4, 1 / 64, 1 / 4)
"""What a program has of the cores' memory: less makes more steps. Most layers of networks are done in few."""
STEPS_SHARES = (0.15, 0.05, 4, 0.4, 0.1)
"""The same of programs for another engine, as a share of the bytes of its layer: the time between steps is wanted."""
LEAST_BYTES = 1 << 11
"""Of memory, to begin with: where it is too little, there is twice as much."""
ALONE = (False, False, True, False, False, False, False)
"""Whether a program is for one core."""


class BenchRun(Struct, frozen=True):
    """A program of layers, with what the simulator saw of it."""

    plan: Plan
    groups: tuple[GroupProfile, ...]


def quiet(_name: str, _done: int, _all: int) -> None:
    """Tells nobody."""


def compiler_of(platform: Target) -> str:
    """Name and version of the compiler that builds a platform's programs."""
    return compiler_version(platform.build["compiler"])


def rounded(value: float) -> float:
    """Four digits: more are noise, and files would differ by the machine that solves."""
    return float(f"{value:.4g}")


def quantiles(errors: Sequence[float]) -> dict[str, float]:
    """Relative errors in three numbers."""
    size = np.abs(errors)
    found = {"median": np.median(size), "p90": np.quantile(size, 0.9), "worst": size.max()}
    return {name: round(float(value), 4) for name, value in found.items()}


def _memories(platform: Target, number: int, layer: SampledLayer | None) -> Iterator[dict[str, int]]:
    """Sizes of the cores' memory to try, in turn: a share of it, or of the bytes of a layer, then more."""
    name = platform.cores.memory
    whole = None if platform.whole else platform.memories[name].bytes
    if whole is None:
        yield {}
        return
    if layer is None:
        size = whole * SHARES[number % len(SHARES)]
    else:
        size = sum(kind.bytes for kind in layer.types.values()) * STEPS_SHARES[number % len(STEPS_SHARES)]
    size = max(int(size) // 4 * 4, LEAST_BYTES)
    while size < whole:
        yield {name: size}
        size *= 2
    yield {name: whole}


class Bench:
    """A folder in which one program after the other is built and run. What all of them have in common is built once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects: tuple[str, ...] = ()

    def run(self, platform: Target, layers: Sequence[SampledLayer], number: int, most: float = inf) -> BenchRun | None:
        """A program of layers, as it ran; none where there is no plan."""
        planned = self.planned(platform, layers, number, most)
        return None if planned is None else BenchRun(planned, self._groups(planned, layers))

    @staticmethod
    def planned(
        platform: Target, layers: Sequence[SampledLayer], number: int, most: float = inf, engine: str = ""
    ) -> Plan | None:
        """A plan of layers; none where they do not fit the machine, or take more than `most` cycles.

        Its number decides how many cores it has, and how much memory. Where it is for another engine than the cores,
        that has one step's work at a time.
        """
        cores = platform.cores
        others = tuple(name for name in platform.engines if name not in (cores.name, engine))
        buffers = 1 if engine else 0
        for sizes in _memories(platform, number, layers[0] if engine else None):
            machine = resize(platform, Sizes(sizes, cores=1 if ALONE[number % len(ALONE)] else 0, without=others))
            graph = run_pipeline(network(layers), machine, passes=LAST)
            try:
                planned = plan(
                    graph, machine, PlanOptions(buffers, fuse="off", overlap="off", seconds=0.0, order="given")
                )
            except TilewrightError:
                continue
            if (planned.schedule is None) != platform.whole or (planned.schedule and planned.schedule.cycles > most):
                return None
            return planned
        return None

    def marks(self, planned: Plan, program: Program, layers: Sequence[SampledLayer]) -> tuple[tuple[Passage, ...], int]:
        """When the core that drives came to each mark of a program of a plan, and the cycles of all of it."""
        inputs, kinds = _ports(planned.graph, layers)
        with self._built(planned.platform, program) as executable:
            chip = Chip(executable, len(inputs), kinds, planned.platform, steps=1)
            profiler = Profiler(chip.simulator, planned.platform)
            chip.run(inputs)
            return profiler.driven(), chip.cycles

    def _groups(self, planned: Plan, layers: Sequence[SampledLayer]) -> tuple[GroupProfile, ...]:
        platform, program = planned.platform, lower(planned)
        inputs, kinds = _ports(planned.graph, layers)
        with self._built(platform, program) as executable:
            if platform.qemu:
                return run_in_qemu(executable, inputs, kinds, platform, program.parts).parts
            return run_on_chip(executable, inputs, kinds, platform, profile=True).groups

    @contextmanager
    def _built(self, platform: Target, program: Program) -> Generator[Path]:
        """A program's executable, as long as it is needed."""
        files = project_files([program], platform)
        if not self._objects:
            with project_in(None, files, program.name) as project:
                self._objects = build_drivers(project, platform, program.name, self._folder)
        marked = profile_flags(program.parts) if platform.qemu else ()
        own = {name: data for name, data in files.items() if name not in drivers(platform)}
        with project_in(None, own, program.name) as project:
            # Nobody looks at lines of these programs, and their code is the same without.
            yield build(project, platform, program.name, flags=(*self._objects, *marked, "-g0")).executable


def _ports(graph: Graph, layers: Sequence[SampledLayer]) -> tuple[list[Array], list[TensorType]]:
    """What a program of layers is given, and the types of its results."""
    fed = {name: array for layer in layers for name, array in layer.fed.items()}
    return [fed[name] for name in graph.inputs], [graph.types[name] for name in graph.outputs]
