"""Terms of a kernel's header for the steps of a group, and the coefficients that fit what these took best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group
from tilewright.core.tiles import left
from tilewright.machine.kernel import Kernel, named
from tilewright.machine.target import Target
from tilewright.price.formulas import evaluate
from tilewright.price.grid import Array, Cut, Grid, Value
from tilewright.price.least_squares import smallest_errors
from tilewright.price.operations import begun
from tilewright.price.operations import cycles as operation_cycles
from tilewright.price.tasks import Task, task
from tilewright.price.tiles import kernel_names, part_sizes
from tilewright.price.transfers import due

BEGIN, FUSED, AGAIN, SEVERAL = "begin", "fused", "again", "several"
"""What the first call of a kernel takes more: always, where something is fused behind it, where it ran before, and
where there are several calls, whose code is for all of them."""
FIRST_CALL = (BEGIN, FUSED, AGAIN, SEVERAL)


class Terms(Struct, frozen=True, eq=False):
    """How often each term of a kernel occurs at the steps of a group, over classes."""

    grid: Grid
    parts: tuple[tuple[Array, ...], ...]
    """For the largest part that a core has, and for what is left over for the last."""
    start: float
    """Cycles of each step that are none of the kernel's own: those to start the cores."""
    steps: float
    """Cycles in which the code of what is fused behind it comes into the caches."""
    fused: bool
    _known: dict[bytes, tuple[Array, Array]] = field(default_factory=dict[bytes, "tuple[Array, Array]"])
    """Sums, by where the last core is slower than others."""

    def sums(self, coefficients: Array) -> tuple[Array, Array]:
        """At the first step, and at all others, of the core that is the slowest one with these coefficients.

        Behind those of the terms there may be more.
        """
        parts, last = self.parts[0], self.parts[-1]
        costs = [sum((c * v for c, v in zip(coefficients, part, strict=False)), 0.0) for part in (parts, last)]
        slower = np.asarray(costs[1] > costs[0])
        key = slower.tobytes()
        if key not in self._known:
            chosen = [np.where(slower, b, a) for a, b in zip(parts, last, strict=True)]
            first = np.array([float(self.grid.corner(values, last=False).sum()) for values in chosen])
            total = np.array([float(self.grid.total(values).sum()) for values in chosen])
            self._known[key] = first, total - first
        return self._known[key]


def group_terms(graph: Graph, platform: Target, choices: Sequence[Choice], group: Group) -> Terms:
    """The terms of a group of one node that a kernel with terms computes."""
    (work,) = group.works
    mine = task(graph, graph.nodes[work.step], choices[work.step].kernel)
    cuts = [Cut(loop.dim, mine.member.domain.dims[loop.dim], (loop.size,)) for loop in group.loops]
    grid = Grid([mine.member], cuts, group.keep, len(cuts) - 1)
    whole = {use.key for use in mine.member.uses if use.key not in work.buffers}
    rest = {name: stop - start for name, (start, stop) in left(mine.member, group.inlaid(work)).items()}
    sizes = part_sizes(grid, 0, work.split, work.chunk, rest)
    found: list[Mapping[str, Value]] = [sizes]
    if work.split:
        total, own = part_sizes(grid, 0, "", 0, rest)[work.split], sizes[work.split]
        last = total - (np.maximum(total, 1) - 1) // np.maximum(own, 1) * own
        if not np.all(last == own):
            found.append(sizes | {work.split: last})
    when = due(grid, grid.moves(tuple(grid.projection.ranges[0].values())), range(grid.rank))
    parts = tuple(_values(grid, platform, mine, work.split, part, whole, when, sizes) for part in found)
    cold = operation_cycles(begun(mine.steps), platform.fused)
    return Terms(grid, parts, platform.cores.fork if work.split else 0.0, cold, bool(mine.steps))


def _values(
    grid: Grid,
    platform: Target,
    mine: Task,
    split: str,
    sizes: Mapping[str, Value],
    whole: set[str],
    when: Array,
    largest: Mapping[str, Value],
) -> tuple[Array, ...]:
    assert mine.kernel is not None
    names = kernel_names(grid, platform, 0, mine, split, sizes, whole, largest.get(split))
    points = grid.product(list(sizes.values()))
    with named(mine.kernel, "cycles"):
        found = [evaluate(text, names) for text in mine.kernel.terms.values()]
    return tuple(when * np.where(points > 0, value, 0.0) for value in found)


# What was measured


class Observation(Struct, frozen=True, eq=False):
    """A layer with the cycles of the cores for it."""

    terms: Terms
    first: int
    """At its first step."""
    others: int
    """At all others together."""
    cold: bool
    """Whether no layer before it ran the same kernel."""
    several: bool
    """Whether others of its program run it."""
    steps: int
    caches: bool = True
    """Whether cycles were seen, in which code comes into caches. Instructions are as many at a first call."""

    def rows(self, coefficients: Array) -> tuple[tuple[Array, float], ...]:
        """Numbers of terms and of first calls, with the cycles that they took."""
        first, others = self.terms.sums(coefficients)
        kinds = (self.cold, self.cold and self.terms.fused, not self.cold, self.cold and self.several)
        kind = np.array(kinds, float) * self.caches
        start = self.terms.start
        found = [(np.concatenate([first, kind]), self.first - start - self.terms.steps * self.cold)]
        if self.steps > 1:
            found.append((np.concatenate([others, kind * 0]), self.others - start * (self.steps - 1)))
        return tuple(found)

    def error(self, coefficients: Array) -> float:
        """How far cycles that are predicted with some coefficients are off, as a share of those measured."""
        rows = self.rows(coefficients)
        return sum(float(row @ coefficients) - cycles for row, cycles in rows) / (self.first + self.others)


def solved(kernel: Kernel, observed: Sequence[Observation]) -> Array:
    """Coefficients of the terms of a kernel, then those of first calls, with the smallest relative errors."""

    def rows(found: Array) -> tuple[Array, Array]:
        pairs = [row for one in observed for row in one.rows(found)]
        return np.array([row for row, _ in pairs]), np.array([cycles for _, cycles in pairs])

    return smallest_errors(rows, np.ones(len(kernel.terms) + len(FIRST_CALL)))
