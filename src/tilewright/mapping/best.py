"""The best mapping of a layer over several ways to unroll it, and of many layers at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from math import inf
from multiprocessing import get_context

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer
from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine
from tilewright.mapping.floors import Floors
from tilewright.mapping.goals import Goal, Objective, Wanted
from tilewright.mapping.lattice import Lattice
from tilewright.mapping.results import Effort, Found, SearchResult
from tilewright.mapping.search import Search, new_goal
from tilewright.mapping.strategies import loma
from tilewright.mapping.tables import Problem, problem

USUAL_FACTORS = 6
"""Loops of the orders that other tools look at."""
FEW = 8
"""Spatial mappings that are bounded closely even if the effort is spent."""


class BestMapping(Struct, frozen=True):
    """A mapping in space and time with its cost."""

    spatial: SpatialMapping
    temporal: TemporalMapping
    energy: float
    latency: float

    @property
    def product(self) -> float:
        return self.energy * self.latency


class BestResult(Struct, frozen=True):
    """What was found, and what is known about the rest."""

    best: tuple[BestMapping, ...]
    """One mapping, or by increasing latency all that no other one beats; none if nothing keeps to what is wanted."""
    bound: float
    """No mapping is better (latency, energy or their product; 0 for a Pareto front that was cut short)."""
    proved: bool
    covered: int
    """Mappings that this holds for."""
    evaluated: int
    seconds: float
    """Of the processor."""


class MappingJob(Struct, frozen=True):
    """A layer to map."""

    layer: Layer
    engine: ArrayEngine
    spatials: tuple[SpatialMapping, ...]
    objective: Objective = "latency"
    wanted: Wanted = field(default_factory=Wanted)
    effort: Effort = field(default_factory=Effort)
    corrected: bool = False


def best_mapping(
    layer: Layer,
    engine: ArrayEngine,
    spatials: Sequence[SpatialMapping],
    objective: Objective = "latency",
    wanted: Wanted | None = None,
    effort: Effort | None = None,
    *,
    corrected: bool = False,
) -> BestResult:
    """Of all mappings in time with one of these in space; those that promise most are searched first."""
    wanted, effort = wanted or Wanted(), effort or Effort()
    waiting = _ranked(layer, engine, spatials, objective, corrected)
    goal: Goal | None = None
    why: TilewrightError | None = None
    found: dict[tuple[float, float], BestMapping] = {}
    results: list[SearchResult] = []
    bound, proved = inf, True
    for (energy, latency), spatial in waiting:
        if goal is not None and not bool(goal.hopeful(np.array(energy), np.array(latency))):
            continue
        left = _left(effort, results)
        if goal is not None and goal.found and len(results) >= FEW and min(left.seconds, left.mappings, left.steps) < 0:
            bound, proved = min(bound, goal.rank(energy, latency)[0]), False
            continue
        one = problem(layer, engine, spatial, corrected=corrected)
        goal = goal or new_goal(objective, wanted, one)
        try:
            result = Search(one, objective, wanted, left, goal).run()
        except TilewrightError as error:
            why = why or error
            continue
        results.append(result)
        bound, proved = min(bound, result.bound), proved and result.proved
        for new in (*result.best, *(() if result.proved else _otherwise(one, objective, wanted, goal))):
            key = (new.latency, new.energy)
            found.setdefault(key, BestMapping(spatial, new.mapping, new.energy, new.latency))
    if not results or goal is None:
        raise why or TilewrightError(
            "no-mapping",
            "nothing can be unrolled: there are no spatial mappings to try",
            help="let the layer be unrolled over at least one loop, or in another way",
        )
    return BestResult(
        best=tuple(found[key] for key in goal.found),
        bound=bound if proved or objective != "pareto" else 0.0,
        proved=proved,
        covered=sum(_covered(layer, engine, spatial) for spatial in spatials),
        evaluated=sum(result.evaluated for result in results),
        seconds=sum(result.seconds for result in results),
    )


def _otherwise(one: Problem, objective: Objective, wanted: Wanted, goal: Goal) -> tuple[Found, ...]:
    """What all orders of a few factors give where a search was cut short, if that is better."""
    if wanted.room or wanted.bandwidth:
        return ()
    try:
        other = loma(one, objective, USUAL_FACTORS).best
    except TilewrightError:
        return ()  # what is kept where follows a simpler rule there, which may find no room
    return (other,) if goal.offer(other.energy, other.latency) else ()


def _left(effort: Effort, results: Sequence[SearchResult]) -> Effort:
    """What earlier searches left of an effort."""
    return replace(
        effort,
        seconds=effort.seconds - sum(result.seconds for result in results),
        mappings=effort.mappings - sum(result.evaluated for result in results),
        steps=effort.steps - sum(result.steps for result in results),
    )


def _ranked(
    layer: Layer, engine: ArrayEngine, spatials: Sequence[SpatialMapping], objective: Objective, corrected: bool
) -> list[tuple[tuple[float, float], SpatialMapping]]:
    """With the least that each costs (energy and latency), the most promising first."""
    rank = Goal(objective).rank
    floors = Floors(layer, engine, corrected=corrected)
    return sorted(((floors.least(spatial), spatial) for spatial in spatials), key=lambda one: rank(*one[0]))


def _covered(layer: Layer, engine: ArrayEngine, spatial: SpatialMapping) -> int:
    depths = [len(engine.levels(operand.slot)) for operand in layer.operands]
    return Lattice.of(spatial.steps(layer)).mappings(depths)


def best_mappings(jobs: Sequence[MappingJob], workers: int = 1) -> list[BestResult]:
    """Of many layers; equal ones are searched once, and the number of processes changes nothing but the time."""
    different = list({_key(job): job for job in jobs}.items())
    if workers <= 1:
        results = [_run(job) for _, job in different]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            results = list(pool.map(_run, [job for _, job in different]))
    by_key = {key: result for (key, _), result in zip(different, results, strict=True)}
    return [by_key[_key(job)] for job in jobs]


def _run(job: MappingJob) -> BestResult:
    return best_mapping(
        job.layer, job.engine, job.spatials, job.objective, job.wanted, job.effort, corrected=job.corrected
    )


def _key(job: MappingJob) -> str:
    """The same for jobs that differ in nothing but the names of layers and where operands come from."""
    layer = job.layer
    operands = [(o.slot, o.dims, o.sums, o.bits, o.final_bits, o.density) for o in layer.operands]
    names = [o.name for o in layer.operands]
    sums = sorted((name, str(found)) for name, found in layer.sums.items())
    dims = list(layer.dims.items())
    spatials = [str(spatial) for spatial in job.spatials]
    return repr(
        (dims, operands, names, sums, job.engine, spatials, job.objective, job.wanted, job.effort, job.corrected)
    )
