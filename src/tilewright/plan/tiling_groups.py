"""Bytes and cycles of all tilings of a group, and the groups made of those that are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from types import MappingProxyType

import numpy as np

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
    kept_cycles,
    spent,
    work_cycles,
    work_points,
)
from tilewright.plan import allocate as allocation
from tilewright.plan.tiling_rules import Rules, conditions, dense, legal_sizes, scratch_bytes


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
    through: bool = True
    """Whether it holds something at every moment of a step."""
    first: int = 0
    last: int = 0
    """Nodes between which it is needed otherwise."""


@dataclass(eq=False)
class Share:
    """How cores share a node: a dimension for each tiling, as an index into `names`."""

    names: list[str]
    choice: Value
    chunks: list[Value]
    cycles: Array
    """Over classes."""
    scratch: Value
    """Of one core, for each tiling."""
    users: Value
    """Cores that need scratch."""


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
    orders: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    order: Array = field(default_factory=lambda: np.zeros(0, int))
    """Which order is the best."""


def evaluated(problem: Problem, grid: Grid) -> list[Tilings]:
    """Bytes and the best cycles of every tiling; what is not allowed has infinite cycles."""
    legal = grid.product(legal_sizes(grid, problem.rules)) > 0
    holders = _holders(problem, grid)
    found: list[Tilings] = []
    for alone in (False, True):
        shares = [_share(problem, grid, holders, position, alone) for position in range(len(problem.tasks))]
        if alone and not any(np.any(share.scratch) for share in shares):
            break
        allowed = legal
        for share in shares:
            allowed = allowed & (share.choice >= 0)
        for keep in grid.keep:
            allowed = allowed & _keepable(grid, keep)
        if not allowed.any():
            continue
        for slots in [problem.buffers] if problem.buffers else [2, 1]:
            found.append(_tilings(problem, grid, holders, shares, slots, allowed))
        if problem.cores == 1:
            break
    return found


def _keepable(grid: Grid, tensor: str) -> Value:
    """Lines can be kept where nothing lies before their axis."""
    held = grid.projection.held[tensor]
    result: Value = np.asarray(True)
    for span in held[: grid.keep[tensor]]:
        result = result & (grid.most(grid.size(span)) <= 1)
    return result


# Buffers


def _holders(problem: Problem, grid: Grid) -> list[Holder]:
    """One buffer for uses of a tensor that touch the same, or of which one touches all that the others do."""
    found: list[Holder] = []
    projection = grid.projection
    for position, mine in enumerate(grid.members):
        kernel = problem.tasks[position].kernel is not None
        for use in mine.uses:
            box = projection.regions[position][use.key]
            if use.tensor in projection.held:
                _inner(found, position, use, projection.held[use.tensor])
                continue
            direct: Value = np.asarray(False)
            if use.tensor in problem.near:
                direct = dense(grid, box, use.type.shape, [False] * len(box)) if kernel else np.asarray(True)
                if np.all(direct):
                    continue
            _outer(grid, found, Holder(use, box, [(position, use.key)], direct), kernel)
    for holder in found:
        if holder.use.tensor in projection.held and holder.use.tensor not in grid.keep:
            positions = [position for position, _ in holder.served]
            holder.first, holder.last = min(positions), max(positions)
            holder.through = not _every_step(grid, holder.first)
    return found


def _inner(found: list[Holder], position: int, use: Use, box: Box) -> None:
    known = next((h for h in found if h.use.tensor == use.tensor), None)
    if known is None:
        found.append(Holder(use, box, [(position, use.key)], np.asarray(False)))
    else:
        known.served.append((position, use.key))


def _outer(grid: Grid, found: list[Holder], wanted: Holder, kernel: bool) -> None:
    for other in found:
        same = (other.use.tensor, other.use.pack, other.use.type) == (
            wanted.use.tensor,
            wanted.use.pack,
            wanted.use.type,
        )
        if same and np.array_equal(other.direct, wanted.direct) and _equal(other.box, wanted.box):
            other.served += wanted.served
            return
    found.append(wanted)


def _equal(a: Box, b: Box) -> bool:
    return all(
        x is y or (x.loop == y.loop and np.array_equal(x.start, y.start) and np.array_equal(x.stop, y.stop))
        for x, y in zip(a, b, strict=True)
    )


def _every_step(grid: Grid, position: int) -> bool:
    """Whether a node runs at every step, whatever the tiling."""
    moves = grid.moves(tuple(grid.projection.ranges[position].values()))
    return all(loop in moves and bool(np.all(moves[loop] | (grid.counts[loop] == 1))) for loop in range(grid.rank))


# Cores


def _share(problem: Problem, grid: Grid, holders: Sequence[Holder], position: int, alone: bool) -> Share:
    """The best split of a node among cores, of those that its kernel allows; index -1 where none is."""
    mine, asked, cores = problem.tasks[position], problem.rules[position], problem.cores
    shape = np.zeros((1,) * grid.rank)
    names, chunks = [""], list[Value]([0])
    for name in asked.free if cores > 1 and not alone else ():
        names.append(name)
        largest = _largest(grid, position, name)
        block = asked.blocks.get(name, 1)
        chunks.append(-(-(-(-largest // cores)) // block) * block)
    best: Array = shape + np.inf
    choice: Array = np.full(shape.shape, -1)
    cycles: Array = shape
    scratch: Array = np.zeros(shape.shape, int)
    users: Array = np.ones(shape.shape, int)
    for index, (name, chunk) in enumerate(zip(names, chunks, strict=True)):
        took = work_cycles(grid, position, mine, name, chunk)
        if name:
            took = took + float(engine_of(problem.platform).fork)
        allowed = _allowed(problem, grid, holders, position, name, chunk)
        worst = np.where(allowed, grid.most(took), np.inf)
        better = worst < best
        if not better.any():
            continue
        best, choice = np.where(better, worst, best), np.where(better, index, choice)
        cycles = np.where(grid.spread(better), took, cycles)
        needs, active = _scratch(problem, grid, position, name, chunk)
        scratch, users = np.where(better, needs, scratch), np.where(better, active, users)
    return Share(names, choice, chunks, cycles, scratch, users)


def _largest(grid: Grid, position: int, name: str) -> Value:
    span = grid.projection.ranges[position].get(name)
    return grid.members[position].domain.dims[name] if span is None else grid.most(grid.size(span))


def _allowed(problem: Problem, grid: Grid, holders: Sequence[Holder], position: int, split: str, chunk: Value) -> Value:
    """Whether a split is one, and suits the kernel."""
    mine = problem.tasks[position]
    result: Value = np.asarray(True)
    cut: Value = np.asarray(False)
    if split:
        result = cut = chunk < np.asarray(_largest(grid, position, split))
    if mine.kernel is None:
        return result
    domain = mine.member.domain
    for use in mine.member.uses:
        box = grid.projection.regions[position][use.key]
        shared = [cut if split and _driven(domain.access[use.key][i], split) else False for i in range(len(box))]
        holder = next((h for h in holders if (position, use.key) in h.served), None)
        there: Value = np.asarray(holder is None)
        if holder is not None:
            there = holder.direct
            block = [grid.size(span) for span in holder.box]
            result = result & (there | dense(grid, box, block, shared))
        if np.any(there):
            result = result & (~there | dense(grid, box, use.type.shape, shared))
    return result & conditions(grid, position, mine, split, chunk)


def _driven(axis: object, name: str) -> bool:
    return name in getattr(axis, "dims", ())


def _scratch(problem: Problem, grid: Grid, position: int, split: str, chunk: Value) -> tuple[Value, Value]:
    """Bytes of one core, and how many cores have something to do."""
    mine = problem.tasks[position]
    if mine.kernel is None or mine.kernel.scratch == "0":
        return 0, 1
    needs = evaluate(mine.kernel.scratch, scratch_bytes(grid, position, mine, split, chunk))
    return _aligned(problem, np.asarray(needs).astype(int)), problem.cores if split else 1


def _aligned(problem: Problem, size: Value) -> Value:
    align = problem.platform.alignment
    return -(-size // align) * align


# Numbers of all tilings


def _slots(grid: Grid, holder: Holder, slots: int) -> Value:
    """Slots of a buffer for each tiling: one where it is filled once, or stays inside."""
    if holder.use.tensor in grid.projection.held:
        return 1
    streamed: Value = np.asarray(False)
    for moves in grid.moves(holder.box).values():
        streamed = streamed | moves
    return np.where(streamed, slots, 1)


def _room(problem: Problem, grid: Grid, holder: Holder) -> Value:
    """Bytes of one slot for each tiling."""
    return _aligned(problem, grid.room(holder.box) * holder.use.type.dtype.bytes)


def _tilings(
    problem: Problem, grid: Grid, holders: list[Holder], shares: list[Share], slots: int, allowed: Array
) -> Tilings:
    through = np.zeros((1,) * grid.rank, int)
    moment: list[Value] = [0] * len(problem.tasks)
    flows: list[Flow] = []
    for holder in holders:
        size = _room(problem, grid, holder) * _slots(grid, holder, slots) * np.where(holder.direct, 0, 1)
        if holder.through:
            through = through + size
        else:
            for position in range(holder.first, holder.last + 1):
                moment[position] = moment[position] + size
        if holder.use.tensor not in grid.projection.held:
            found = flow(
                grid, problem.platform, holder.box, holder.use, problem.memory(holder.use.tensor),
                _slots(grid, holder, slots),
            )  # fmt: skip
            missing = np.where(grid.spread(holder.direct), 0, 1)
            flows.append(Flow(found.cycles * missing, found.bytes * missing, found.moves, found.store, found.slots))
    peak: Value = 0
    for position, share in enumerate(shares):
        peak = np.maximum(peak, moment[position] + share.scratch * share.users)
    orders = _orders(grid)
    runs = [_timed(problem, grid, shares, flows, order) for order in orders]
    cycles = np.stack([np.broadcast_to(np.where(allowed, run[0], np.inf), grid.steps.shape) for run in runs])
    order = np.argmin(cycles, axis=0)
    pick = [np.stack([np.broadcast_to(run[i], grid.steps.shape) for run in runs]) for i in (1, 2)]
    moved, macs = (np.take_along_axis(values, order[None], 0)[0] for values in pick)
    size = np.broadcast_to(through + peak, grid.steps.shape)
    return Tilings(problem, grid, holders, shares, slots, size, cycles.min(axis=0), moved, macs, orders, order)


def _orders(grid: Grid) -> list[tuple[int, ...]]:
    if grid.rank > 3:
        return [tuple(range(grid.rank))]
    found = list(permutations(range(grid.rank)))
    return [order for order in found if not grid.keep or order[-1] == grid.sweep]


def _timed(
    problem: Problem, grid: Grid, shares: Sequence[Share], flows: Sequence[Flow], order: tuple[int, ...]
) -> tuple[Array, Array, Array]:
    compute = np.zeros((1,) * grid.rank)
    if len(shares) == 1:
        cycles, moved = spent(grid, order, shares[0].cycles, flows)
        return cycles, moved, np.asarray(problem.tasks[0].member.domain.points())
    points = np.zeros((1,) * grid.rank)
    for position, share in enumerate(shares):
        when = due(grid, grid.moves(tuple(grid.projection.ranges[position].values())), order)
        mine = problem.tasks[position].member
        compute = compute + when * (share.cycles + kept_cycles(grid, problem.platform, mine.output))
        points = points + when * work_points(grid, position)
    macs = grid.total(points)
    cycles, moved = spent(grid, order, compute, flows)
    return np.where(macs <= problem.most_points, cycles, np.inf), moved, macs


# Groups


def built(found: Tilings, number: int) -> tuple[Group, int]:
    """The group of one tiling, with offsets from 0, and the bytes that it needs."""
    grid, problem = found.grid, found.problem
    index = np.unravel_index(number, found.bytes.shape)

    def at(value: Value) -> int:
        if not isinstance(value, np.ndarray):
            return int(value)
        return int(value[tuple(min(int(i), n - 1) for i, n in zip(index, value.shape, strict=False))])

    holders = [h for h in found.holders if not at(h.direct)]
    sizes = [at(_room(problem, grid, holder)) for holder in holders]
    slots = [at(_slots(grid, holder, found.slots)) for holder in holders]
    scratch = [at(share.scratch) for share in found.shares]
    offsets, end = _placed(problem, holders, sizes, slots, [at(s.scratch * s.users) for s in found.shares])
    buffers = tuple(
        TileBuffer(h.use.tensor, offset, size, count, h.use.pack)
        for h, offset, size, count in zip(holders, offsets, sizes, slots, strict=False)
    )
    works: list[Work] = []
    for position, share in enumerate(found.shares):
        which = at(share.choice)
        keys = {key: i for i, holder in enumerate(holders) for place, key in holder.served if place == position}
        works.append(
            Work(
                problem.steps[position],
                MappingProxyType(keys),
                offsets[len(holders) + position] if scratch[position] else 0,
                scratch[position],
                share.names[which],
                at(share.chunks[which]),
            )
        )
    loops = [
        TileLoop(grid.cuts[i].dim, grid.cuts[i].sizes[int(index[i])], at(grid.counts[i]))
        for i in found.orders[at(found.order)]
    ]
    kept = MappingProxyType(dict(grid.keep))
    return Group(tuple(works), tuple(x for x in loops if x.count > 1), buffers, kept, at_float(found, number)), end


def at_float(found: Tilings, number: int) -> float:
    return float(found.cycles.reshape(-1)[number])


def _placed(
    problem: Problem, holders: Sequence[Holder], sizes: Sequence[int], slots: Sequence[int], scratch: Sequence[int]
) -> tuple[list[int], int]:
    """Offsets of buffers and of the scratch of each node: what lives through all steps first."""
    offsets = [0] * (len(holders) + len(scratch))
    end = 0
    for number, holder in enumerate(holders):
        if holder.through:
            offsets[number] = end
            end += sizes[number] * slots[number]
    inside: list[allocation.Buffer] = []
    align = problem.platform.alignment
    for number, holder in enumerate(holders):
        if not holder.through and sizes[number]:
            inside.append(allocation.Buffer(str(number), sizes[number], holder.first, holder.last + 1, align))
    for position, size in enumerate(scratch):
        if size:
            inside.append(allocation.Buffer(str(len(holders) + position), size, position, position + 1, align))
    if len(inside) == 1:
        offsets[int(inside[0].name)] = end
        return offsets, end + inside[0].size
    if inside:
        placed = allocation.allocate(inside, seconds=0.05)
        for name, placement in placed.offsets.items():
            offsets[int(name)] = end + placement.offset
        end += placed.peak
    return offsets, end
