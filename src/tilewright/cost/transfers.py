"""Cycles of transfers between memories: of one, of all that a group makes at a step, and beside its computation.

A transfer takes the setup of its descriptors and its bytes at the DMA's speed, and something has to start it. What
starts and awaits those of the first and the last step is code that runs once (`Once`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.core.graph import TensorType
from tilewright.core.platform import Dma, Platform
from tilewright.core.tiles import Use
from tilewright.cost.grid import Array, Box, Grid, Value


def route(platform: Platform, memory: str) -> tuple[Dma, ...]:
    """The DMAs between a memory and the engine's; for copies inside it its own, or the fastest that reaches it."""
    own = platform.cores.memory
    if memory == own and platform.dma(own, own) is None:
        near = [dma for dma in platform.dmas.values() if own in dma.between]
        return (max(near, key=lambda dma: dma.bytes_per_cycle),) if near else ()
    direct = platform.dma(memory, own)
    if direct is not None:
        return (direct,)
    for between in platform.memories:
        first, second = platform.dma(memory, between), platform.dma(between, own)
        if first is not None and second is not None:
            return (first, second)
    return ()


def descriptors(grid: Grid, box: Box, shape: Sequence[int], rank: int) -> Value:
    """How many transfers of a DMA of some rank bring a part of a tensor, over classes."""
    result: Value = 1
    used: Value = 1
    stride = 1
    span: Value = 1
    for part, extent in zip(reversed(box), reversed(shape), strict=True):
        size = grid.size(part)
        if not isinstance(size, np.ndarray) and size == 1:
            stride *= extent
            continue
        if isinstance(size, np.ndarray) or isinstance(span, np.ndarray):
            many = np.asarray(size) != 1
            used = used + (many & (span != stride))
            span = np.where(many, size * stride, span)
            result = result * np.where(used > rank, size, 1)
        else:
            used, span = used + (span != stride), size * stride
            beyond = used > rank
            result = result * (np.where(beyond, size, 1) if isinstance(beyond, np.ndarray) else size if beyond else 1)
        stride *= extent
    return result


def transfer(grid: Grid, box: Box, kind: TensorType, dmas: Sequence[Dma], *, store: bool = False) -> Array:
    """Cycles to bring or take a part of a tensor, over classes.

    Requests for runs of a load go ahead of its bytes; a store is done with a run before it begins the next one.
    """
    amount = grid.elements(box) * kind.dtype.bytes
    cycles: Value | float = 0.0
    for dma in dmas:
        runs = descriptors(grid, box, kind.shape, 1)
        alone = amount / dma.bytes_per_cycle
        bytes_cycles = alone + runs * dma.run / 2 if store and dma.duplex else np.maximum(alone, runs * dma.run)
        cycles = cycles + descriptors(grid, box, kind.shape, dma.rank) * float(dma.setup) + bytes_cycles
    return grid.product([]) * np.where(np.asarray(amount) > 0, cycles, 0.0)


def issued(grid: Grid, box: Box, kind: TensorType, dmas: Sequence[Dma]) -> Array:
    """Cycles to start such a transfer, over classes."""
    empty = np.asarray(grid.elements(box)) == 0
    counts = sum((descriptors(grid, box, kind.shape, dma.rank) * float(dma.issue) for dma in dmas), 0.0)
    return grid.product([]) * np.where(empty, 0.0, counts)


@dataclass(frozen=True)
class Once:
    """Cycles of code around transfers: it runs once in a group, and so is in no cache by then."""

    arrive: float = 0.0
    """From the start of the last of the first loads until cores work, at least."""
    leave: float = 0.0
    """Of the last stores, besides theirs."""
    turns: float = 0.0
    """Of the loop over steps."""
    turn: float = 0.0
    """Of each of its turns, for each buffer that moves: it is waited for before cores work."""


@dataclass(frozen=True, eq=False)
class Flow:
    """A buffer that is loaded or stored: cycles and bytes of one transfer over classes, and when it happens."""

    cycles: Array
    alone: Array
    """The same where no core works meanwhile."""
    issue: Array
    """Cycles to start it; what runs already goes on meanwhile."""
    bytes: Array
    moves: Mapping[int, Array]
    """With which loops its region moves."""
    store: bool
    beside: Array
    """Tilings with which it runs beside the computation: it happens more than once and has slots for that."""
    duplex: bool
    """Whether loads and stores happen at once."""
    once: Once


def streamed(grid: Grid, moves: Mapping[int, Array]) -> Array:
    """Whether a buffer is filled more than once, for each tiling."""
    found = np.zeros((1,) * grid.rank, bool)
    for changed in moves.values():
        found = found | changed
    return found


def due(grid: Grid, moves: Mapping[int, Array], order: Sequence[int], *, store: bool = False) -> Array:
    """Steps at which something is loaded or computed anew: loops inside the innermost that it moves with stand at 0.

    What is stored is complete when these stand at their last index.
    """
    edge = grid.last if store else grid.first
    stopped = np.zeros((1,) * grid.rank, bool)
    found = ~stopped
    for loop in reversed(order):
        if loop in moves:
            stopped = stopped | grid.spread(moves[loop])
        found = found & (stopped | edge[loop])
    return found


@dataclass(frozen=True, eq=False)
class Traffic:
    """All transfers of a group with its loops in one order: cycles over classes, bytes for each tiling."""

    single: Array
    """Of transfers with which nothing overlaps, and to start them."""
    load_issue: Array
    """To start all other loads, one after the other."""
    store_issue: Array
    loads: Array
    stores: Array
    first: Array
    """Of all loads, where they are the first ones and nothing runs beside them, less what `single` has of them."""
    last: Array
    """The same of the last stores."""
    moving: Array
    """How many buffers move at a step, beside the computation of others."""
    moved: Array
    duplex: bool
    once: Once

    def both(self, loads: Array, stores: Array, issue: Array) -> Array:
        """Cycles of loads and stores of the same step."""
        return (np.maximum(loads, stores) if self.duplex else loads + stores) + issue


@dataclass(eq=False)
class _Side:
    """Loads, or stores, over classes."""

    cycles: Array
    """Of those that run beside the computation."""
    issue: Array
    alone: Array
    """Of all, as if nothing ran beside them."""
    starts: Array
    longest: Array
    """The longest of these starts."""
    single: Array
    moving: Array
    """How many run beside the computation."""

    def add(self, grid: Grid, flow: Flow, when: Array) -> None:
        cycles, start, beside = flow.cycles * when, flow.issue * when, grid.spread(flow.beside)
        self.alone = self.alone + flow.alone * when
        self.starts, self.longest = self.starts + start, np.maximum(self.longest, start)
        if not np.all(beside):
            self.single = self.single + np.where(beside, 0.0, cycles + start)
            cycles, start = np.where(beside, cycles, 0.0), np.where(beside, start, 0.0)
        self.cycles, self.issue = self.cycles + cycles, self.issue + start
        self.moving = self.moving + when * beside


def traffic(grid: Grid, flows: Sequence[tuple[Flow, Array]]) -> Traffic:
    """All flows, each with the steps at which it is due."""
    nothing = np.zeros((1,) * grid.rank)
    loads, stores = (_Side(*(nothing for _ in range(7))) for _ in range(2))
    moved = nothing
    once = flows[0][0].once if flows else Once()
    for flow, when in flows:
        moved = moved + flow.bytes * when
        (stores if flow.store else loads).add(grid, flow, when)
    # While one transfer runs, the next one is started.
    first = np.maximum(loads.alone + loads.longest, loads.starts + once.arrive)
    return Traffic(
        loads.single + stores.single,
        loads.issue,
        stores.issue,
        loads.cycles,
        stores.cycles,
        np.where(loads.alone > 0, first, 0.0) - loads.single,
        np.where(stores.alone > 0, stores.alone + stores.starts + once.leave, 0.0) - stores.single,
        loads.moving + stores.moving,
        grid.total(moved),
        all(flow.duplex for flow, _ in flows),
        once,
    )


def in_turn(grid: Grid, compute: Array, found: Traffic) -> Array:
    """Cycles of all steps for each tiling where no transfer runs beside the computation."""
    loads, stores = found.loads + found.load_issue, found.stores + found.store_issue
    first = grid.corner(found.first - loads, last=False) + grid.corner(found.last - stores, last=True)
    total = grid.total(compute + found.moving * found.once.turn) + grid.total(found.single + loads + stores)
    return total + first + np.where(grid.steps == 1, 0.0, found.once.turns)


def overlapped(grid: Grid, compute: Array, found: Traffic) -> Array:
    """Cycles of all steps for each tiling."""
    turn = found.moving * found.once.turn
    loads, stores, issue = found.loads, found.stores, found.load_issue + found.store_issue
    total = grid.total(found.single + turn) + grid.total(np.maximum(compute, found.both(loads, stores, issue)))
    c0, l0, s0, i0 = (grid.corner(v, last=False) for v in (compute, loads, stores, issue))
    c1, l1, s1, i1 = (grid.corner(v, last=True) for v in (compute, loads, stores, issue))
    begun = grid.corner(found.first, last=False) + np.maximum(c0, s0 + i0) - np.maximum(c0, found.both(l0, s0, i0))
    ended = np.maximum(c1, l1 + i1) - np.maximum(c1, found.both(l1, s1, i1))
    total = total + begun + grid.corner(found.last, last=True)
    return total + np.where(grid.steps == 1, 0.0, ended + found.once.turns)


def _shared(dma: Dma, cores: int) -> Dma:
    """What copies with all cores at once."""
    return replace(dma, bytes_per_cycle=dma.bytes_per_cycle * cores, run=dma.run / cores)


def flow(grid: Grid, platform: Platform, box: Box, use: Use, memory: str) -> Flow:
    """How a buffer is filled from a memory, or emptied into it, with two slots where that is of use."""
    amount = grid.product([]) * grid.elements(box) * use.type.dtype.bytes
    away = memory != platform.cores.memory
    dmas = [_shared(dma, platform.cores.count) if dma.by_cores else dma for dma in route(platform, memory)]
    alone = transfer(grid, box, use.type, dmas, store=use.writes)
    moves = grid.moves(box)
    beside = streamed(grid, moves) & (not any(dma.by_cores for dma in dmas))
    # Beside the cores a transfer waits for memory now and then.
    costs = platform.operations
    cycles = alone * np.where(grid.spread(beside), costs.get("transfer", 1.0), 1.0)
    once = Once(*(costs.get(name, 0.0) for name in ("arrive", "leave", "turns", "turn")))
    issue = issued(grid, box, use.type, dmas)
    duplex = all(dma.duplex for dma in dmas)
    return Flow(cycles, alone, issue, amount if away else amount * 0, moves, use.writes, beside, duplex, once)


def in_place(found: Flow) -> Flow:
    """A store where the next load goes, with two slots: that waits for it."""
    return replace(found, duplex=False)


def scaled(found: Flow, share: Array) -> Flow:
    return replace(found, cycles=found.cycles * share, alone=found.alone * share, issue=found.issue * share)
