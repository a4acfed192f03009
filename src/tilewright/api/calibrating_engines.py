"""Calibrate: what it takes to start work on an engine beside the cores, seen in layers that it computes.

The core that drives passes a mark before and behind each statement that starts work there. At the first passage its
code comes into the caches. What further steps take besides is what they are later than predicted without it.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.bench import Bench, Passage, Progress, compiler_of, quantiles, quiet, rounded
from tilewright.api.sampled_layers import draw_layers
from tilewright.codegen import lower
from tilewright.core.plan import Plan
from tilewright.core.program import Driven, For, If, Mark, OnCores, Program, StartEngine, Statement
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import COMPILER, START_TERMS, Calibration
from tilewright.machine.staleness import engine_key
from tilewright.machine.target import Target, with_times
from tilewright.price.grid import Array
from tilewright.price.least_squares import smallest_errors
from tilewright.timeline.replay import Timeline, plan_timeline

PROGRAMS = 48
"""In all, of an engine's kernels in turn."""
LEAST_PROGRAMS = 5
MOST_MISSES = 40
"""Programs that may come to nothing."""
HELD_OUT = 6
"""Each time, one program of so many is held out."""


class Started(Struct, frozen=True):
    """A statement that starts work, as it ran."""

    group: int
    statement: StartEngine
    begun: tuple[int, ...]
    took: tuple[int, ...]
    """Cycles of the core that drives, time by time."""

    @property
    def whole(self) -> bool:
        """Whether it describes its job and lets it begin."""
        return bool(self.statement.body) and self.statement.goes


class EngineProgram(Struct, frozen=True):
    """A program of layers, with what was seen of it."""

    plan: Plan
    starts: tuple[Started, ...]
    cycles: int


def measured_engine(platform: Target, engine: str, seed: int = 0, progress: Progress = quiet) -> Calibration:
    """Runs layers and looks at starts. What was measured before plays no part in their plans."""
    bare = with_times(platform, {f"{engine}.{name}": 0 for name in START_TERMS})
    ran = engine_programs(bare, engine, seed, progress)
    errors = held_out_errors(ran, engine)
    terms = solved_starts(ran, engine)
    return Calibration(
        MappingProxyType({**engine_key(platform, engine), COMPILER: compiler_of(platform)}),
        MappingProxyType({name: rounded(terms[name]) for name in START_TERMS}),
        shapes=len(ran),
        held_out=MappingProxyType(quantiles(errors)),
    )


def held_out_errors(ran: Sequence[EngineProgram], engine: str) -> list[float]:
    """Relative errors of the predicted cycles of programs, each by what was solved without it and some others."""
    found: list[float] = []
    for turn in range(HELD_OUT):
        terms = solved_starts([one for number, one in enumerate(ran) if number % HELD_OUT != turn], engine)
        found += [_timeline(one, engine, terms).cycles / one.cycles - 1 for one in ran[turn::HELD_OUT]]
    return found


def _timeline(one: EngineProgram, engine: str, terms: Mapping[str, float]) -> Timeline:
    """That of a program whose starts take so long."""
    times = {f"{engine}.{name}": time for name, time in terms.items()}
    plan = replace(one.plan, platform=with_times(one.plan.platform, times))
    assert plan.schedule is not None
    return plan_timeline(plan, plan.schedule)


def solved_starts(ran: Sequence[EngineProgram], engine: str) -> dict[str, float]:
    """Terms that follow from programs."""
    terms = _statements([start for one in ran for start in one.starts])
    rows, late = _periods(ran, engine, terms)
    further = smallest_errors(lambda _: (rows, late), np.ones(2)) if len(rows) else np.zeros(2)
    return {**terms, "turn": float(further[0]), "uneven": float(further[1])}


def engine_programs(bare: Target, engine: str, seed: int, progress: Progress = quiet) -> list[EngineProgram]:
    """Layers for an engine whose starts take nothing, as they ran, program by program."""
    kernels = [kernel for kernel in bare.kernels if kernel.engine == engine]
    of_cores = [kernel for kernel in bare.kernels if kernel.engine == bare.cores.name]
    random = np.random.default_rng([zlib.crc32(engine.encode()), seed])
    found: list[EngineProgram] = []
    number = 0
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        bench = Bench(Path(scratch))
        while number < PROGRAMS + min(MOST_MISSES, len(found)) and len(found) < PROGRAMS:
            progress(engine, len(found), PROGRAMS)
            kernel, turn = kernels[number % len(kernels)], number // len(kernels)
            # One layer alone: the first job of a further one may be started before the last of that before it is done.
            layers = draw_layers(kernel, 1, random, bare.kernels, turn)
            # Of the engine's kernels this one is chosen; layers that the cores compute faster are left out.
            alone = replace(bare, kernels=(kernel, *of_cores))
            planned = bench.planned(alone, layers, number, engine=engine) if layers else None
            number += 1
            if planned is not None and any(choice.engine == engine for choice in planned.choices):
                marked = _Marked(engine)
                program = marked.program(lower(planned))
                passed, cycles = bench.marks(planned, program, layers)
                found.append(EngineProgram(planned, tuple(_seen(marked.starts, passed)), cycles))
    progress(engine, PROGRAMS, PROGRAMS)
    if len(found) < LEAST_PROGRAMS:
        raise TilewrightError(
            "no-samples",
            f"engine '{engine}' of '{bare.name}' cannot be calibrated",
            reasons=[f"{len(found)} of {number} programs made from examples of its operators ran on it"],
            help="add examples to the declarations of the operators that it takes",
        )
    return found


class _Marked:
    """Puts marks around statements that start work on an engine, instead of all others."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self.starts: list[tuple[int, StartEngine]] = []
        """With the number of their group, by that of their marks."""

    def program(self, program: Program) -> Program:
        routines = enumerate(program.routines)
        return replace(
            program, routines=tuple(replace(own, body=self._statements(number, own.body)) for number, own in routines)
        )

    def _statements(self, group: int, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(made for statement in statements for made in self._statement(group, statement))

    def _statement(self, group: int, statement: Statement) -> Iterator[Statement]:
        match statement:
            case Mark():
                pass
            case StartEngine(engine=engine, beside=beside) if engine == self._engine:
                number = len(self.starts)
                self.starts.append((group, statement))
                yield Mark(number, "start")
                yield replace(statement, beside=(Mark(number, "made"), *self._statements(group, beside)))
            case If(body=body) | For(body=body) | Driven(body=body):
                yield replace(statement, body=self._statements(group, body))
            case OnCores(beside=beside) | StartEngine(beside=beside):
                yield replace(statement, beside=self._statements(group, beside))
            case _:
                yield statement


def _seen(starts: Sequence[tuple[int, StartEngine]], passed: Sequence[Passage]) -> Iterator[Started]:
    """When each start of a program began, and what it took."""
    times: dict[int, list[tuple[int, int]]] = {}
    begun = 0
    for time, place in passed:
        if place.name == "start":
            begun = time
        elif place.name == "made" and time > begun:
            # Where nothing lies between two marks, who jumps there passes both.
            times.setdefault(place.group, []).append((begun, time - begun))
    for number, pairs in times.items():
        yield Started(*starts[number], tuple(at for at, _ in pairs), tuple(took for _, took in pairs))


def _statements(starts: Sequence[Started]) -> dict[str, float]:
    """What statements take that start one job, and what their code does that comes into the caches."""
    single = [start for start in starts if start.whole and start.statement.single]
    # Where none was started twice, it takes as long each time as at first.
    again = [time for start in single for time in start.took[1:]] or [start.took[0] for start in single]
    fork = median(again) if again else 0.0
    goes = [time for start in starts if not start.statement.body for time in start.took]
    go = median(goes) if goes else 0.0
    # Of several jobs, all but the last are done by then: at the second step, too.
    first = [float(start.took[0] - start.took[1]) for start in starts if start.whole and len(start.took) > 1]
    described = [start.took[0] + go - fork for start in starts if not start.statement.goes]
    return {"fork": fork, "begin": max(median([*first, *described] or [0.0]), 0.0), "go": go}


def _periods(ran: Sequence[EngineProgram], engine: str, terms: Mapping[str, float]) -> tuple[Array, Array]:
    """Of groups of several steps: whether sizes are known at run time only, and by how much a step begins later than
    follows from statements alone."""
    rows: list[tuple[float, float]] = []
    late: list[float] = []
    for one in ran:
        timeline = _timeline(one, engine, terms)
        for start in one.starts:
            costs = timeline.groups[start.group].place.part.costs
            if start.whole and len(start.begun) == costs.steps > 1:
                bars = (bar.start for bar in timeline.bars(start.group, costs.steps) if bar.lane == engine)
                predicted, turns = list(bars), costs.steps - 1
                rows.append((1.0, float(np.any(costs.priced.grid.uneven))))
                late.append((start.begun[-1] - start.begun[0] - predicted[-1] + predicted[0]) / turns)
    return np.array(rows), np.array(late)
