"""How often each operation occurs in steps behind a kernel, and the cycles of all that fit what layers took best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group
from tilewright.machine.target import Target
from tilewright.price.least_squares import smallest_errors, without_far
from tilewright.price.operations import Counts, begun, behind
from tilewright.price.operations import cycles as operation_cycles
from tilewright.price.tasks import task
from tilewright.price.terms import group_terms

LEAST_LAYERS = 8
"""Operations that fewer layers have are not solved for."""
NOTHING: Mapping[str, float] = MappingProxyType({"step": 0.0})
"""Costs of operations, all of which are free."""


class StepsSeen(Struct, frozen=True):
    """A layer with the cycles of the cores for it."""

    kernel: str
    known: tuple[float, float]
    """What takes no time of a step behind it: at the first step of the group, and at all others together."""
    counts: tuple[Counts, Counts]
    """How often each operation occurs at these."""
    cycles: tuple[int, int]
    """Of these."""

    def error(self, costs: Mapping[str, float]) -> float:
        """How far cycles that are predicted with some costs are off, as a share of those measured."""
        steps = sum(operation_cycles(counts, costs) for counts in self.counts)
        return (sum(self.known) + steps) / sum(self.cycles) - 1

    def known_by(self, names: frozenset[str], costs: Mapping[str, float]) -> StepsSeen:
        """The same where some operations take what is known."""
        own = [{name: count for name, count in counts.items() if name in names} for counts in self.counts]
        rest = [{name: count for name, count in counts.items() if name not in names} for counts in self.counts]
        known = [before + operation_cycles(mine, costs) for before, mine in zip(self.known, own, strict=True)]
        return replace(self, known=(known[0], known[1]), counts=(rest[0], rest[1]))


def steps_seen(
    graph: Graph, platform: Target, choices: Sequence[Choice], group: Group, cycles: Sequence[int]
) -> StepsSeen:
    """A group of one kernel whose steps took so many cycles. It is the first that has such code."""
    (work,) = group.works
    mine = task(graph, graph.nodes[work.step], choices[work.step].kernel)
    assert mine.kernel is not None
    measured = platform.calibrations[mine.kernel.path.name]
    coefficients = np.array([measured.terms[name] for name in mine.kernel.terms])

    def sums(costs: Mapping[str, float]) -> tuple[float, float]:
        """Cycles at the first step and at others."""
        first, others = group_terms(graph, replace(platform, fused=costs), choices, group).sums(coefficients)
        return float(first @ coefficients), float(others @ coefficients)

    first, others = sums(NOTHING)
    at_first = {**begun(mine.steps)}
    later: dict[str, float] = {}
    for name in mine.steps:
        own = behind(name, alone=not mine.domain.reduction)
        one, more = sums({**NOTHING, own: 1.0})
        at_first[own], later[own] = one - first, more - others
    start, count = platform.cores.fork if work.split else 0.0, len(cycles) - 1
    begin = measured.begin + measured.fused * bool(mine.steps)
    known = first + start + begin, others + start * count
    return StepsSeen(mine.kernel.path.name, known, (at_first, later), (cycles[0], sum(cycles[1:])))


def solved_steps(seen: Sequence[StepsSeen], usual: Mapping[str, float]) -> dict[str, float]:
    """Cycles of operations with the smallest relative errors; kernels may take some share more or less.

    Rare ones take as long as is `usual` elsewhere, and layers that are far off decide nothing.
    """
    return without_far(seen, lambda some: _solved(some, usual))


def _solved(seen: Sequence[StepsSeen], usual: Mapping[str, float]) -> dict[str, float]:
    often = Counter(name for one in seen for name, count in one.counts[0].items() if count)
    rare = frozenset(name for name, layers in often.items() if layers < LEAST_LAYERS)
    costs = {name: usual.get(name.removeprefix("alone "), 0.0) for name in rare}
    names = sorted({*often} - rare)
    kernels = sorted({one.kernel for one in seen})
    rows: list[list[float]] = []
    target: list[float] = []
    for one in seen:
        left = one.known_by(rare, costs)
        for counts, known, cycles in zip(left.counts, left.known, left.cycles, strict=True):
            if cycles:
                own = [known * (kernel == one.kernel) for kernel in kernels]
                rows.append([*(counts.get(name, 0.0) for name in names), *own])
                target.append(cycles)
    matrix, took = np.array(rows), np.array(target)
    solution = smallest_errors(lambda _: (matrix, took), np.ones(matrix.shape[1]))
    return {**costs, **dict(zip(names, solution.tolist(), strict=False))}
