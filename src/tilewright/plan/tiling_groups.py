"""Bytes and cycles of all tilings of a group, and the groups made of those that are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Affine
from tilewright.core.plan import Group, TileBuffer, Work
from tilewright.core.platform import Platform
from tilewright.core.tiles import TileLoop, Use
from tilewright.cost.formulas import evaluate
from tilewright.cost.grid import Array, Box, Grid, Value
from tilewright.cost.tiles import (
    Flow,
    Task,
    due,
    engine_of,
    flow,
    in_turn,
    kept_cycles,
    overlapped,
    streamed,
    traffic,
    work_cycles,
    work_points,
)
from tilewright.plan import allocate as allocation
from tilewright.plan.tiling_rules import Density, Rules, conditions, density, legal_sizes, rounded, tile_names


@dataclass(frozen=True, eq=False)
class Problem:
    """A group to be tiled, and its surroundings."""

    platform: Platform
    steps: tuple[int, ...]
    tasks: tuple[Task, ...]
    rules: tuple[Rules, ...]
    near: frozenset[str]
    source: Mapping[str, str]
    buffers: int
    most_points: float
    """Points that may be computed, those computed twice included."""

    @property
    def cores(self) -> int:
        return engine_of(self.platform).count

    def memory(self, tensor: str) -> str:
        return self.source.get(tensor, engine_of(self.platform).memory)


@dataclass(eq=False)
class Holder:
    """A tile buffer: the part of a tensor that some uses need."""

    use: Use
    box: Box
    served: list[tuple[int, str]]
    """Node and key of each use."""
    direct: Value
    """Tilings with which the uses need no buffer, because the tensor is near and dense there."""
    inner: bool = False
    through: bool = True
    """Whether it holds something at every moment of a step."""
    first: int = 0
    last: int = 0
    """Nodes between which it is needed otherwise."""
    room: Value = 0
    """Bytes of one slot for each tiling."""
    again: Value = False
    """Tilings with which it is filled more than once, so that more slots are of use."""


@dataclass(eq=False)
class Share:
    """How cores share a node: a dimension for each tiling, as an index into `names`."""

    names: list[str]
    choice: Value
    chunks: list[Value]
    cycles: Array
    """Over classes."""
    scratch: Value
    """Of all cores, for each tiling."""


@dataclass(eq=False)
class Tilings:
    """All tilings of a grid with the same number of slots and the same use of cores."""

    problem: Problem
    grid: Grid
    holders: list[Holder]
    shares: list[Share]
    slots: int
    bytes: Array
    cycles: Array
    moved: Array
    macs: Array
    orders: list[tuple[int, ...]]
    order: Array
    """Which of the orders is the best."""


def evaluated(problem: Problem, grid: Grid) -> list[Tilings]:
    """Bytes and the best cycles of every tiling; what is not allowed has infinite cycles."""
    legal = grid.product(legal_sizes(grid, problem.rules)) > 0
    for tensor in grid.keep:
        legal = legal & _keepable(grid, tensor)
    if not legal.any():
        return []
    holders = _holders(problem, grid)
    flows = [_flow(problem, grid, holder) for holder in holders if not holder.inner]
    densities = [_densities(problem, grid, holders, position) for position in range(len(problem.tasks))]
    orders = _orders(grid, flows)
    found: list[Tilings] = []
    for alone in (False, True) if problem.cores > 1 else (True,):
        shares = [_share(problem, grid, densities[i], i, alone) for i in range(len(problem.tasks))]
        if found and not any(np.any(share.scratch) for share in shares):
            # With less scratch there is nothing to gain from using one core.
            break
        allowed = legal
        for share in shares:
            allowed = allowed & (share.choice >= 0)
        found += _tilings(problem, grid, holders, shares, flows, orders, allowed)
    return found


def _keepable(grid: Grid, tensor: str) -> Value:
    """Lines can be kept where nothing lies before their axis."""
    result: Value = np.asarray(True)
    for span in grid.projection.held[tensor][: grid.keep[tensor]]:
        result = result & (grid.most(grid.size(span)) <= 1)
    return result


# Buffers


def _holders(problem: Problem, grid: Grid) -> list[Holder]:
    """A buffer for every tensor that is not used where it lives; uses that touch the same share one."""
    found: list[Holder] = []
    projection = grid.projection
    for position, mine in enumerate(grid.members):
        for use in mine.uses:
            if use.tensor in projection.held:
                _add(found, Holder(use, projection.held[use.tensor], [(position, use.key)], np.asarray(False), True))
                continue
            box = projection.regions[position][use.key]
            direct: Value = np.asarray(False)
            if use.tensor in problem.near:
                kernel = problem.tasks[position].kernel
                direct = np.asarray(True) if kernel is None else density(grid, box, use.type.shape).whole
            if not np.all(direct):
                _add(found, Holder(use, box, [(position, use.key)], direct))
    for holder in found:
        positions = [position for position, _ in holder.served]
        holder.first, holder.last = min(positions), max(positions)
        inside = holder.inner and holder.use.tensor not in grid.keep
        holder.through = not inside or not _every_step(grid, holder.first)
        holder.room = _aligned(problem, grid.room(holder.box) * holder.use.type.dtype.bytes)
        holder.again = np.asarray(False) if holder.inner else streamed(grid, grid.moves(holder.box))
    return found


def _add(found: list[Holder], wanted: Holder) -> None:
    for other in found:
        a, b = other.use, wanted.use
        same = (a.tensor, a.pack, a.type) == (b.tensor, b.pack, b.type) and np.array_equal(other.direct, wanted.direct)
        if same and _equal(other.box, wanted.box):
            other.served += wanted.served
            return
    found.append(wanted)


def _equal(a: Box, b: Box) -> bool:
    return all(
        x is y or (x.loop == y.loop and np.array_equal(x.start, y.start) and np.array_equal(x.stop, y.stop))
        for x, y in zip(a, b, strict=True)
    )


def _tile(grid: Grid, position: int) -> Box:
    return tuple(grid.projection.ranges[position].values())


def _every_step(grid: Grid, position: int) -> bool:
    """Whether a node runs at every step, whatever the tiling."""
    moves = grid.moves(_tile(grid, position))
    return all(loop in moves and bool(np.all(moves[loop] | (grid.counts[loop] == 1))) for loop in range(grid.rank))


def _flow(problem: Problem, grid: Grid, holder: Holder) -> Flow:
    found = flow(grid, problem.platform, holder.box, holder.use, problem.memory(holder.use.tensor))
    if not np.any(holder.direct):
        return found
    missing = np.where(grid.spread(holder.direct), 0, 1)
    return replace(found, cycles=found.cycles * missing, bytes=found.bytes * missing)


# Cores


def _densities(
    problem: Problem, grid: Grid, holders: Sequence[Holder], position: int
) -> list[tuple[Use, Value, Density]]:
    """How the parts that a kernel touches lie in their blocks, with the tilings for which each block counts."""
    found: list[tuple[Use, Value, Density]] = []
    if problem.tasks[position].kernel is None:
        return found
    for use in grid.members[position].uses:
        box = grid.projection.regions[position][use.key]
        holder = next((h for h in holders if (position, use.key) in h.served), None)
        direct = np.asarray(True) if holder is None else holder.direct
        if holder is not None:
            found.append((use, ~direct, density(grid, box, [grid.size(span) for span in holder.box])))
        if np.any(direct):
            found.append((use, direct, density(grid, box, use.type.shape)))
    return found


def _share(
    problem: Problem, grid: Grid, densities: Sequence[tuple[Use, Value, Density]], position: int, alone: bool
) -> Share:
    """The best split of a node among cores, of those that its kernel allows; index -1 where none is."""
    mine, asked, cores = problem.tasks[position], problem.rules[position], problem.cores
    names, chunks = [""], list[Value]([0])
    for name in () if alone else asked.free:
        names.append(name)
        chunk = -(-_largest(grid, position, name) // cores)
        chunks.append(rounded(chunk, asked.blocks.get(name, 1)))
    shape = (1,) * grid.rank
    best, choice = np.full(shape, np.inf), np.full(shape, -1)
    cycles, scratch = np.zeros(shape), np.zeros(shape, int)
    for index, (name, chunk) in enumerate(zip(names, chunks, strict=True)):
        allowed = _allowed(problem, grid, densities, position, name, chunk)
        if not np.any(allowed):
            continue
        took = work_cycles(grid, position, mine, name, chunk)
        if name:
            took = took + float(engine_of(problem.platform).fork)
        worst = np.where(allowed, grid.most(took), np.inf)
        better = worst < best
        best, choice = np.where(better, worst, best), np.where(better, index, choice)
        cycles = np.where(grid.spread(better), took, cycles)
        scratch = np.where(better, _scratch(problem, grid, position, name, chunk), scratch)
    return Share(names, choice, chunks, cycles, scratch)


def _largest(grid: Grid, position: int, name: str) -> Value:
    span = grid.projection.ranges[position].get(name)
    return grid.members[position].domain.dims[name] if span is None else grid.most(grid.size(span))


def _allowed(
    problem: Problem,
    grid: Grid,
    densities: Sequence[tuple[Use, Value, Density]],
    position: int,
    split: str,
    chunk: Value,
) -> Value:
    """Whether a split is one, and suits the kernel."""
    mine = problem.tasks[position]
    cut: Value = np.asarray(True)
    if split:
        cut = np.asarray(chunk < _largest(grid, position, split))
    result = cut
    for use, counts, found in densities:
        axes = mine.member.domain.access[use.key] if split else ()
        shared = [i for i, axis in enumerate(axes) if isinstance(axis, Affine) and split in axis.dims]
        result = result & (~counts | found.shared(shared, cut))
    return result & conditions(grid, position, mine, problem.rules[position], split, chunk)


def _scratch(problem: Problem, grid: Grid, position: int, split: str, chunk: Value) -> Value:
    """Scratch of all cores for each tiling."""
    mine = problem.tasks[position]
    if mine.kernel is None or mine.kernel.scratch == "0":
        return 0
    needs = evaluate(mine.kernel.scratch, tile_names(grid, position, mine, split, chunk, most=True))
    return _aligned(problem, np.ceil(needs).astype(int)) * (problem.cores if split else 1)


def _aligned(problem: Problem, size: Value) -> Value:
    align = problem.platform.alignment
    return -(-size // align) * align


# Numbers of all tilings


def _tilings(
    problem: Problem,
    grid: Grid,
    holders: list[Holder],
    shares: list[Share],
    flows: Sequence[Flow],
    orders: list[tuple[int, ...]],
    allowed: Array,
) -> list[Tilings]:
    """With each number of slots: the bytes, and the best order."""
    counts = [problem.buffers] if problem.buffers else [2, 1]
    shape = grid.steps.shape
    timed: dict[int, list[Array]] = {count: [] for count in counts}
    moved: list[Array] = []
    macs: list[Array] = []
    for order in orders:
        compute, points = _computed(problem, grid, shares, order)
        transfers = traffic(grid, order, flows)
        for count in counts:
            cycles = (overlapped if count > 1 else in_turn)(grid, compute, transfers)
            fine = allowed & (points <= problem.most_points)
            timed[count].append(np.broadcast_to(np.where(fine, cycles, np.inf), shape))
        moved.append(np.broadcast_to(transfers.moved, shape))
        macs.append(np.broadcast_to(points, shape))
    found: list[Tilings] = []
    for count in counts:
        cycles = np.stack(timed[count])
        best = np.argmin(cycles, axis=0)[None]
        taken, most, points = (np.take_along_axis(v, best, 0)[0] for v in (cycles, np.stack(moved), np.stack(macs)))
        size = np.broadcast_to(_bytes(grid, holders, shares, count), shape)
        found.append(Tilings(problem, grid, holders, shares, count, size, taken, most, points, orders, best[0]))
    return found


def _bytes(grid: Grid, holders: Sequence[Holder], shares: Sequence[Share], slots: int) -> Array:
    """Bytes of each tiling: what lives through a step, and the fullest moment of the rest."""
    through = np.zeros((1,) * grid.rank, int)
    moments: list[Value] = [share.scratch for share in shares]
    for holder in holders:
        size = holder.room * np.where(holder.again, slots, 1) * np.where(holder.direct, 0, 1)
        if holder.through:
            through = through + size
        else:
            for position in range(holder.first, holder.last + 1):
                moments[position] = moments[position] + size
    peak: Value = 0
    for moment in moments:
        peak = np.maximum(peak, moment)
    return through + peak


def _orders(grid: Grid, flows: Sequence[Flow]) -> list[tuple[int, ...]]:
    """Orders of the loops, less those with which everything is loaded at least as often as with another one."""
    if grid.rank > 3:
        return [tuple(range(grid.rank))]
    found = [o for o in permutations(range(grid.rank)) if not grid.keep or o[-1] == grid.sweep]
    boxes = [{*flow.moves} for flow in flows]
    boxes += [{*grid.moves(_tile(grid, position))} for position in range(len(grid.members))]
    reuse = {order: _reuse(order, boxes) for order in found}
    kept: list[tuple[int, ...]] = []
    for order in found:
        if not any(_covers(reuse[other], reuse[order]) for other in kept):
            kept = [other for other in kept if not _covers(reuse[order], reuse[other])] + [order]
    return kept


def _reuse(order: tuple[int, ...], boxes: Sequence[set[int]]) -> list[frozenset[int]]:
    """The loops inside the innermost with which each box moves, for every set of loops that may run."""
    found: list[frozenset[int]] = []
    for chosen in range(1 << len(order)):
        running = [loop for loop in order if chosen >> loop & 1]
        for moves in boxes:
            last = max((i for i, loop in enumerate(running) if loop in moves), default=-1)
            found.append(frozenset(running[last + 1 :]))
    return found


def _covers(a: Sequence[frozenset[int]], b: Sequence[frozenset[int]]) -> bool:
    return all(x >= y for x, y in zip(a, b, strict=True))


def _computed(problem: Problem, grid: Grid, shares: Sequence[Share], order: tuple[int, ...]) -> tuple[Array, Array]:
    """Cycles of the cores over classes, and points of all steps for each tiling."""
    if len(shares) == 1:
        return shares[0].cycles, np.asarray(problem.tasks[0].member.domain.points())
    compute = points = np.zeros((1,) * grid.rank)
    for position, share in enumerate(shares):
        when = due(grid, grid.moves(_tile(grid, position)), order)
        output = problem.tasks[position].member.output
        compute = compute + when * (share.cycles + kept_cycles(grid, problem.platform, output))
        points = points + when * work_points(grid, position)
    return compute, grid.total(points)


# Groups


def built(found: Tilings, number: int) -> tuple[Group, int]:
    """The group of one tiling, with offsets from 0, and the bytes that it needs."""
    grid, problem = found.grid, found.problem
    index = np.unravel_index(number, found.bytes.shape)

    def at(value: Value) -> int:
        if not isinstance(value, np.ndarray) or not value.ndim:
            return int(value)
        return int(value[tuple(int(i) if n > 1 else 0 for i, n in zip(index, value.shape, strict=True))])

    holders = [h for h in found.holders if not at(h.direct)]
    sizes = [at(holder.room) for holder in holders]
    slots = [found.slots if at(holder.again) else 1 for holder in holders]
    scratch = [at(share.scratch) for share in found.shares]
    offsets, end = _placed(problem, holders, [a * b for a, b in zip(sizes, slots, strict=True)], scratch)
    buffers = tuple(
        TileBuffer(h.use.tensor, offset, size, count, h.use.pack)
        for h, offset, size, count in zip(holders, offsets, sizes, slots, strict=False)
    )
    works: list[Work] = []
    for position, share in enumerate(found.shares):
        which = at(share.choice)
        keys = {key: i for i, holder in enumerate(holders) for place, key in holder.served if place == position}
        split, chunk = share.names[which], at(share.chunks[which])
        place = offsets[len(holders) + position] if scratch[position] else 0
        each = scratch[position] // (problem.cores if split else 1)
        works.append(Work(problem.steps[position], MappingProxyType(keys), place, each, split, chunk))
    loops = [
        TileLoop(grid.cuts[i].dim, grid.cuts[i].sizes[int(index[i])], at(grid.counts[i]))
        for i in found.orders[at(found.order)]
    ]
    kept = MappingProxyType(dict(grid.keep))
    cycles = float(found.cycles[index])
    return Group(tuple(works), tuple(x for x in loops if x.count > 1), buffers, kept, cycles), end


def _placed(
    problem: Problem, holders: Sequence[Holder], sizes: Sequence[int], scratch: Sequence[int]
) -> tuple[list[int], int]:
    """Offsets of buffers and of the scratch of each node: what lives through all steps first."""
    offsets = [0] * (len(holders) + len(scratch))
    end = 0
    inside: list[allocation.Buffer] = []
    align = problem.platform.alignment
    for number, (holder, size) in enumerate(zip(holders, sizes, strict=True)):
        if holder.through:
            offsets[number] = end
            end += size
        elif size:
            inside.append(allocation.Buffer(str(number), size, holder.first, holder.last + 1, align))
    for position, size in enumerate(scratch):
        if size:
            inside.append(allocation.Buffer(str(len(holders) + position), size, position, position + 1, align))
    if len(inside) == 1:
        offsets[int(inside[0].name)] = end
        end += inside[0].size
    elif inside:
        placed = allocation.allocate(inside, seconds=0.05)
        for name, placement in placed.offsets.items():
            offsets[int(name)] = end + placement.offset
        end += placed.peak
    return offsets, end
