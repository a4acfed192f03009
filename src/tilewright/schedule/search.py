"""Which engine computes what: all allocations where they are few, else a genetic search and a local one behind it.

Every step evaluates whole schedules, several at once. The same seed gives the same result, with any number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from math import exp, prod
from random import Random
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct, field

from tilewright.errors import TilewrightError
from tilewright.schedule.genetic import Genes, Values, evolve, mutated
from tilewright.schedule.scheduling import NodeCosts, Scheduling

Objective: TypeAlias = Literal["latency", "energy", "edp", "memory"]
OBJECTIVES: tuple[Objective, ...] = ("latency", "energy", "edp", "memory")
HEAT, COOLING = 0.05, 0.001
"""The part by which an allocation may be worse to be taken half of the time or so, at the beginning and at the end."""
POPULATION, CHAINS, BATCH = 32, 4, 256
"""Solutions of a generation, local searches at a time, and allocations that are evaluated at once."""
GENETIC = 0.4
"""Of evaluations, the part of the genetic search."""
WORST = 1e300
"""In place of what has no schedule."""
STALE = 20
"""Generations without anything new until the local search begins."""
ANEW = 0.05
"""How often the worst of the local searches goes on from the best."""
IDLE = 50
"""Steps without anything new, for each group, until it is enough."""


class Tried(Struct, frozen=True):
    """An allocation and what it comes to."""

    places: tuple[int, ...]
    latency: int
    energy: float
    memory: int
    """Bits that all memories of engines hold at most."""

    def value(self, objective: Objective) -> float:
        """What is less of a better one."""
        if objective == "edp":
            return self.latency * self.energy
        return float({"latency": self.latency, "energy": self.energy, "memory": self.memory}[objective])


class SearchOptions(Struct, frozen=True):
    """What is searched for, and how long."""

    objective: Objective = "latency"
    evaluations: int = 1000
    """Schedules that are evaluated at most."""
    seed: int = 0
    limits: Mapping[Objective, float] = field(default_factory=lambda: MappingProxyType({}))
    """What must not be exceeded."""
    workers: int = 1
    """Threads."""

    def excess(self, tried: Tried) -> float:
        """By how much limits are exceeded, as parts of them."""
        return sum(max(0.0, tried.value(name) / limit - 1) for name, limit in self.limits.items())

    def check(self, tried: Tried) -> None:
        """Refuses what does not keep to the limits."""
        wrong = [
            f"its {name} is {tried.value(name):,.0f}, the limit is {limit:,.0f}"
            for name, limit in self.limits.items()
            if tried.value(name) > limit
        ]
        if wrong:
            raise TilewrightError(
                "beyond-limits",
                "no schedule that was tried keeps to all limits",
                reasons=[f"the nearest one: {'; '.join(wrong)}"],
                help="raise the limits, allow more evaluations, or cut the network in another way",
            )

    def key(self, tried: Tried) -> tuple[float, float]:
        """Less of a better one."""
        return self.excess(tried), tried.value(self.objective)

    def taken(self, now: Tried, new: Tried, heat: float, random: Random) -> bool:
        """Whether a search goes on from a new one: from a worse one with a chance that falls with the heat."""
        chance = random.random()
        (was, old), (more, value) = self.key(now), self.key(new)
        worse = more - was if more != was else value / old - 1
        return worse <= 0 or chance < exp(-worse / heat)


class AllocationResult(Struct, frozen=True):
    """What was found."""

    best: Tried
    front: tuple[Tried, ...]
    """By increasing latency: those within the limits that no other one beats in latency, energy and memory. The one of
    least energy times latency is among them."""
    evaluated: int
    exhaustive: bool
    """Whether all allocations were evaluated."""
    stopped: bool = False
    """Whether it was interrupted."""


def choices(
    scheduling: Scheduling,
    costs: NodeCosts,
    engines: Mapping[str, Sequence[str]],
    fixed: Collection[str] = (),
) -> list[tuple[int, ...]]:
    """By group: the places that it may have, of the engines that are named for its operation.

    Where an operation in `fixed` has as many slices as engines, each slice has the engine of its number.
    """
    nodes, fabric = scheduling.nodes, scheduling.fabric
    slices: dict[str, int] = {}
    for name, _ in nodes.groups:
        slices[name] = slices.get(name, 0) + 1
    able = np.ones((len(nodes.groups), len(fabric.places)), np.bool_)
    np.logical_and.at(able, nodes.group, costs.cycles[nodes.kind] >= 0)
    found: list[tuple[int, ...]] = []
    for number, (name, part) in enumerate(nodes.groups):
        named = tuple(engines.get(name, fabric.engines))
        if name in fixed and 1 < slices[name] == len(named):
            named = named[part : part + 1]
        for engine in named:
            if engine not in fabric.engines:
                raise TilewrightError(
                    "unknown-engine",
                    f"'{name}' is to run on '{engine}', which '{fabric.name}' does not have",
                    help=f"it has {', '.join(fabric.engines)}",
                )
        places = tuple(place for place in map(fabric.places.index, named) if able[number, place])
        if not places:
            raise TilewrightError(
                "no-engine",
                f"'{name}' cannot run on {', '.join(named)}",
                help="allow an engine that can compute it, or split it into smaller nodes",
            )
        found.append(places)
    return found


class _Memo:
    """Evaluates, and remembers what it was asked."""

    def __init__(self, scheduling: Scheduling, options: SearchOptions) -> None:
        self.scheduling, self._options = scheduling, options
        self.known: dict[Genes, Tried | None] = {}
        self.best: list[Tried] = []
        """Some of the best, in their order."""

    def __call__(self, many: Sequence[Genes]) -> list[Tried | None]:
        """None where there is no schedule, or nothing may be evaluated any more."""
        new = [genes for genes in dict.fromkeys(many) if genes not in self.known]
        new = new[: max(self._options.evaluations - len(self.known), 0)]
        if new:
            rows = self.scheduling.evaluate_many(np.array(new, np.int64), self._options.workers)
            for genes, *found in zip(new, *(row.tolist() for row in rows), strict=True):
                self.known[genes] = Tried(genes, *found) if found[0] >= 0 else None
            better = [*self.best, *filter(None, (self.known[genes] for genes in new))]
            self.best = sorted(better, key=lambda t: (*self._options.key(t), t.places))[:CHAINS]
        return [self.known.get(genes) for genes in many]

    def values(self, many: Sequence[Genes]) -> tuple[Values, Values]:
        """For the genetic search; what has no schedule exceeds all limits."""
        found = self(many)
        names: tuple[Objective, ...] = ("latency", "energy", "memory")
        values = [[each.value(name) if each else WORST for name in names] for each in found]
        return np.array(values), np.array([self._options.excess(each) if each else WORST for each in found])

    def result(self, *, exhaustive: bool, stopped: bool = False) -> AllocationResult:
        if not self.best:  # evaluated once more, to say why
            self.scheduling.evaluate(np.array(next(iter(self.known)), np.int64))
        front = _front(self.known.values(), self._options)
        return AllocationResult(self.best[0], front, len(self.known), exhaustive, stopped)


def _front(known: Iterable[Tried | None], options: SearchOptions) -> tuple[Tried, ...]:
    """Without the many that another one beats, which is found in the order of latency."""
    found: list[Tried] = []
    kept = (each for each in known if each and not options.excess(each))
    for tried in sorted(kept, key=lambda t: (t.latency, t.energy, t.memory, t.places)):
        if not any(other.energy <= tried.energy and other.memory <= tried.memory for other in found):
            found.append(tried)
    return tuple(found)


def search(
    scheduling: Scheduling,
    costs: NodeCosts,
    allowed: Sequence[tuple[int, ...]],
    options: SearchOptions,
    *,
    first: Sequence[int] = (),
    progress: Callable[[str], None] = lambda _stage: None,
) -> AllocationResult:
    """The best allocation within some evaluations; `first` is one to start from beside others. An interrupt ends it
    with the best so far."""
    memo = _Memo(scheduling, options)
    exhaustive = prod(map(len, allowed)) <= options.evaluations

    sizes: list[int] = []

    def going(part: float = 1.0) -> bool:
        said = f", {options.objective} {memo.best[0].value(options.objective):,.4g}" if memo.best else ""
        progress(f"{len(memo.known):,} of {options.evaluations:,} allocations{said}")
        sizes.append(len(memo.known))
        return sizes[-1] < part * options.evaluations and sizes[-STALE:].count(sizes[-1]) < STALE

    try:
        if exhaustive:
            every = product(*allowed)
            while some := list(islice(every, BATCH)):
                memo(some)
                going()
            return memo.result(exhaustive=True)
        random = Random(options.seed)
        starts = [*([tuple(first)] if first else []), *_starts(scheduling, costs, allowed, options.objective)]
        evolve(starts, allowed, memo.values, random, min(POPULATION, options.evaluations), lambda: going(GENETIC))
        _improve(memo, allowed, options, random, going)
    except KeyboardInterrupt:
        if not memo.best:
            raise
        return memo.result(exhaustive=False, stopped=True)
    return memo.result(exhaustive=False)


def _starts(
    scheduling: Scheduling, costs: NodeCosts, allowed: Sequence[tuple[int, ...]], objective: Objective
) -> Iterator[tuple[int, ...]]:
    """Each group where it is best by itself, and all on one engine where they may be there."""
    nodes = scheduling.nodes
    shape = (len(nodes.groups), len(scheduling.fabric.places))
    cycles, energy = np.zeros(shape), np.zeros(shape)
    np.add.at(cycles, nodes.group, costs.cycles[nodes.kind])
    np.add.at(energy, nodes.group, (costs.energy + costs.far_energy)[nodes.kind])
    alone = {"latency": cycles, "energy": energy, "memory": energy}.get(objective, cycles * energy)
    best = tuple(min(places, key=lambda place: alone[group, place]) for group, places in enumerate(allowed))
    yield best
    for engine in sorted({place for places in allowed for place in places if len(places) > 1}):
        yield tuple(engine if engine in places else best[group] for group, places in enumerate(allowed))


def _improve(
    memo: _Memo,
    allowed: Sequence[tuple[int, ...]],
    options: SearchOptions,
    random: Random,
    report: Callable[[], object],
) -> None:
    """Several of the best are changed a little at a time, side by side, and worse ones are taken the less the longer it
    runs; the worst starts anew from the best of all now and then."""
    movable = [group for group, some in enumerate(allowed) if len(some) > 1]
    chains = list(memo.best)
    begin, idle = len(memo.known), 0
    while chains and len(memo.known) < options.evaluations and idle < IDLE * len(movable):
        before = len(memo.known)
        heat = HEAT * (COOLING / HEAT) ** ((before - begin) / (options.evaluations - begin))
        tried = memo([mutated(chain.places, movable, allowed, random) for chain in chains])
        idle = 0 if len(memo.known) > before else idle + 1
        for number, (now, new) in enumerate(zip(chains, tried, strict=True)):
            if new is not None and options.taken(now, new, heat, random):
                chains[number] = new
        if random.random() < ANEW:
            worst = max(range(len(chains)), key=lambda number: options.key(chains[number]))
            chains[worst] = memo.best[0]
        report()
