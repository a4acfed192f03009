"""Ways to run a group of nodes tile by tile: which dimensions are cut, how finely, in which order, with which buffers.

All tile sizes of a group are evaluated at once by `cost.grid`; only those that are worth their bytes become groups. The
tiling that needs the fewest bytes of all is always among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group
from tilewright.core.platform import Platform
from tilewright.core.tiles import Member
from tilewright.cost.grid import Clash, Cut, Grid
from tilewright.cost.tiles import engine_of, task
from tilewright.plan.tiling_groups import Problem, Tilings, built, evaluated
from tilewright.plan.tiling_rules import Impossible, rules, tile_sizes

MOST_CUTS = 3
"""Dimensions cut at once in a group of one node; the tiling of the fewest bytes may cut all."""
MOST_CUTS_FUSED = 2
GAIN = 0.97
"""A point of the front has at most this share of the cycles of the one before it."""


@dataclass(frozen=True)
class Tiling:
    """What the surroundings of a group ask of its tiles."""

    buffers: int = 0
    """Slots of every buffer that is loaded or stored more than once; 0 tries one and two."""
    max_extra_macs: float = 0.4
    """How much of the group's work may be computed twice, as a fraction of it."""
    source: Mapping[str, str] = field(default_factory=dict[str, str])
    """The memory in which each tensor from outside is; one that is not named is in the engine's."""
    capacity: int = 1 << 62
    """Bytes of the engine's memory that the group may take."""


@dataclass(frozen=True)
class Candidate:
    """One way to run a group."""

    group: Group
    """Offsets count from the start of its workspace."""
    bytes: int
    """Of the workspace: tile buffers with all slots, scratch of all cores."""
    cycles: float
    """Predicted."""
    moved: int
    """Bytes copied between the engine's memory and others."""
    macs: int
    """Points of all nodes, those computed twice included."""


def candidates(
    graph: Graph,
    platform: Platform,
    steps: Sequence[int],
    choices: Sequence[Choice],
    settings: Tiling,
    *,
    near: frozenset[str],
) -> tuple[Candidate, ...]:
    """Tilings of which none has fewer bytes and cycles than another, by growing bytes; empty where none is possible.

    `steps` are the nodes of the group, the last its sink. Tensors in `near` are whole in the engine's memory, or in one
    that it reads in place. More bytes than the capacity has at most one: that of the fewest bytes.
    """
    tasks = tuple(task(graph, graph.nodes[s], c.kernel) for s, c in zip(steps, choices, strict=True))
    if not _connected([t.member for t in tasks]):
        return ()
    points = sum(t.member.domain.points() for t in tasks)
    problem = Problem(
        platform,
        tuple(steps),
        tasks,
        tuple(rules(t) for t in tasks),
        near,
        settings.source,
        settings.buffers,
        points * (1 + settings.max_extra_macs),
    )
    found: list[Tilings] = []
    try:
        for grid in _grids(problem):
            found += evaluated(problem, grid)
    except Impossible:
        return ()
    return _front(found, settings.capacity)


def _connected(members: Sequence[Member]) -> bool:
    """Whether each node but the last makes one tensor, which a node behind it reads."""
    for position, mine in enumerate(members[:-1]):
        made = [use.tensor for use in mine.uses if use.writes]
        readers = (use.tensor for other in members[position + 1 :] for use in other.uses if not use.writes)
        if len(made) != 1 or made[0] not in readers:
            return False
    return True


def _grids(problem: Problem) -> Iterator[Grid]:
    """Grids that together hold all tilings to look at."""
    members = [t.member for t in problem.tasks]
    sink, asked = members[-1].domain, problem.rules[-1]
    cores = engine_of(problem.platform).count
    cuts = {
        name: Cut(name, sink.dims[name], tile_sizes(sink.dims[name], asked.blocks.get(name, 1), cores))
        for name in asked.free
    }
    limit = MOST_CUTS if len(members) == 1 else MOST_CUTS_FUSED
    pending = [tuple(names) for names in combinations(cuts, min(limit, len(cuts)))]
    ends = {name: Cut(name, cut.extent, (cut.extent, cut.sizes[-1])) for name, cut in cuts.items()}
    wide = [tuple(cuts)] if len(cuts) > limit else []
    seen: set[tuple[str, ...]] = set()
    for queue, choice in ((pending, cuts), (wide, ends)):
        while queue:
            names = queue.pop(0)
            if names in seen:
                continue
            seen.add(names)
            try:
                grid = Grid(members, [choice[name] for name in names])
            except Clash as clash:
                queue += [tuple(n for i, n in enumerate(names) if i != loop) for loop in clash.loops]
                continue
            yield grid
            if len(members) > 1:
                yield from _sweeps(grid)


def _sweeps(grid: Grid) -> Iterator[Grid]:
    """The same cuts with lines of inner tensors kept, for each loop that can run innermost."""
    for sweep in range(grid.rank):
        axes = {tensor: _kept_axis(grid, tensor, sweep) for tensor in grid.projection.held}
        keep = {tensor: axis for tensor, axis in axes.items() if axis >= 0}
        if keep:
            yield Grid(grid.members, grid.cuts, keep, sweep)


def _kept_axis(grid: Grid, tensor: str, sweep: int) -> int:
    """The axis along which lines of an inner tensor overlap from step to step, -1 where there is none."""
    moved = [axis for axis, span in enumerate(grid.projection.held[tensor]) if span.loop == sweep]
    if len(moved) != 1:
        return -1
    span = grid.projection.held[tensor][moved[0]]
    if not isinstance(span.start, np.ndarray) or not isinstance(span.stop, np.ndarray):
        return -1
    inside = ~grid.points[sweep].first[1:]
    forward = (np.diff(span.start) >= 0) & (np.diff(span.stop) >= 0)
    overlaps = span.start[1:] < span.stop[:-1]
    return moved[0] if bool(np.all(forward[inside])) and bool(np.any(overlaps[inside])) else -1


def _front(found: Sequence[Tilings], capacity: int) -> tuple[Candidate, ...]:
    """The tilings worth their bytes, as groups."""
    if not found:
        return ()
    size = np.concatenate([f.bytes.reshape(-1) for f in found])
    cycles = np.concatenate([f.cycles.reshape(-1) for f in found])
    starts = np.cumsum([0, *(f.bytes.size for f in found)])
    result: list[Candidate] = []
    best = np.inf
    for number in map(int, np.lexsort((cycles, size))):
        if not np.isfinite(cycles[number]):
            continue
        if result and (size[number] > capacity):
            break
        if cycles[number] >= best * GAIN:
            continue
        which = int(np.searchsorted(starts, number, side="right")) - 1
        result.append(_candidate(found[which], number - int(starts[which])))
        best = cycles[number]
    return tuple(result)


def _candidate(found: Tilings, number: int) -> Candidate:
    group, end = built(found, number)
    moved, macs = (int(values.reshape(-1)[number]) for values in (found.moved, found.macs))
    return Candidate(group, end, group.cycles, moved, macs)
