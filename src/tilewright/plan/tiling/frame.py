"""What is the same for all tilings of a group, wherever its tensors live: buffers, ways to share cores, loop orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import permutations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.domain import Affine
from tilewright.core.tiles import Use, left, walked
from tilewright.machine.parts import Device
from tilewright.machine.target import Target
from tilewright.plan.tiling.rules import (
    Density,
    Option,
    Rules,
    at_ends,
    conditions,
    density,
    legal_sizes,
    lies_in,
    overwritten,
    rounded,
    same_box,
    tile_names,
)
from tilewright.price.copies import kept_cycles, kept_lines
from tilewright.price.formulas import evaluate
from tilewright.price.grid import Array, Box, Grid, Value
from tilewright.price.tasks import Task
from tilewright.price.tiles import NOTHING, asks_strides, parted, start_cycles, together, work_cycles, work_points
from tilewright.price.transfers import Flow, Moved, Traffic, due, first_work, flow, in_place, moved, streamed, traffic

Order = tuple[int, ...]
"""Loops, outermost first."""


class Holder(Struct, eq=False):
    """A tile buffer: the part of a tensor that some uses need."""

    use: Use
    box: Box
    served: list[tuple[int, str]]
    """Node and key of each use."""
    inner: bool
    """Whether the tensor stays inside the group."""
    through: bool = True
    """Whether it holds something at every moment of a step."""
    first: int = 0
    last: int = 0
    """Nodes between which it is needed otherwise."""
    room: Value = 0
    """Bytes of one slot for each tiling."""
    again: Value = False
    """Tilings with which it is filled more than once, so that more slots are of use."""
    kept: Value = 0
    """Bytes at its start that hold lines from step to step, where it is free between its nodes otherwise."""
    over: int = -1
    """The holder whose bytes it may take, where both are there."""
    within: int = -1
    """Another holder of the same tensor that holds all of it, too."""
    inside: Value = False
    """Tilings with which its uses can be served from there."""


class Frame:
    """A grid of tilings with everything about it that does not depend on where tensors live."""

    def __init__(self, platform: Target, tasks: Sequence[Task], rules: Sequence[Rules], grid: Grid) -> None:
        self.platform, self.tasks, self.rules, self.grid = platform, tuple(tasks), tuple(rules), grid
        self.engine = platform.cores
        legal = grid.product(legal_sizes(grid, rules)) > 0
        for tensor, axis in grid.keep.items():
            for span in grid.projection.held[tensor][:axis]:
                legal = legal & (grid.most(grid.size(span)) <= 1)
        self.legal = legal
        self._flows: dict[tuple[int, str, bool], Flow] = {}
        self._options: dict[tuple[int, frozenset[int], frozenset[str]], tuple[Option, ...]] = {}
        self._due: dict[tuple[int, Order], Array] = {}
        self._points: dict[Order, Array] = {}
        self._moved: dict[tuple[int, str, bool, bool, Order], Moved] = {}
        self._direct: dict[int, Value] = {}

    # Buffers

    @cached_property
    def holders(self) -> tuple[Holder, ...]:
        """A buffer for every tensor; uses that touch the same share one."""
        grid, projection = self.grid, self.grid.projection
        found: list[Holder] = []
        for position, mine in enumerate(grid.members):
            for use in mine.uses:
                inner = use.tensor in projection.held
                part = inner and not use.writes and self._dense(position, use.key)
                box = projection.regions[position][use.key] if part or not inner else projection.held[use.tensor]
                _add(found, Holder(use, box, [(position, use.key)], inner))
        for holder in found:
            positions = [position for position, _ in holder.served]
            if holder.inner and any(key == grid.members[p].output.key for p, key in holder.served):
                positions += [
                    p for p, m in enumerate(grid.members) for use in m.uses if use.tensor == holder.use.tensor
                ]
                holder.kept = self.aligned(grid.most(kept_lines(grid, holder.use)) * holder.use.type.dtype.bytes)
            holder.first, holder.last = min(positions), max(positions)
            holder.through = not holder.inner or not self._every_step(holder.first)
            holder.room = self.aligned(grid.room(holder.box) * holder.use.type.dtype.bytes)
            holder.again = np.asarray(False) if holder.inner else streamed(grid, grid.moves(holder.box))
        for number, holder in enumerate(found):
            self._share(found, number, holder)
        if self._works_ahead(found):
            first = grid.members[0].output
            made = next(holder for holder in found if holder.use.tensor == first.tensor)
            made.through, made.again = True, streamed(grid, grid.moves(made.box))
        for position in range(len(grid.members)):
            self._in_place(found, position)
        return tuple(found)

    @cached_property
    def ahead(self) -> bool:
        """Whether the first node can run on its engine while cores work on what it made the step before."""
        return self._works_ahead(self.holders)

    @cached_property
    def queue(self) -> Device | None:
        """What can be given the next step while it works on one, as nothing else is computed at its steps."""
        copies = [h for h in self.holders if h.over >= 0 or h.within >= 0]
        return self.platform.beside(self.tasks[0].kernel) if len(self.tasks) == 1 and not copies else None

    def _works_ahead(self, holders: Sequence[Holder]) -> bool:
        beside = [self.platform.beside(task.kernel) is not None for task in self.tasks]
        if len(beside) == 1 or not beside[0] or any(beside[1:]):
            return False
        first = self.grid.members[0].output.tensor
        own = [{position == 0 for position, _ in holder.served} for holder in holders]
        shared = any(
            holder.use.tensor != first and (len(mine) > 1 or (holder.within >= 0 and own[holder.within] != mine))
            for holder, mine in zip(holders, own, strict=True)
        )
        return not shared and first not in self.grid.keep and sum(holder.use.tensor == first for holder in holders) == 1

    def _share(self, holders: Sequence[Holder], number: int, holder: Holder) -> None:
        """Finds another holder that has all that one has, where it is dense for kernels."""
        for index, other in enumerate(holders):
            a, b = holder.use, other.use
            same = index != number and (a.tensor, a.pack, a.type) == (b.tensor, b.pack, b.type)
            if same and other.within < 0 and all(lies_in(x, y) for x, y in zip(holder.box, other.box, strict=True)):
                holder.within, holder.inside = index, self._dense_in(holder, other)
                return

    def _dense_in(self, holder: Holder, other: Holder) -> Value:
        dense = any(self._dense(position, key) for position, key in holder.served)
        block = [self.grid.size(span) for span in other.box]
        return density(self.grid, holder.box, block).whole if dense else np.asarray(True)

    def _dense(self, position: int, key: str) -> bool:
        """Whether what a node touches has to be one run of bytes: kernels ask for that unless they walk by strides."""
        kernel = self.tasks[position].kernel
        return kernel is not None and key not in walked(self.grid.members[position], kernel)

    def _in_place(self, holders: Sequence[Holder], position: int) -> None:
        """Lets the result of a node take the bytes of an operand that it reads for the last time, where it may."""
        output = self.grid.members[position].output
        given = next(h for h in holders if (position, output.key) in h.served)
        if given.inner and (given.through or given.use.tensor in self.grid.keep):
            return
        for index, taken in enumerate(holders):
            keys = {key for place, key in taken.served if place == position}
            if (
                keys & overwritten(self.tasks[position])
                and taken.last == position
                and taken.within < 0
                and all(other.within != index for other in holders)
                and not (taken.inner and (taken.through or taken.use.tensor in self.grid.keep))
                and same_box(taken.box, given.box)
                and ((taken.inner and given.inner) or (taken.through and given.through))
                and all(other.over != index for other in holders)
            ):
                given.over = index
                return

    def _every_step(self, position: int) -> bool:
        """Whether a node runs at every step, whatever the tiling."""
        moves, counts = self._moves[position], self.grid.counts
        return all(loop in moves and bool(np.all(moves[loop] | (counts[loop] == 1))) for loop in range(self.grid.rank))

    def aligned(self, size: Value) -> Value:
        return rounded(size, self.platform.alignment)

    def inlaid(self, memories: Mapping[int, str]) -> frozenset[int]:
        """Holders that may lie within that of the result, of those that are loaded or stored."""
        last, holders = len(self.tasks) - 1, self.holders
        keys = {
            h.served[0][1]: index
            for index, h in enumerate(holders)
            if memories.get(index, self.engine.memory) != self.engine.memory
            and [position for position, _ in h.served] == [last]
            and h.within < 0
            and all(other.within != index for other in holders)
        }
        found = at_ends(self.tasks[-1], keys) if self.grid.members[-1].output.key in keys else ()
        return frozenset(keys[key] for key in found)

    def uncut(self, inlaid: frozenset[int]) -> Value:
        """Tilings with which the dimension along which they lie within the result is not cut."""
        counts = [self.grid.counts[loop] for loop, cut in enumerate(self.grid.cuts) if cut.dim in self._left(inlaid)]
        return self.grid.product(counts) == 1

    def _left(self, inlaid: frozenset[int]) -> dict[str, int]:
        """How much of that dimension is left."""
        ends = left(self.grid.members[-1], [self.holders[index].served[0][1] for index in inlaid])
        return {name: stop - start for name, (start, stop) in ends.items()}

    def flow(self, index: int, memory: str, inlaid: bool = False) -> Flow:
        """How a holder is filled from a memory or emptied into it."""
        key = (index, memory, inlaid)
        if key not in self._flows:
            holder = self.holders[index]
            # Within a result its runs of bytes are as long as there.
            use = replace(holder.use, type=self.grid.members[-1].output.type) if inlaid else holder.use
            kernels = [task.kernel for task in self.tasks]
            self._flows[key] = flow(self.grid, self.platform, holder.box, use, memory, kernels)
        return self._flows[key]

    def absent(self, index: int, direct: Mapping[int, Value]) -> Value:
        """Tilings with which there is no buffer for a holder, given those with which near tensors need none."""
        holder = self.holders[index]
        found = direct.get(index, np.asarray(False))
        if holder.within >= 0:
            found = found | (holder.inside & ~direct.get(holder.within, np.asarray(False)))
        return found

    def direct(self, index: int) -> Value:
        """Tilings with which the uses of a near tensor need no buffer: what kernels touch is dense in it.

        Sums of parts lie as a tile does, and one offset serves sums and result: there the result has to be dense, too.
        """
        if index not in self._direct:
            found: Value = np.asarray(True)
            for position, key in self.holders[index].served:
                if self._dense(position, key):
                    found = found & self.densities[position][key][2].whole
                elif self.sum_loops and key == self.grid.members[position].output.key:
                    box, shape = (
                        self.grid.projection.regions[position][key],
                        self.grid.members[position].domain.shapes[key],
                    )
                    found = found & (density(self.grid, box, shape).whole | ~parted(self.grid))
            self._direct[index] = found
        return self._direct[index]

    @cached_property
    def densities(self) -> tuple[Mapping[str, tuple[int, Density, Density]], ...]:
        """For each use that has to be dense its holder, and how the part lies in the buffer and in the whole tensor."""
        grid = self.grid
        found: list[dict[str, tuple[int, Density, Density]]] = [{} for _ in grid.members]
        for index, holder in enumerate(self.holders):
            block = [grid.size(span) for span in holder.box]
            for position, key in holder.served:
                if not self._dense(position, key):
                    continue
                box = grid.projection.regions[position][key]
                shape = self.grid.members[position].domain.shapes[key]
                found[position][key] = (index, density(grid, box, block), density(grid, box, shape))
        return tuple(found)

    # Cores

    def options(self, position: int, inlaid: frozenset[int], near: Iterable[int]) -> tuple[Option, ...]:
        """The ways to share a node, one core first. Operands that `near` holders have are walked in their tensors."""
        last = position == len(self.tasks) - 1
        served = (key for holder in near for at, key in self.holders[holder].served if at == position)
        whole = frozenset(key for key in served if asks_strides(self.tasks[position], key))
        asked = (position, inlaid if last else frozenset[int](), whole)
        if asked not in self._options:
            self._options[asked] = self._ways(position, self._left(inlaid) if last else NOTHING, whole)
        return self._options[asked]

    def _ways(self, position: int, rest: Mapping[str, int], whole: frozenset[str]) -> tuple[Option, ...]:
        alone = self.engine.count == 1 or self.platform.beside(self.tasks[position].kernel) is not None
        names = () if alone else self.rules[position].free
        ways = [self._option(position, name, rest, whole) for name in ("", *names)]
        return tuple(way for way in ways if np.any(way.fits & way.cut))

    def _option(self, position: int, split: str, rest: Mapping[str, int], whole: frozenset[str]) -> Option:
        grid, mine, asked = self.grid, self.tasks[position], self.rules[position]
        chunk: Value = 0
        cut: Value = np.asarray(True)
        if split:
            span = grid.projection.ranges[position].get(split)
            largest = mine.member.domain.dims[split] if span is None else grid.most(grid.size(span))
            chunk = rounded(-(-largest // self.engine.count), asked.blocks.get(split, 1))
            cut = np.asarray(chunk < largest)
        cycles = work_cycles(grid, self.platform, position, mine, split, chunk, whole, rest)
        cycles = cycles + start_cycles(grid, self.platform, mine, split)
        fits = conditions(grid, position, mine, asked, split, chunk)
        return Option(split, chunk, cut, fits, cycles, grid.most(cycles), self._scratch(position, split, chunk))

    def _scratch(self, position: int, split: str, chunk: Value) -> Value:
        mine = self.tasks[position]
        if mine.kernel is None or mine.kernel.scratch == "0":
            return 0
        # The last part of a reduction may need scratch where others, which are whole blocks, do not.
        ends = [(), self.sum_loops] if self.sum_loops else [()]
        needs: Value | float = 0
        for short in ends:
            names = tile_names(self.grid, position, mine, split, chunk, short)
            needs = np.maximum(needs, evaluate(mine.kernel.scratch, names))
        callers = self.callers(position, split)
        return self._in_other_banks(self.aligned(np.ceil(needs).astype(int)), callers) * callers

    def _in_other_banks(self, size: Value, callers: int) -> Value:
        """Bytes of scratch of each core with which those of no two begin in the same bank: cores that do the same wait
        for each other there."""
        memory = self.platform.memories[self.engine.memory]
        share = memory.banks * memory.bank_bytes >> (callers - 1).bit_length()
        if callers == 1 or not share or share % self.platform.alignment:
            return size
        # An odd number of shares, of which all banks are a power of two, leads to all of them in turn.
        return np.where(np.asarray(size) > 0, rounded(size, share) // share // 2 * 2 * share + share, 0)

    def callers(self, position: int, split: str) -> int:
        """How many cores call a node's kernel, each with scratch of its own."""
        kernel = self.tasks[position].kernel
        return self.engine.count if split or (kernel is not None and kernel.shared) else 1

    @cached_property
    def sum_loops(self) -> Order:
        """Loops over parts of reductions."""
        return tuple(loop for loop, cut in enumerate(self.grid.cuts) if cut.dim in self.rules[-1].sums)

    @cached_property
    def sums(self) -> Value:
        """Bytes to add up parts of a reduction in, for each tiling; none where a device keeps them."""
        last = self.tasks[-1]
        if not self.sum_loops or (last.kernel is not None and last.kernel.keeps_sums):
            return 0
        box = self.grid.projection.regions[-1][last.member.output.key]
        size = self.aligned(self.grid.room(box) * last.call.outputs[0].dtype.bytes)
        return np.where(parted(self.grid), size, 0)

    def allowed(self, position: int, option: Option, direct: Mapping[int, Value]) -> Value:
        """Tilings with which a way to share a node is one, and leaves each core parts that are dense."""
        result = option.cut & option.fits
        access = self.tasks[position].member.domain.access
        for key, (holder, in_buffer, in_tensor) in self.densities[position].items():
            axes = access[key] if option.split else ()
            shared = [i for i, axis in enumerate(axes) if isinstance(axis, Affine) and option.split in axis.dims]
            found = in_buffer.shared(shared, option.cut)
            if self.holders[holder].within >= 0:
                outer = self._outer(position, key).shared(shared, option.cut)
                found = np.where(self.absent(holder, direct), outer, found)
            if holder in direct:
                found = np.where(direct[holder], in_tensor.shared(shared, option.cut), found)
            result = result & found
        return result

    def _outer(self, position: int, key: str) -> Density:
        """How what a kernel touches lies in the holder that has all that its own has."""
        grid, holder = self.grid, self.holders[self.densities[position][key][0]]
        block = [grid.size(span) for span in self.holders[holder.within].box]
        return density(grid, grid.projection.regions[position][key], block)

    # Loops

    @cached_property
    def _moves(self) -> tuple[Mapping[int, Array], ...]:
        """The loops with which the tile of each node moves."""
        return tuple(self.grid.moves(tuple(ranges.values())) for ranges in self.grid.projection.ranges)

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """Orders of the loops, less those with which everything is loaded at least as often as with another one."""
        grid = self.grid
        outer = [loop for loop in range(grid.rank) if loop not in self.sum_loops]
        if len(outer) > 3:
            return ((*outer, *self.sum_loops),)
        found = [(*o, *self.sum_loops) for o in permutations(outer) if not grid.keep or o[-1] == grid.sweep]
        boxes = {frozenset(grid.moves(holder.box)) for holder in self.holders if not holder.inner}
        boxes |= {frozenset(moves) for moves in self._moves}
        reuse = {order: _reuse(order, [*boxes]) for order in found}
        kept: list[Order] = []
        for order in found:
            if not any(_covers(reuse[other], reuse[order]) for other in kept):
                kept = [other for other in kept if not _covers(reuse[order], reuse[other])] + [order]
        return tuple(kept)

    def when(self, index: int, moves: Mapping[int, Array], order: Order) -> Array:
        """Steps at which a holder is filled; nodes count from -1 down."""
        key = (index, order)
        if key not in self._due:
            store = index >= 0 and self.holders[index].use.writes
            self._due[key] = due(self.grid, moves, order, store=store)
        return self._due[key]

    def compute(self, order: Order, cycles: Sequence[Array], *, ahead: bool) -> tuple[Array, Array | None]:
        """Cycles of each step, given those of each node; `ahead`: the first one runs beside the others.

        Then those of the first node, where others wait for it.
        """
        if len(cycles) == 1:
            return cycles[0], None
        found = [
            self.when(-1 - position, self._moves[position], order) * (mine + self._kept[position])
            for position, mine in enumerate(cycles)
        ]
        return together(self.grid, self.platform, found, ahead=ahead), first_work(found, ahead=ahead)

    @cached_property
    def _kept(self) -> tuple[Array, ...]:
        return tuple(kept_cycles(self.grid, self.platform, m.output) for m in self.grid.members)

    def points(self, order: Order) -> Array:
        """Points that all nodes compute, for each tiling."""
        if len(self.tasks) == 1:
            return np.asarray(self.tasks[0].member.domain.points())
        if order not in self._points:
            result = np.zeros((1,) * self.grid.rank)
            for position in range(len(self.tasks)):
                when = self.when(-1 - position, self._moves[position], order)
                result = result + when * work_points(self.grid, position)
            self._points[order] = self.grid.total(result)
        return self._points[order]

    def traffic(
        self, order: Order, memories: Mapping[int, str], direct: Mapping[int, Value], inlaid: frozenset[int]
    ) -> Traffic:
        """Transfers of the holders of outside tensors, less those that are used where they live."""
        found: list[Moved] = []
        for index, memory in memories.items():
            over = self.holders[index].over in memories or (bool(inlaid) and self.holders[index].use.writes)
            absent = self.absent(index, direct)
            if np.any(absent):
                mine = self.flow(index, memory, index in inlaid)
                when = self.when(index, mine.moves, order) & ~self.grid.over_classes(absent)
                found.append(moved(self.grid, in_place(mine) if over else mine, when))
            else:
                found.append(self._always(index, memory, index in inlaid, over, order))
        return traffic(self.grid, found)

    def _always(self, index: int, memory: str, inlaid: bool, over: bool, order: Order) -> Moved:
        """The transfers of a holder that is there with all tilings; `over` another one, or it waits for one."""
        key = (index, memory, inlaid, over, order)
        if key not in self._moved:
            mine = self.flow(index, memory, inlaid)
            when = self.when(index, mine.moves, order)
            self._moved[key] = moved(self.grid, in_place(mine) if over else mine, when)
        return self._moved[key]


def _add(found: list[Holder], wanted: Holder) -> None:
    for other in found:
        a, b = other.use, wanted.use
        if (a.tensor, a.pack, a.type) == (b.tensor, b.pack, b.type) and same_box(other.box, wanted.box):
            other.served += wanted.served
            return
    found.append(wanted)


def _reuse(order: Order, boxes: Sequence[frozenset[int]]) -> list[frozenset[int]]:
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
