"""How often each operation occurs in a loop nest, and the cycles of all that fit what nests took best.

Prices of nests are linear in what a platform says of operations: an operation occurs as often as a nest takes cycles
where that takes one and all others none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group
from tilewright.core.tiles import left
from tilewright.machine.target import Target, with_times
from tilewright.price.grid import Cut, Grid
from tilewright.price.least_squares import smallest_errors, without_far
from tilewright.price.tasks import task
from tilewright.price.tiles import start_cycles, work_cycles
from tilewright.price.transfers import due

STRUCTURE = (
    *("begin nest", "begin loop", "begin operation", "begin function"),
    *("operand", "loop", "meet", "meet real", "meet divide"),
)
"""What nests take besides operations of their expressions."""


class NestSeen(Struct, frozen=True):
    """A loop nest with the cycles of the cores for it."""

    first: Mapping[str, float]
    """How often each operation occurs at its first step."""
    others: Mapping[str, float]
    """At all others together."""
    cycles: tuple[int, int]
    """Of the first step, and of all others."""
    start: tuple[float, float]
    """Those of them to start the cores."""

    def error(self, costs: Mapping[str, float]) -> float:
        """How far cycles that are predicted with some costs are off, as a share of those measured."""
        found = sum(
            count * costs.get(name, 0.0) for counts in (self.first, self.others) for name, count in counts.items()
        )
        return (found + sum(self.start)) / sum(self.cycles) - 1


def nest_seen(
    graph: Graph, platform: Target, choices: Sequence[Choice], group: Group, cycles: Sequence[int]
) -> NestSeen:
    """A group of one nest whose steps took so many cycles."""
    (work,) = group.works
    mine = task(graph, graph.nodes[work.step], choices[work.step].kernel)
    cuts = [Cut(loop.dim, mine.member.domain.dims[loop.dim], (loop.size,)) for loop in group.loops]
    grid = Grid([mine.member], cuts, group.keep, len(cuts) - 1)
    rest = {name: stop - start for name, (start, stop) in left(mine.member, group.inlaid(work)).items()}
    when = due(grid, grid.moves(tuple(grid.projection.ranges[0].values())), range(grid.rank))
    first: dict[str, float] = {}
    others: dict[str, float] = {}
    fork = platform.cores.fork if work.split else 0.0
    plain = with_times(platform, {f"{platform.cores.name}.fork": 0.0})
    for name in dict.fromkeys((*STRUCTURE, *(name for name, _ in mine.nest.items))):
        one = replace(plain, operations=MappingProxyType({name: 1.0}))
        each = start_cycles(grid, one, mine, work.split)
        each = when * (each + work_cycles(grid, one, 0, mine, work.split, work.chunk, rest=rest))
        first[name] = float(grid.corner(each, last=False).sum())
        others[name] = float(grid.total(each).sum()) - first[name]
    return NestSeen(first, others, (cycles[0], sum(cycles[1:])), (fork, fork * (len(cycles) - 1)))


def solved_nests(seen: Sequence[NestSeen]) -> dict[str, float]:
    """Cycles of all operations with the smallest relative errors.

    Nests that are far off have something that no operation says, and decide nothing.
    """
    names = sorted({name for one in seen for name, count in one.first.items() if count})
    return without_far(seen, lambda usual: _solved(usual, names))


def _solved(seen: Sequence[NestSeen], names: Sequence[str]) -> dict[str, float]:
    rows = [row for one in seen for row in zip((one.first, one.others), one.cycles, one.start, strict=True) if row[1]]
    matrix = np.array([[counts.get(name, 0.0) for name in names] for counts, _, _ in rows])
    target = np.array([cycles - start for _, cycles, start in rows])
    solution = smallest_errors(lambda _: (matrix, target), np.ones(len(names)))
    return dict(zip(names, solution.tolist(), strict=True))
