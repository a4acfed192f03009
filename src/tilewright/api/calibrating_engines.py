"""Calibrate: what it takes to start work on an engine beside the cores, seen in layers that it computes.

The core that drives passes a mark before and behind each statement that starts work there. At the first passage its
code comes into the caches.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.api.bench import Bench, Passage, Progress, compiler_of, quantiles, quiet, rounded
from tilewright.api.sampled_layers import draw_layers
from tilewright.codegen import lower
from tilewright.core.program import Driven, For, If, Mark, OnCores, Program, StartEngine, Statement
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import COMPILER, START_TERMS, Calibration
from tilewright.machine.staleness import engine_key
from tilewright.machine.target import Target, with_times

PROGRAMS = 48
"""In all, of an engine's kernels in turn."""
LEAST_PROGRAMS = 5
MOST_MISSES = 40
"""Programs that may come to nothing."""
Seen = dict[str, list[float]]
"""Cycles of starts by what was seen: of code in the caches (`again`), of code that came there (`first`), of jobs that had
been described (`go`), and of the code that did so (`described`)."""


def measured_engine(platform: Target, engine: str, seed: int = 0, progress: Progress = quiet) -> Calibration:
    """Runs layers and looks at starts. What was measured before plays no part in their plans."""
    kernels = [kernel for kernel in platform.kernels if kernel.engine == engine]
    of_cores = [kernel for kernel in platform.kernels if kernel.engine == platform.cores.name]
    random = np.random.default_rng([zlib.crc32(engine.encode()), seed])
    bare = with_times(platform, {f"{engine}.{name}": 0 for name in START_TERMS})
    seen: Seen = {"again": [], "first": [], "go": [], "described": []}
    number = found = 0
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        bench = Bench(Path(scratch))
        while number < PROGRAMS + min(MOST_MISSES, found) and found < PROGRAMS:
            progress(engine, found, PROGRAMS)
            kernel, turn = kernels[number % len(kernels)], number // len(kernels)
            layers = draw_layers(kernel, 1, random, platform.kernels, turn)
            # Of the engine's kernels this one is chosen; layers that the cores compute faster are left out.
            alone = replace(bare, kernels=(kernel, *of_cores))
            planned = bench.planned(alone, layers, number, engine=engine) if layers else None
            number += 1
            if planned is not None and any(choice.engine == engine for choice in planned.choices):
                marked = _Marked(engine)
                program = marked.program(lower(planned))
                _look(marked.starts, bench.marks(planned, program, layers), seen)
                found += 1
    progress(engine, PROGRAMS, PROGRAMS)
    if found < LEAST_PROGRAMS:
        raise TilewrightError(
            "no-samples",
            f"engine '{engine}' of '{platform.name}' cannot be calibrated",
            reasons=[f"{found} of {number} programs made from examples of its operators ran on it"],
            help="add examples to the declarations of the operators that it takes",
        )
    return _solved(platform, engine, seen)


def _solved(platform: Target, engine: str, seen: Seen) -> Calibration:
    go = median(seen["go"]) if seen["go"] else 0.0
    first = [*seen["first"], *(described + go for described in seen["described"])]
    fork = median(seen["again"] or first)
    terms = {"fork": fork, "begin": max(median(first) - fork, 0.0), "go": go}
    pairs = ((fork, seen["again"]), (fork + terms["begin"], first), (go, seen["go"]))
    errors = [time / cycles - 1 for cycles, times in pairs for time in times if cycles]
    return Calibration(
        MappingProxyType({**engine_key(platform, engine), COMPILER: compiler_of(platform)}),
        MappingProxyType({name: rounded(terms[name]) for name in START_TERMS}),
        shapes=len(errors),
        held_out=MappingProxyType(quantiles(errors)),
    )


class _Marked:
    """Puts marks around statements that start work on an engine, instead of all others."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self.starts: list[StartEngine] = []
        """By the number of their marks."""

    def program(self, program: Program) -> Program:
        routines = (replace(routine, body=self._statements(routine.body)) for routine in program.routines)
        return replace(program, routines=tuple(routines))

    def _statements(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(made for statement in statements for made in self._statement(statement))

    def _statement(self, statement: Statement) -> Iterator[Statement]:
        match statement:
            case Mark():
                pass
            case StartEngine(engine=engine, beside=beside) if engine == self._engine:
                number = len(self.starts)
                self.starts.append(statement)
                yield Mark(number, "start")
                yield replace(statement, beside=(Mark(number, "made"), *self._statements(beside)))
            case If(body=body) | For(body=body) | Driven(body=body):
                yield replace(statement, body=self._statements(body))
            case OnCores(beside=beside) | StartEngine(beside=beside):
                yield replace(statement, beside=self._statements(beside))
            case _:
                yield statement


def _look(starts: Sequence[StartEngine], passed: Sequence[Passage], seen: Seen) -> None:
    """Adds what the starts of a program took."""
    took: dict[int, list[float]] = {}
    begun = 0
    for time, place in passed:
        if place.name == "start":
            begun = time
        elif place.name == "made":
            took.setdefault(place.group, []).append(time - begun)
    for number, times in took.items():
        start = starts[number]
        if not start.goes:
            seen["described"] += times
        elif not start.body:
            seen["go"] += times
        else:
            seen["first"] += times[:1]
            seen["again"] += times[1:]
