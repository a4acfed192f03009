"""Which engine computes what: all allocations where they are few, otherwise local search from several starts.

Every step evaluates a whole schedule. The same seed gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, prod
from random import Random
from typing import Literal, TypeAlias

import numpy as np

from tilewright.errors import TilewrightError
from tilewright.schedule.scheduling import NodeCosts, Scheduling, Summary

Objective: TypeAlias = Literal["latency", "energy", "edp"]
HEAT, COOLING = 0.05, 0.001
"""The part by which an allocation may be worse to be taken half of the time or so, at the beginning and at the end."""
RUN = 0.3
"""Of changes, how many give one engine to a run of groups instead of to a single one."""


@dataclass(frozen=True)
class Tried:
    """An allocation and what it comes to."""

    places: tuple[int, ...]
    latency: int
    energy: float

    @property
    def product(self) -> float:
        return self.latency * self.energy


@dataclass(frozen=True)
class AllocationResult:
    """What was found."""

    best: Tried
    front: tuple[Tried, ...]
    """By increasing latency: those that no other one beats in both latency and energy."""
    evaluated: int
    exhaustive: bool
    """Whether all allocations were evaluated."""


def choices(scheduling: Scheduling, costs: NodeCosts, engines: Mapping[str, Sequence[str]]) -> list[tuple[int, ...]]:
    """By group: the places that it may have, of the engines that are named for its operation.

    Where an operation has as many slices as engines, each slice has the engine of its number.
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
        if 1 < slices[name] == len(named):
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


def value(tried: Tried | Summary, objective: Objective) -> float:
    """What is less of a better one."""
    if objective == "latency":
        return float(tried.latency)
    return tried.energy if objective == "energy" else tried.latency * tried.energy


class _Memo:
    """Evaluates, and remembers what it was asked."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._scheduling = scheduling
        self.known: dict[tuple[int, ...], Tried | None] = {}
        self.why: TilewrightError | None = None

    def __call__(self, places: Sequence[int]) -> Tried | None:
        """None where it cannot be scheduled."""
        key = tuple(places)
        if key not in self.known:
            try:
                found = self._scheduling.evaluate(np.array(key, np.int64))
                self.known[key] = Tried(key, found.latency, found.energy)
            except TilewrightError as error:
                self.why = self.why or error
                self.known[key] = None
        return self.known[key]

    def result(self, objective: Objective, exhaustive: bool) -> AllocationResult:
        found = sorted((t for t in self.known.values() if t), key=lambda t: (t.latency, t.energy, t.places))
        if not found:
            assert self.why is not None
            raise self.why
        front: list[Tried] = []
        for tried in found:
            if not front or tried.energy < front[-1].energy:
                front.append(tried)
        best = min(found, key=lambda t: (value(t, objective), t.latency, t.energy, t.places))
        return AllocationResult(best, tuple(front), len(self.known), exhaustive)


def search(
    scheduling: Scheduling,
    costs: NodeCosts,
    allowed: Sequence[tuple[int, ...]],
    objective: Objective = "latency",
    evaluations: int = 1000,
    seed: int = 0,
    *,
    first: Sequence[int] = (),
    progress: Callable[[str], None] = lambda _stage: None,
) -> AllocationResult:
    """The best allocation within some evaluations; `first` is one to start from beside others."""
    memo = _Memo(scheduling)
    if prod(map(len, allowed)) <= evaluations:
        for number, places in enumerate(product(*allowed)):
            memo(places)
            if number % 256 == 0:
                progress(f"{number} allocations")
        return memo.result(objective, exhaustive=True)
    random = Random(seed)
    starts = [list(start) for start in (first, *_starts(scheduling, costs, allowed, objective)) if start]
    # Every start is improved for as long; the last one is the best of all so far.
    each = max(evaluations // (len(starts) + 1), 1)
    for start in (*starts, []):
        begin = start or list(memo.result(objective, exhaustive=False).best.places)
        most = evaluations if not start else min(len(memo.known) + each, evaluations)
        progress(f"{len(memo.known)} of {evaluations} allocations")
        _improve(memo, begin, allowed, objective, most, random)
    return memo.result(objective, exhaustive=False)


def _starts(
    scheduling: Scheduling, costs: NodeCosts, allowed: Sequence[tuple[int, ...]], objective: Objective
) -> Iterator[tuple[int, ...]]:
    """Each group where it is best by itself, and all on one engine where they may be there."""
    nodes = scheduling.nodes
    shape = (len(nodes.groups), len(scheduling.fabric.places))
    cycles, energy = np.zeros(shape), np.zeros(shape)
    np.add.at(cycles, nodes.group, costs.cycles[nodes.kind])
    np.add.at(energy, nodes.group, (costs.energy + costs.far_energy)[nodes.kind])
    alone = {"latency": cycles, "energy": energy}.get(objective, cycles * energy)
    best = tuple(min(places, key=lambda place: alone[group, place]) for group, places in enumerate(allowed))
    yield best
    for engine in sorted({place for places in allowed for place in places if len(places) > 1}):
        yield tuple(engine if engine in places else best[group] for group, places in enumerate(allowed))


def _improve(
    memo: _Memo,
    places: list[int],
    allowed: Sequence[tuple[int, ...]],
    objective: Objective,
    most: int,
    random: Random,
) -> None:
    """Changes a little at a time, and takes worse ones the less the longer it runs."""
    movable = [group for group, some in enumerate(allowed) if len(some) > 1]
    current = memo(places)
    first, idle = len(memo.known), 0
    while len(memo.known) < most and idle < 50 * len(movable):
        part = (len(memo.known) - first) / max(most - first, 1)
        heat = HEAT * (COOLING / HEAT) ** part
        changed = list(places)
        at = random.choice(movable)
        to = random.choice([place for place in allowed[at] if place != places[at]])
        length = random.randint(2, max(2, len(movable) // 3)) if random.random() < RUN else 1
        for group in movable[movable.index(at) :][:length]:
            if to in allowed[group]:
                changed[group] = to
        before = len(memo.known)
        tried = memo(changed)
        idle = 0 if len(memo.known) > before else idle + 1
        if tried is None:
            continue
        if current is None or random.random() < exp(
            min(0.0, (1 - value(tried, objective) / value(current, objective)) / heat)
        ):
            places, current = changed, tried
