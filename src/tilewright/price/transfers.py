"""Cycles of transfers between memories: of all that a group makes at a step, and beside its computation.

Single ones are in `price.copies`. Who waits for them takes a while, too (`Waits`).

These are the quick prices by which tilings are chosen, many at a time; what a plan takes in the end `timeline.replay`
says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.tiles import Use
from tilewright.machine.kernel import Kernel
from tilewright.machine.target import Target
from tilewright.price.copies import descriptors, issued, route, slowed, transfer, wait_cycles
from tilewright.price.far import Far, far_part
from tilewright.price.grid import Array, Box, Grid


class Waits(Struct, frozen=True):
    """Cycles of who waits for transfers."""

    each: float = 0.0
    """For each buffer that moves at a step."""
    code: float = 0.0
    """Of code for that at a place that a group comes to first, so that it is in no cache: where it starts its first
    loads, those of its second step, and its last stores."""

    @property
    def cold(self) -> float:
        return self.each + self.code


class Outside(Struct, frozen=True):
    """What others do for a group, by number of buffer."""

    begun: frozenset[int] = frozenset()
    """Buffers whose first load arrives before the group begins."""
    ended: frozenset[int] = frozenset()
    """Those whose last store is left to groups behind it."""
    there: frozenset[int] = frozenset()
    """Those in which a group before it left the whole tensor."""


ALONE = Outside()


class Flow(Struct, frozen=True, eq=False):
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
    waits: Waits
    commands: Array
    """Of the DMA, which are started one by one."""
    queue: int = 0
    """How many of these the DMA takes before it begins them; 0 where it takes all."""
    far: Far | None = None
    """Where its bytes pass a memory on their way."""


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
            stopped = stopped | grid.over_classes(moves[loop])
        found = found & (stopped | edge[loop])
    return found


class Slow(Struct, frozen=True, eq=False):
    """Transfers whose bytes pass a memory on their way, over classes: cycles beside the computation and other ones."""

    loads: Array
    stores: Array
    """Without the request, which the next one's hides."""
    both: Array
    starts: Array
    """To start all of these, one after the other: cores wait for who does it, at the end of a step."""
    store_starts: Array
    passing: Array
    """Of loads: from there on, with nothing beside it."""
    again: float
    """Of these, and of starts, as code is fetched anew where several nodes run in between."""


class Traffic(Struct, frozen=True, eq=False):
    """All transfers of a group with its loops in one order: cycles over classes, bytes for each tiling."""

    single: Array
    """Of transfers with which nothing overlaps, and to start them."""
    single_loads: Array
    """Of loads among them."""
    load_issue: Array
    """To start all other loads, one after the other."""
    store_issue: Array
    loads_started: Array
    """Until all these have been started, where the DMA takes no more commands before it begins some."""
    stores_started: Array
    loads: Array
    stores: Array
    load_chain: Array
    """Of loads with their starts: while one runs, the next one is started."""
    store_chain: Array
    first: Array
    """Of all loads, where they are the first ones and nothing runs beside them, less what `single` has of them."""
    last: Array
    """The same of the last stores."""
    moving: Array
    """How many buffers move at a step, beside the computation of others."""
    moved: Array
    duplex: bool
    waits: Waits
    slow: Slow | None

    @property
    def in_line(self) -> Array:
        """Of both with their starts, where they cannot happen at once."""
        return self.load_chain + self.store_chain

    @property
    def both(self) -> Array:
        """Cycles of loads and stores of the same step."""
        if not self.duplex:
            return self.in_line
        return np.maximum(self.loads, self.stores) + self.load_issue + self.store_issue

    def lead(self, grid: Grid) -> Array:
        """Until the first loads have arrived."""
        found = self.first if self.slow is None else self.first + self.slow.passing
        return grid.corner(found + self.single_loads, last=False)


class Moved(Struct, frozen=True, eq=False):
    """A flow at the steps at which it is due, over classes: what it adds to the traffic of a group."""

    flow: Flow
    when: Array
    bytes: Array
    alone: Array
    start: Array
    cycles: Array
    """Where it runs beside the computation; so with the start."""
    issue: Array
    moving: Array
    own: Array | None
    """Where nothing runs beside it; None if that is nowhere."""
    own_start: Array | None
    idle: Array | None
    """Cycles in which its DMA has nothing to do, as it takes longer to ask for the next transfer."""


def moved(grid: Grid, flow: Flow, when: Array) -> Moved:
    """A flow with the steps at which it is due."""
    cycles, start, beside = flow.cycles * when, flow.issue * when, grid.over_classes(flow.beside)
    issue, own, own_start, idle = start, None, None, None
    if not np.all(beside):
        far = start + flow.far.delay * when if flow.far is not None else 0.0
        own = np.where(beside, 0.0, cycles + far)
        own_start = np.where(beside, 0.0, start) if flow.far is None else None
        cycles, issue = np.where(beside, cycles, 0.0), np.where(beside, start, 0.0)
    if flow.far is not None:
        idle = np.maximum(flow.far.request - flow.cycles, 0.0) * (flow.cycles > 0) * when
    alone, amount = flow.alone * when, flow.bytes * when
    return Moved(flow, when, amount, alone, start, cycles, issue, when * beside, own, own_start, idle)


class _Side(Struct, eq=False):
    """Loads, or stores, over classes."""

    queue: int
    """How many transfers a DMA takes before it begins them; 0 where it takes all."""
    cycles: Array
    """Of those that run beside the computation."""
    issue: Array
    """To start these."""
    ahead: Array
    """The longest of these starts."""
    alone: Array
    """Of all, as if nothing ran beside them."""
    starts: Array
    longest: Array
    own: Array
    """Of those that nothing runs beside."""
    own_starts: Array
    own_longest: Array
    moving: Array
    """How many run beside the computation."""
    idle: Array
    """Cycles in which transfers that are shorter than it takes to ask for the next one leave their DMA alone."""
    most: Array
    """The longest of these: nothing is asked for behind the last transfer."""
    commands: Array
    """Of those that run beside the computation."""

    def add(self, moved: Moved) -> None:
        self.alone = self.alone + moved.alone
        self.starts, self.longest = self.starts + moved.start, np.maximum(self.longest, moved.start)
        if moved.own is not None:
            self.own = self.own + moved.own
        if moved.own_start is not None:
            self.own_starts = self.own_starts + moved.own_start
            self.own_longest = np.maximum(self.own_longest, moved.own_start)
        self.cycles, self.issue = self.cycles + moved.cycles, self.issue + moved.issue
        self.commands, self.queue = self.commands + moved.flow.commands * moved.moving, moved.flow.queue
        self.ahead = np.maximum(self.ahead, moved.issue)
        self.moving = self.moving + moved.moving
        if moved.idle is not None:
            self.idle, self.most = self.idle + moved.idle, np.maximum(self.most, moved.idle)

    @property
    def single(self) -> Array:
        """Cycles of those that nothing runs beside, with their starts: each while the one before it runs."""
        return np.maximum(self.own + self.own_longest, self.own_starts)

    @property
    def started(self) -> Array:
        """Cycles until those that run beside the computation are started: all but what the queue has room for begin."""
        begun = np.maximum(self.commands - self.queue, 0.0) / np.maximum(self.commands, 1.0)
        return np.maximum(self.issue, begun * self.cycles) if self.queue else self.issue

    @property
    def chain(self) -> Array:
        """Cycles of those that run beside the computation, with their starts: each while the one before it runs."""
        return np.maximum(self.cycles + self.ahead, self.issue)


def _chain(far: Far, less: Array | float, cycles: Array, *sides: _Side) -> Array:
    """Cycles of transfers that follow each other, from the first request on: others are made meanwhile."""
    issue, idle, most = sides[0].longest, sides[0].idle, sides[0].most
    for side in sides[1:]:
        issue, idle = np.maximum(issue, side.longest), idle + side.idle
        most = np.maximum(most, side.most)
    return np.where(cycles > 0, np.maximum(cycles + idle - most + issue + far.delay - less, 0.0), 0.0)


def _arrived(far: Far, flows: Sequence[Moved]) -> Array:
    """When loads have arrived that pass a memory, from the first request on, with nothing beside them.

    One core asks for all of them, another one starts them, which takes it a while each, and sees that they are there.
    Then the first one sends each on its way, and waits for it. Code for that is cold at the first of them.
    """
    asked = ended = np.zeros(())
    started: Array = np.full((), -np.inf)
    starts: list[Array] = []
    ends: list[Array] = []
    for mine in flows:
        flow, there = mine.flow, mine.alone > 0
        assert flow.far is not None
        asked = asked + flow.issue * there
        started = np.where(there, np.maximum(asked + far.latency, started + flow.far.request), started)
        ended = np.where(there, np.maximum(started, ended) + flow.alone, ended)
        starts.append(started)
        ends.append(ended)
    late, cold = far.wake - far.wait, np.asarray(far.cold_end)
    now = asked + far.cold
    for number, mine in enumerate(flows):
        # While it starts another one, the second core does not look.
        known = np.maximum(ends[number] + far.cold + late, starts[min(number + 1, len(starts) - 1)])
        flow, there = mine.flow, mine.alone > 0
        assert flow.far is not None
        now = np.where(there, np.maximum(now, known) + flow.far.sent_on + cold, now)
        cold = np.where(there, 0.0, cold)
    return now


def traffic(grid: Grid, flows: Sequence[Moved]) -> Traffic:
    """All flows of a group."""
    nothing = np.zeros((1,) * grid.rank)
    loads, stores, far_loads, far_stores = (_Side(0, *(nothing for _ in range(13))) for _ in range(4))
    amount, passing, hidden, longest = nothing, nothing, nothing, nothing
    waits = flows[0].flow.waits if flows else Waits()
    for mine in flows:
        flow, amount = mine.flow, amount + mine.bytes
        if flow.far is None:
            (stores if flow.store else loads).add(mine)
        else:
            (far_stores if flow.store else far_loads).add(mine)
            if not flow.store:
                # While one passes, another one comes to where it passes from.
                own = flow.far.sent_on * mine.when
                beside = np.minimum(own, mine.alone)
                passing, hidden, longest = passing + own, hidden + beside, np.maximum(longest, beside)
    # While one transfer runs, the next one is started.
    first = np.maximum(loads.alone + loads.longest, loads.starts + waits.cold)
    first = np.where(loads.alone > 0, first, 0.0) - loads.single
    duplex = all(mine.flow.duplex for mine in flows if mine.flow.far is None)
    # With one slot, too, results are on their way while the next step's operands are loaded.
    shown = stores.single - np.minimum(stores.own, loads.single) * duplex
    last = np.where(stores.alone > 0, stores.alone + stores.starts + waits.cold, 0.0) - shown
    single, slow = loads.single + shown, None
    far = next((mine.flow.far for mine in flows if mine.flow.far is not None), None)
    if far is not None:
        less = hidden - longest
        slow = Slow(
            _chain(far, less, far_loads.cycles, far_loads),
            far_stores.cycles,
            _chain(far, less, far_loads.cycles + far_stores.cycles, far_loads, far_stores),
            far_loads.issue + far_stores.issue,
            far_stores.issue,
            passing,
            far.again,
        )
        ahead = _arrived(far, [mine for mine in flows if mine.flow.far is not None and not mine.flow.store])
        behind = _chain(far, 0.0, far_stores.alone, far_stores)
        code = far.cold + far.cold_end
        cold = code if np.any(ahead) else 0.0
        first = np.maximum(first + loads.single, np.where(ahead > 0, ahead - passing, 0.0)) - loads.single
        first = first - far_loads.single
        last = last + np.where(behind > 0, behind + code - cold, 0.0) - far_stores.single
        single = single + far_loads.single + far_stores.single
    return Traffic(
        single,
        loads.single + far_loads.single,
        loads.issue,
        stores.issue,
        loads.started,
        stores.started,
        loads.cycles,
        stores.cycles,
        loads.chain,
        stores.chain,
        first,
        last,
        loads.moving + stores.moving + far_loads.moving + far_stores.moving,
        grid.total(amount),
        duplex,
        waits,
        slow,
    )


def in_turn(grid: Grid, compute: Array, found: Traffic) -> Array:
    """Cycles of all steps for each tiling where no transfer runs beside the computation."""
    loads = found.load_chain
    # Results are on their way while the next step's operands are loaded.
    stores = found.store_chain - np.minimum(found.stores, loads) * found.duplex
    if found.slow is not None:
        loads, stores, compute = loads + found.slow.loads, stores + found.slow.stores, compute + found.slow.passing
    first = grid.corner(found.first - loads, last=False) + grid.corner(found.last - stores, last=True)
    total = grid.total(compute) + grid.total(found.single + loads + stores)
    return total + first


def overlapped(
    grid: Grid, compute: Array, found: Traffic, between: Array | float = 0.0, first: Array | None = None
) -> Array:
    """Cycles of all steps for each tiling; `between` is what passes after the transfers of one before the next's.

    Who starts transfers does so beside the first of several nodes, whose cycles are `first`: the next one waits for it.
    """
    # Whoever is done first waits for the other; then the next step's transfers are started.
    waits = found.moving * found.waits.each
    alone, busy = found.single, compute + waits
    issue, both = found.load_issue + found.store_issue, found.both
    held, held_begin, held_end = _held(found, first)
    beside = np.maximum(busy + held, both + np.where(both > 0, between + waits, 0.0))
    # At the first step nothing is loaded beside the cores, at the last one nothing stored.
    unloaded = np.maximum(busy + held_begin, found.stores + issue)
    unstored = np.maximum(busy + held_end, found.loads + issue)
    # Beside the last step the results of the one before are stored, which may be larger.
    begin, end = grid.corner(unloaded, last=False), grid.corner(unstored, last=True)
    end = np.maximum(end, grid.corner(found.stores, last=False))
    if found.slow is not None:
        slow = found.slow
        # A load waits for a store in its place.
        both = slow.both if found.duplex else slow.both + found.in_line
        if first is not None:
            alone = alone + np.where(slow.passing > 0, slow.again, 0.0)
        alone, beside = alone + slow.passing, np.maximum(beside, np.maximum(both, slow.starts))
        # The first step loads for the second one, and what was made before is stored while the last one computes.
        begin = np.maximum(begin, grid.corner(slow.loads, last=True))
        end = np.maximum(end, grid.corner(np.maximum(slow.stores, slow.store_starts), last=False))
    total = grid.total(alone) + grid.total(beside)
    begun = grid.corner(found.first - beside, last=False) + begin
    ended = end - grid.corner(beside, last=True)
    total = total + begun + grid.corner(found.last, last=True)
    return total + np.where(grid.steps == 1, 0.0, ended + found.waits.code)


def first_work(works: Sequence[Array], *, ahead: bool) -> Array | None:
    """Cycles of the first node that runs at each step, where others wait for it."""
    if ahead or len(works) == 1:
        return None
    found = works[0]
    for work in works[1:]:
        found = np.where(found > 0, found, work)
    return found


def _held(found: Traffic, first: Array | None) -> tuple[Array, Array, Array]:
    """Cycles for which nodes behind the first one wait until transfers are started: any, the first, the last."""
    if first is None:
        nothing = np.zeros(())
        return nothing, nothing, nothing
    loads, stores = found.loads_started, found.stores_started
    if found.slow is not None:
        slow = found.slow
        loads, stores = loads + slow.starts - slow.store_starts, stores + slow.store_starts
        first = first - np.where(slow.starts > 0, slow.again, 0.0)
    # Those of a step are its predecessor's stores and its successor's loads.
    both, begin, end = (np.maximum(starts - first, 0.0) for starts in (loads + stores, loads, stores))
    return both, begin, end


def flow(grid: Grid, platform: Target, box: Box, use: Use, memory: str, kernels: Sequence[Kernel | None] = ()) -> Flow:
    """How a buffer is filled from a memory, or emptied into it, with two slots where that is of use.

    Meanwhile cores run these kernels.
    """
    amount = grid.product([]) * grid.elements(box) * use.type.dtype.bytes
    away = memory != platform.cores.memory
    dmas = route(platform, memory)
    alone = transfer(grid, box, use.type, dmas, store=use.writes, cores=platform.cores.count)
    moves = grid.moves(box)
    beside = streamed(grid, moves) & (not any(dma.by_cores for dma in dmas))
    costs = platform.operations
    cycles = alone * np.where(grid.over_classes(beside), slowed(platform, kernels), 1.0)
    waits = Waits(wait_cycles(platform), costs.get("first transfer", 0.0) + costs.get("cold wake", 0.0))
    issue = issued(grid, box, use.type, dmas)
    duplex = all(dma.duplex for dma in dmas)
    far = None
    if dmas and dmas[0].through:
        far = far_part(grid, platform, box, use, dmas[0], kernels)
        # A store passes first: only then the slower transfer is asked for.
        cycles, issue = alone, issued(grid, box, use.type, dmas[:1]) + (far.passing if use.writes else 0.0)
    amount = amount if away else amount * 0
    commands = grid.product([]) * (descriptors(grid, box, use.type.shape, dmas[0].rank) if dmas and far is None else 1)
    queue = dmas[0].queue if dmas else 0
    return Flow(cycles, alone, issue, amount, moves, use.writes, beside, duplex, waits, commands, queue, far)


def in_place(found: Flow) -> Flow:
    """A store where the next load goes, with two slots: that waits for it."""
    return replace(found, duplex=False)


def scaled(found: Flow, share: Array) -> Flow:
    far = found.far and replace(found.far, passing=found.far.passing * share)
    return replace(found, cycles=found.cycles * share, alone=found.alone * share, issue=found.issue * share, far=far)
