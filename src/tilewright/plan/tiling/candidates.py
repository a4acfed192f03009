"""Ways to run a group of nodes tile by tile: which dimensions are cut, how finely, in which order, with which buffers.

All tile sizes of a group are evaluated at once by `price.grid`; those that are worth their bytes become groups. The
tiling that needs the fewest bytes of all is always among them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import inf, lcm
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group
from tilewright.core.tiles import Member
from tilewright.machine.target import Target
from tilewright.plan.shapes import Shape, shape_of
from tilewright.plan.tiling.frame import Frame
from tilewright.plan.tiling.groups import Surroundings, Tilings, built, evaluated
from tilewright.plan.tiling.rules import MOST_SIZES, Impossible, Rules, rules, tile_sizes
from tilewright.price.grid import Array, Clash, Cut, Grid, Span
from tilewright.price.tasks import Task, task

MOST_CUTS = 3
"""Dimensions cut at once; the tiling of the fewest bytes may cut all."""
ALONE = 32
"""Tile sizes of a dimension that is the only one to cut."""
FEW_SIZES = 4
"""Tile sizes along each dimension where reductions are cut, too."""
LONG = 4
"""Nodes of a group from which on it is worth looking at fewer cuts, too."""
GAIN = 0.96
"""A point of the front has at most this share of the cycles of the one before it."""

AVOIDED = 1.1
"""What cycles of tiles are multiplied with that are to be avoided."""


class Tiling(Struct, frozen=True):
    """What the surroundings of a group ask of its tiles."""

    buffers: int = 0
    """Slots of every buffer that is loaded or stored more than once; 0 tries one and two."""
    extra: float = 0.0
    """How many points of the group may be computed twice."""
    source: Mapping[str, str] = field(default_factory=dict[str, str])
    """The memory in which each tensor from outside is; one that is not named is in the engine's."""
    capacity: int = 1 << 62
    """Bytes of the engine's memory that the group may take."""
    largest: bool = False
    """Take the tile that fills most of the memory instead of those worth their bytes."""
    avoided: frozenset[Shape] = frozenset()
    """Tiles that count as slower than they are."""


class Candidate(Struct, frozen=True, eq=False, dict=True):
    """One way to run a group."""

    make: Callable[[], Group]
    """The group is made when it is asked for: of most candidates it never is."""
    bytes: int
    """Of the workspace: tile buffers with all slots, scratch of all cores."""
    cycles: float
    """Predicted."""
    moved: int
    """Bytes copied between the engine's memory and others."""
    macs: int
    """Points of all nodes, those computed twice included."""

    @cached_property
    def group(self) -> Group:
        """Offsets count from the start of its workspace."""
        return self.make()

    def with_group(self, group: Group, **changes: Any) -> Candidate:
        """The same with another group."""
        return replace(self, make=lambda: group, **changes)


def candidates(
    graph: Graph,
    platform: Target,
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
    found = _tilings(graph, platform, steps, choices, settings, near)
    if settings.largest:
        return largest(found, settings.capacity, steps) or front(found, settings.capacity, steps)[:1]
    return front(found, settings.capacity, steps, settings.avoided)


def fewest_cycles(
    graph: Graph,
    platform: Target,
    steps: Sequence[int],
    choices: Sequence[Choice],
    settings: Tiling,
    *,
    near: frozenset[str],
) -> float:
    """Those of the fastest candidate that fits, of which no other is made a group; infinite where none does."""
    found = _tilings(graph, platform, steps, choices, settings, near)
    if not found:
        return inf
    size, cycles = _all(found)
    for number in reversed(_worth_their_bytes(size, cycles, settings.capacity)):
        if _numbered(found, number, steps).bytes <= settings.capacity:
            return float(cycles[number])
    return inf


def _tilings(
    graph: Graph,
    platform: Target,
    steps: Sequence[int],
    choices: Sequence[Choice],
    settings: Tiling,
    near: frozenset[str],
) -> list[Tilings]:
    """All that there are; arguments as of `candidates`."""
    tasks = [task(graph, graph.nodes[step], choice.kernel) for step, choice in zip(steps, choices, strict=True)]
    points = sum(t.member.domain.points() for t in tasks)
    around = Surroundings(near, settings.source, settings.buffers, points + settings.extra)
    return [t for frame in _FRAMES.get(platform, tasks) for t in evaluated(frame, around)]


class _Frames:
    """Frames of the groups asked about last: only where tensors live differs from one question to the next."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[tuple[Hashable, ...], tuple[tuple[Task, ...], tuple[Frame, ...]]] = {}

    def get(self, platform: Target, tasks: Sequence[Task]) -> tuple[Frame, ...]:
        parts = (*platform.links.values(), *platform.engines.values(), *platform.memories)
        costs = (*platform.operations.items(), *platform.fused.items())
        key = (platform.alignment, parts, costs, tuple(id(mine) for mine in tasks))
        # Frames are kept with their tasks, so that the identity of these stays theirs.
        kept = self._found.pop(key, None) or (tuple(tasks), _frames(platform, tasks, [rules(mine) for mine in tasks]))
        self._found[key] = kept
        if len(self._found) > self._most:
            del self._found[next(iter(self._found))]
        return kept[1]


_FRAMES = _Frames(64)


def _frames(platform: Target, tasks: Sequence[Task], asked: Sequence[Rules]) -> tuple[Frame, ...]:
    if not _connected([t.member for t in tasks]):
        return ()
    try:
        found = [Frame(platform, tasks, asked, grid) for grid in _grids(platform, tasks, asked)]
    except Impossible:
        return ()
    return tuple(frame for frame in found if np.any(frame.legal))


def _connected(members: Sequence[Member]) -> bool:
    """Whether each node but the last makes one tensor, which a node behind it reads."""
    for position, mine in enumerate(members[:-1]):
        made = [use.tensor for use in mine.uses if use.writes]
        readers = (use.tensor for other in members[position + 1 :] for use in other.uses if not use.writes)
        if len(made) != 1 or made[0] not in readers:
            return False
    return True


def _grids(platform: Target, tasks: Sequence[Task], asked: Sequence[Rules]) -> Iterator[Grid]:
    """Grids that together hold all tilings to look at."""
    members = [t.member for t in tasks]
    sink, free, blocks = members[-1].domain, asked[-1].free, asked[-1].blocks
    cores = platform.cores.count
    # Blocks of other nodes decide too, where their dimensions follow those of the last one.
    steps = {1, *(block for rule in asked[:-1] for block in rule.blocks.values())}
    most = MOST_SIZES if len(free) > 1 else ALONE
    sizes = {
        n: {s for step in steps for s in tile_sizes(sink.dims[n], lcm(step, blocks.get(n, 1)), cores, most)}
        for n in free
    }
    cuts = {n: Cut(n, sink.dims[n], tuple(sorted(sizes[n], reverse=True))) for n in free}
    sums = asked[-1].sums if len(members) == 1 else ()
    every = cuts | {n: Cut(n, sink.dims[n], tile_sizes(sink.dims[n], blocks.get(n, 1), 1)) for n in sums}
    few, ends = ({n: replace(cut, sizes=_thinned(cut.sizes, k)) for n, cut in every.items()} for k in (FEW_SIZES, 2))
    pending = list(combinations(cuts, min(MOST_CUTS, len(cuts))))
    parts = [(*names, *sums) for names in pending] if sums else []
    if len(members) >= LONG and len(cuts) >= MOST_CUTS:
        # With a loop that some nodes do not follow, what they make has to stay; without, buffers share their bytes.
        pending += combinations(cuts, MOST_CUTS - 1)
    wide = [tuple(every)] if len(cuts) > MOST_CUTS else []
    for queue, choice in ((pending, cuts), (parts, few), (wide, ends)):
        seen: set[tuple[str, ...]] = set()
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


def _thinned(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """So many of some sizes, the first and the last among them."""
    numbers = {round(number * (len(sizes) - 1) / (count - 1)) for number in range(count)}
    return tuple(sizes[number] for number in sorted(numbers))


def _sweeps(grid: Grid) -> Iterator[Grid]:
    """The same cuts with lines of inner tensors kept, for each loop that can run innermost."""
    for sweep in range(grid.rank):
        axes = {tensor: _kept_axis(grid, tensor, sweep) for tensor in grid.projection.held}
        keep = {tensor: axis for tensor, axis in axes.items() if axis >= 0}
        if keep:
            kept = Grid(grid.members, grid.cuts, keep, sweep)
            fine = _ending_alike(grid, kept)
            if len(fine) == len(grid.cuts[sweep].sizes):
                yield kept
            elif fine:
                cuts = [replace(cut, sizes=fine) if i == sweep else cut for i, cut in enumerate(grid.cuts)]
                yield Grid(grid.members, cuts, keep, sweep)


def _ending_alike(grid: Grid, kept: Grid) -> tuple[int, ...]:
    """Tile sizes of the innermost loop with which lines end at every step where they end without any kept.

    They may not where a step needs no new line of a tensor, and so nothing of those that it is made from.
    """
    differ = np.zeros(len(grid.points[kept.sweep].number), bool)
    for tensor, axis in kept.keep.items():
        differ |= kept.projection.held[tensor][axis].stop != grid.projection.held[tensor][axis].stop
    wrong = {*grid.points[kept.sweep].number[differ].tolist()}
    return tuple(size for number, size in enumerate(grid.cuts[kept.sweep].sizes) if number not in wrong)


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
    if any(_always_long(grid, other) for other in grid.projection.held[tensor][: moved[0]]):
        return -1
    return moved[0] if bool(np.all(forward[inside])) and bool(np.any(overlaps[inside])) else -1


def _always_long(grid: Grid, span: Span) -> bool:
    """Whether an axis is longer than 1 at some step of every tiling."""
    if not isinstance(span.size, np.ndarray):
        return span.size > 1
    return bool(np.all(np.maximum.reduceat(span.size, grid.points[span.loop].begin) > 1))


def front(
    found: Sequence[Tilings], capacity: int, steps: Sequence[int], avoided: frozenset[Shape] = frozenset()
) -> tuple[Candidate, ...]:
    """The tilings worth their bytes, as groups."""
    if not found:
        return ()
    size, cycles = _all(found)
    known: dict[int, Candidate] = {}
    slower: set[int] = set()
    while True:
        chosen = _worth_their_bytes(size, cycles, capacity)
        known |= {number: _numbered(found, number, steps) for number in chosen if number not in known}
        more = {n for n in chosen if shape_of(known[n].group) in avoided} - slower if avoided else set[int]()
        if not more:
            break
        slower |= more
        cycles[[*more]] *= AVOIDED
    result: list[Candidate] = []
    least = np.inf
    for number in sorted(chosen, key=lambda n: (known[n].bytes, cycles[n])):
        if not result or (cycles[number] < least and known[number].bytes <= capacity):
            result.append(known[number])
            least = cycles[number]
    return tuple(result)


def _all(found: Sequence[Tilings]) -> tuple[Array, Array]:
    """Bytes and cycles of all tilings, one behind the other."""
    return np.concatenate([f.bytes.reshape(-1) for f in found]), np.concatenate([f.cycles.reshape(-1) for f in found])


def _numbered(found: Sequence[Tilings], number: int, steps: Sequence[int]) -> Candidate:
    """One of all tilings."""
    for tilings in found:
        if number < tilings.bytes.size:
            return _candidate(tilings, number, steps)
        number -= tilings.bytes.size
    raise IndexError(number)


def _worth_their_bytes(size: Array, cycles: Array, capacity: int) -> list[int]:
    """Numbers of those tilings, by growing bytes and falling cycles."""
    chosen: list[int] = []
    best = np.inf
    order = np.lexsort((cycles, size))
    # Whatever is taken is faster than all that need fewer bytes; infinite cycles never are.
    before = np.append(np.inf, np.minimum.accumulate(cycles[order])[:-1])
    faster = order[cycles[order] < before]
    fitting = faster[size[faster] <= capacity]
    for number in map(int, fitting if fitting.size else faster[:1]):
        # The fastest of all is always among them.
        if cycles[number] < best * GAIN or (number == fitting[-1] and cycles[number] < best):
            chosen.append(number)
            best = cycles[number]
    return chosen


def largest(found: Sequence[Tilings], capacity: int, steps: Sequence[int]) -> tuple[Candidate, ...]:
    """The tiling with the most slots, then the most bytes, that fits; none where none does."""
    best: tuple[tuple[int, int, float], Tilings, int] | None = None
    for tilings in found:
        size, cycles = tilings.bytes.reshape(-1), tilings.cycles.reshape(-1)
        for number in map(int, np.flatnonzero((size <= capacity) & np.isfinite(cycles))):
            rank = (tilings.slots, int(size[number]), -float(cycles[number]))
            if best is None or rank > best[0]:
                best = (rank, tilings, number)
    found_one = _candidate(best[1], best[2], steps) if best else None
    return (found_one,) if found_one and found_one.bytes <= capacity else ()


def _candidate(found: Tilings, number: int, steps: Sequence[int]) -> Candidate:
    size, cycles, moved, macs = (
        values.reshape(-1)[number].item() for values in (found.bytes, found.cycles, found.moved, found.macs)
    )
    if len(steps) == 1:
        return Candidate(lambda: built(found, number, steps)[0], size, cycles, int(moved), int(macs))
    # What shares bytes inside a step may take a little more than its fullest moment.
    group, end = built(found, number, steps)
    return Candidate(lambda: group, end, cycles, int(moved), int(macs))
