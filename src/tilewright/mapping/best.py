"""The best mapping of a layer over several ways to unroll it, and of many layers at once."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from types import MappingProxyType

from tilewright.core.accelerator import ArrayEngine
from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer
from tilewright.errors import TilewrightError
from tilewright.mapping.batch import Evaluator
from tilewright.mapping.bounds import Bounds
from tilewright.mapping.goals import Objective, Wanted
from tilewright.mapping.search import Effort, Search, SearchResult, check_room, new_goal
from tilewright.mapping.tables import Problem, problem


def _frozen(items: dict[object, object]) -> MappingProxyType[object, object]:
    return MappingProxyType(items)


def _reduced(
    frozen: MappingProxyType[object, object],
) -> tuple[Callable[..., MappingProxyType[object, object]], tuple[object]]:
    return _frozen, (dict(frozen),)


# Layers and machines hold frozen dictionaries, which Python does not send to other processes by itself.
copyreg.pickle(MappingProxyType, _reduced)


@dataclass(frozen=True)
class BestMapping:
    """A mapping in space and time with its cost."""

    spatial: SpatialMapping
    temporal: TemporalMapping
    energy: float
    latency: float

    @property
    def product(self) -> float:
        return self.energy * self.latency


@dataclass(frozen=True)
class BestResult:
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


@dataclass(frozen=True)
class Job:
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
    ranked = _ranked([problem(layer, engine, spatial, corrected=corrected) for spatial in spatials], objective, wanted)
    goal = new_goal(objective, wanted, ranked[0].problem)
    found: dict[tuple[float, float], BestMapping] = {}
    results: list[SearchResult] = []
    for one in ranked:
        spent = sum(result.seconds for result in results)
        tried = sum(result.evaluated for result in results)
        left = replace(effort, seconds=effort.seconds - spent, mappings=effort.mappings - tried)
        result = Search(one.problem, objective, wanted, left, goal, one).run()
        results.append(result)
        for new in result.best:
            key = (new.latency, new.energy)
            found.setdefault(key, BestMapping(one.problem.spatial, new.mapping, new.energy, new.latency))
    return BestResult(
        best=tuple(found[key] for key in goal.found),
        bound=min(result.bound for result in results),
        proved=all(result.proved for result in results),
        covered=sum(result.covered for result in results),
        evaluated=sum(result.evaluated for result in results),
        seconds=sum(result.seconds for result in results),
    )


def _ranked(problems: Sequence[Problem], objective: Objective, wanted: Wanted) -> list[Bounds]:
    """Of those with room for a mapping, the most promising first."""
    fitting: list[Problem] = []
    why: TilewrightError | None = None
    for one in problems:
        try:
            check_room(one, wanted)
            fitting.append(one)
        except TilewrightError as error:
            why = why or error
    if not fitting:
        raise why or TilewrightError("no-mapping", "nothing can be unrolled: there are no spatial mappings to try")
    goal = new_goal(objective, wanted, fitting[0])
    bounds = [Bounds(Evaluator(one), wanted) for one in fitting]
    return sorted(bounds, key=lambda found: goal.rank(*found.root))


def best_mappings(jobs: Sequence[Job], workers: int = 1) -> list[BestResult]:
    """Of many layers; equal ones are searched once, and the number of processes changes nothing but the time."""
    different = list({_key(job): job for job in jobs}.items())
    if workers <= 1:
        results = [_run(job) for _, job in different]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            results = list(pool.map(_run, [job for _, job in different]))
    by_key = {key: result for (key, _), result in zip(different, results, strict=True)}
    return [by_key[_key(job)] for job in jobs]


def _run(job: Job) -> BestResult:
    return best_mapping(
        job.layer, job.engine, job.spatials, job.objective, job.wanted, job.effort, corrected=job.corrected
    )


def _key(job: Job) -> str:
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
