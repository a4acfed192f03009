"""What a group of nodes does, as statements: transfers of its buffers, calls on every core, kept lines.

`groups` puts them in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.codegen.channels import Channels
from tilewright.codegen.naming import ExpressionNames
from tilewright.codegen.pieces import Pieces
from tilewright.codegen.transfers import copy
from tilewright.codegen.works import HeldRegion, Parts, TileTask, around, invoke, packing_names, reach
from tilewright.core.expr import Expr, Size, Var, bounds_of, larger, plain, variable
from tilewright.core.moves import Move as Transfer
from tilewright.core.moves import Run
from tilewright.core.plan import Choice, Group, NodeWork, Place, Plan, Schedule, Stage
from tilewright.core.program import (
    AwaitEngine,
    AwaitTransfers,
    Copy,
    If,
    Mark,
    MoveBytes,
    OnCores,
    Pointer,
    StartEngine,
    Statement,
    Test,
)
from tilewright.core.sizes import ranges_of
from tilewright.core.tiles import (
    Extent,
    Member,
    Region,
    TileLoop,
    Trace,
    Use,
    hull,
    left,
    narrowed,
    trace,
    walked,
)
from tilewright.machine.parts import Link
from tilewright.price.tasks import task

CORE = "core"


class Lowering(Struct, frozen=True, eq=False, dict=True):
    """One group on its way to a routine."""

    plan: Plan
    schedule: Schedule
    index: int
    group: Group
    pieces: Pieces
    channels: Channels
    step: Literal["any", "first", "last"] | tuple[int, ...] = "any"
    """Which step statements are for: any, as expressions of the loop variables, or one that is known."""
    awaits: bool = False
    """Whether the last node awaits some of its operands itself."""
    observed: bool = False
    """Whether marks tell where a node has been computed."""
    edge: tuple[int, bool] | None = None
    """A loop, and whether it stands at its last tile or before that, where statements are for one of these alone."""
    names: ExpressionNames = field(default_factory=ExpressionNames)
    """The same for all steps: statements for some of them come to stand beside others."""

    # What the group touches, as expressions of its loop variables

    @cached_property
    def members(self) -> tuple[Member, ...]:
        nodes, choices = self.plan.graph.nodes, self.plan.choices
        return tuple(task(self.plan.graph, nodes[w.step], choices[w.step].kernel).member for w in self.group.works)

    @cached_property
    def at(self) -> tuple[Size, ...]:
        if isinstance(self.step, tuple):
            return self.step
        if self.step != "any":
            return tuple(loop.count - 1 if self.step == "last" else 0 for loop in self.group.loops)
        found = [variable(index_name(loop), loop.count) for loop in self.group.loops]
        if self.edge is not None:
            number, last = self.edge
            loop = self.group.loops[number]
            found[number] = loop.count - 1 if last else variable(index_name(loop), loop.count - 1)
        return tuple(found)

    @cached_property
    def trace(self) -> Trace:
        return trace(self.members, self.group.loops, self.group.keep, self.at, self.names, self.lengths)

    @cached_property
    def lengths(self) -> list[dict[str, Extent]]:
        """Of each node the parts of dimensions that are known when the network runs."""
        graph = self.plan.graph
        return [{n: Extent(*ends) for n, ends in ranges_of(graph, mine.node).items()} for mine in self.members]

    @cached_property
    def following(self) -> Trace:
        """One step of the innermost loop later."""
        at = (*self.at[:-1], self.at[-1] + 1)
        return trace(self.members, self.group.loops, self.group.keep, at, self.names, self.lengths)

    @cached_property
    def _general(self) -> Lowering:
        return replace(self, step="any", edge=None)

    @cached_property
    def steps(self) -> int:
        return prod(loop.count for loop in self.group.loops)

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """What each buffer holds."""
        found: list[list[Region]] = [[] for _ in self.group.buffers]
        for position, (work, mine) in enumerate(zip(self.group.works, self.members, strict=True)):
            for use in mine.uses:
                if use.key in work.buffers:
                    found[work.buffers[use.key]].append(self.trace.regions[position][use.key])
        made = {buffer: tensor for tensor, buffer in self.made_in.items()}
        return tuple(
            self.trace.held[made[number]] if number in made else hull(regions) for number, regions in enumerate(found)
        )

    @cached_property
    def makers(self) -> dict[str, int]:
        """Which node makes each tensor that stays inside the group."""
        return {mine.output.tensor: position for position, mine in enumerate(self.members[:-1])}

    @cached_property
    def made_in(self) -> dict[str, int]:
        """The buffer in which it does; other buffers of the same tensor hold copies of parts."""
        found: dict[str, int] = {}
        for tensor, position in self.makers.items():
            found[tensor] = self.group.works[position].buffers[self.members[position].output.key]
        return found

    def last_reader(self, tensor: str) -> int:
        return max(p for p, mine in enumerate(self.members) if any(use.tensor == tensor for use in mine.uses))

    @cached_property
    def written(self) -> dict[int, Use]:
        """Buffers of results that leave the group."""
        last, mine = self.group.works[-1], self.members[-1]
        return {last.buffers[use.key]: use for use in mine.uses if use.writes and use.key in last.buffers}

    @cached_property
    def read(self) -> dict[int, tuple[int, Use]]:
        """Buffers of what comes from outside, with one of the uses and the position of its node."""
        found: dict[int, tuple[int, Use]] = {}
        for position, (work, mine) in enumerate(zip(self.group.works, self.members, strict=True)):
            for use in mine.uses:
                outside = use.tensor not in self.trace.held and not use.writes
                if outside and use.key in work.buffers and work.buffers[use.key] not in self.written:
                    found.setdefault(work.buffers[use.key], (position, use))
        return found

    # Slots and channels

    @cached_property
    def outer(self) -> int:
        """How many loops there are around those over parts of a reduction."""
        return sum(loop.dim not in self.members[-1].domain.reduction for loop in self.group.loops)

    @cached_property
    def stores(self) -> int:
        """How many tiles leave the group."""
        return prod(loop.count for loop in self.group.loops[: self.outer])

    def depth(self, values: Sequence[Size]) -> int:
        """The innermost loop that values depend on; -1 for none."""
        mentioned = {name for value in values if isinstance(value, Expr) for name in value.variables}
        names = self.names.behind(mentioned)
        return max((k for k, loop in enumerate(self.group.loops) if index_name(loop) in names), default=-1)

    def buffer_depth(self, buffer: int) -> int:
        if buffer in self.written:
            return self.outer - 1
        if self.step != "any" or self.edge is not None:
            return self._general.buffer_depth(buffer)
        return self.depth([end for part in self.regions[buffer] for end in (part.start, part.stop)])

    def work_depth(self, position: int) -> int:
        if self.edge is not None:
            return self._general.work_depth(position)
        ranges = self.trace.ranges[position].values()
        return self.depth([end for part in ranges for end in (part.start, part.stop)])

    def tests(self, depth: int) -> tuple[Test, ...]:
        """What holds at the steps at which something of this depth changes."""
        return tuple(Test(i, "==", 0) for i in self.at[depth + 1 :] if isinstance(i, Expr))

    def slot(self, buffer: int) -> Size:
        number: Size = 0
        for k in range(self.buffer_depth(buffer) + 1):
            number = number * self.group.loops[k].count + self.at[k]
        return number % self.group.buffers[buffer].slots

    def channel(self, buffer: int) -> Size:
        """That of the transfer of a step."""
        first = self.channels.prefetch(self.index, buffer)
        if first is not None and (self.group.buffers[buffer].slots == 1 or self.step == "first"):
            return first
        late = self.channels.drained_later(self.index, buffer)
        return plain(self.slot(buffer) + self.channels.of(self.index, buffer)) if late is None else late

    # Where things are

    @property
    def memory(self) -> str:
        return self.plan.platform.engines[self.schedule.engine].memory

    def in_buffer(self, buffer: int) -> HeldRegion:
        mine = self.group.buffers[buffer]
        place = Place(self.memory, mine.offset)
        held = HeldRegion(place, self.slot(buffer) * mine.bytes, self.regions[buffer], self._unit(buffer))
        if mine.within < 0:
            return held
        position, use = self.read[buffer]
        return replace(held, region=around(self.members[position], use, self.regions[mine.within]))

    def _unit(self, buffer: int) -> int:
        """Rows whose length is known when the network runs begin where tensors may, as words are loaded faster there:
        where they are loaded, kernels walk them by their strides, nobody else has them, and rows of any length fit."""
        if buffer not in self.read:
            return 1
        kind, last = self.read[buffer][1].type, self.regions[buffer][-1:]
        unit = max(self.plan.platform.alignment // kind.dtype.bytes, 1)
        if not last or isinstance(last[0].size, int) or kind.shape[-1] % unit or self._shared(buffer):
            return 1
        if self.depth([last[0].start, last[0].stop]) >= 0:  # it is cut into tiles
            return 1
        choices = self.plan.choices
        walks = (
            use.key in walked(mine, choices[work.step].kernel)
            for work, mine in zip(self.group.works, self.members, strict=True)
            for use in mine.uses
            if work.buffers.get(use.key) == buffer
        )
        return unit if all(walks) else 1

    def _shared(self, buffer: int) -> bool:
        """Whether something lies in a buffer, it in something, or another group finds there what it holds."""
        mine = self.group.buffers[buffer]
        inside = mine.within >= 0 or any(other.within == buffer for other in self.group.buffers)
        return inside or any(
            (other.tensor, other.offset) == (mine.tensor, mine.offset)
            for number, group in enumerate(self.schedule.groups)
            for other in group.buffers
            if number != self.index
        )

    def at_home(self, position: int, use: Use) -> tuple[HeldRegion, str]:
        """The whole tensor of a use, and the memory that it is in."""
        place = self.plan.places[use.tensor]
        for stage in self.schedule.stages:
            if (stage.tensor, stage.pack) == (use.tensor, use.pack) and stage.first <= self.index <= stage.last:
                return HeldRegion(stage.place, 0, reach(self.plan, use)), stage.place.space
        memory = self.schedule.memory(place)
        kernel = self.plan.choices[self.group.works[position].step].kernel
        if place.space == "constant" and (use.type.bytes or kernel is not None):
            names = packing_names(self.plan.graph, self.members[position])
            place = self.pieces.constant(use.tensor, use.pack, names, kernel)
        return HeldRegion(place, 0, reach(self.plan, use)), memory

    def held(self, position: int) -> dict[str, HeldRegion]:
        buffers = self.group.works[position].buffers
        return {
            use.key: self.in_buffer(buffers[use.key]) if use.key in buffers else self.at_home(position, use)[0]
            for use in self.members[position].uses
        }

    # Statements

    def prefetched(self, buffer: int) -> list[Statement]:
        """Waits for what is loaded before the group begins."""
        channel = self.channels.prefetch(self.index, buffer)
        return [] if channel is None else [AwaitTransfers(channel)]

    def drained(self, buffer: int) -> list[Statement]:
        """Waits for the last stores from a buffer."""
        late = self.channels.drained_later(self.index, buffer)
        slots = range(min(self.group.buffers[buffer].slots, self.stores))
        return [AwaitTransfers(self.channels.of(self.index, buffer) + slot if late is None else late) for slot in slots]

    def stage(self, number: int) -> Copy:
        """Starts a copy in a nearer memory."""
        stage = self.schedule.stages[number]
        place = self.plan.places[stage.tensor]
        if place.space == "constant":
            place = self._staged_constant(stage)
        source, target = Pointer(place, "void", True), Pointer(stage.place, "void", False)
        return Copy(self.channels.stage(number), target, source, stage.bytes, (), (), (), 1)

    def _staged_constant(self, stage: Stage) -> Place:
        for work in self.schedule.groups[stage.first].works:
            kernel = self.plan.choices[work.step].kernel
            mine = task(self.plan.graph, self.plan.graph.nodes[work.step], kernel).member
            if any((use.tensor, use.pack) == (stage.tensor, stage.pack) for use in mine.uses):
                return self.pieces.constant(stage.tensor, stage.pack, packing_names(self.plan.graph, mine), kernel)
        raise ValueError(f"no node of group {stage.first} reads {stage.tensor}")

    def awaited(self, buffer: int) -> list[Statement]:
        """Waits for what is loaded for a step, or for what was stored from where its result goes."""
        return self.guarded(self.buffer_depth(buffer), [AwaitTransfers(self.channel(buffer))])

    def choice(self, position: int) -> Choice:
        return self.plan.choices[self.group.works[position].step]

    def guarded(self, depth: int, body: list[Statement]) -> list[Statement]:
        tests = self.tests(depth)
        return [If(tests, tuple(body))] if tests and body else body

    def _dma(self, memory: str) -> Link:
        found = self.plan.platform.link(memory, self.memory)
        if found is None:
            raise ValueError(f"nothing copies between {memory} and {self.memory}")
        return found

    def load(self, move: Transfer) -> list[Statement]:
        return self.guarded(self.buffer_depth(move.buffer), self.start(move))

    def start(self, move: Transfer) -> list[Statement]:
        """Starts a load, at steps at which there is one."""
        buffer, several = move.buffer, self.steps > 1
        source, memory = self.at_home(*self.read[buffer])
        starts: list[Statement] = [AwaitTransfers(self.channel(other)) for other in move.behind if several]
        kind, rank = self.read[buffer][1].type, self._dma(memory).rank
        return starts + copy(self.channel(buffer), self.in_buffer(buffer), source, self.regions[buffer], kind, rank)

    def store(self, buffer: int, behind: int = 0) -> list[Statement]:
        """Stores what a step has made; `behind` says how many steps later that is."""
        use = self.written[buffer]
        target, memory = self.at_home(len(self.members) - 1, use)
        rank = self._dma(memory).rank
        starts: list[Statement] = [Mark(self.index, "store", behind)]
        starts += copy(self.channel(buffer), target, self.in_buffer(buffer), self.regions[buffer], use.type, rank)
        inner = zip(self.at[self.outer :], self.group.loops[self.outer :], strict=True)
        last = tuple(Test(i, "==", loop.count - 1) for i, loop in inner if isinstance(i, Expr))
        return [If(last, tuple(starts))] if last else starts

    def work(self, run: Run, beside: Sequence[Statement] = ()) -> list[Statement]:
        """Computes a node, or starts that; `beside` is what is done meanwhile."""
        position, started = run.position, run.wait != run.start
        choice = self.choice(position)
        mark = Mark(self.index, "start" if started else "work", position)
        if self.plan.platform.beside(choice.kernel) is None:
            if beside and self.plan.platform.driver_computes:
                beside = (*beside, mark)
            body: tuple[Statement, ...] = (
                OnCores(CORE, self.callers(position), self._invoked(position), tuple(beside)),
            )
        else:
            wait = () if started else (AwaitEngine(choice.engine),)
            invoked, single = (
                self._invoked_by_size(position),
                choice.kernel is not None and len(choice.kernel.jobs) == 1,
            )
            body = (StartEngine(choice.engine, invoked, tuple(beside), single), *wait)
        done = [] if started else self.made(position)
        depth = self.work_depth(position)
        return self.guarded(depth, [mark, *self._crops(position), *body, *done]) + self._keep(position)

    def made(self, position: int) -> list[Statement]:
        """Where a node has been computed, for those who look."""
        return [Mark(self.index, "made", position)] if self.observed else []

    def callers(self, position: int) -> int:
        """How many cores compute a node."""
        return self.schedule.cores if self.group.works[position].split or self._takes_turns(position) else 1

    def _takes_turns(self, position: int) -> bool:
        """Whether the cores share a node as its kernel says."""
        kernel, split = self.choice(position).kernel, self.group.works[position].split
        return kernel is not None and kernel.shared and not split and self.schedule.cores > 1

    def _invoked_by_size(self, position: int) -> tuple[Statement, ...]:
        """The call with sizes that are known, if the last tile is smaller: most of a job then is, too."""
        ragged = self.group.ragged_loop(self.members[-1].domain.dims)
        if ragged is None:
            return self._invoked(position)
        at, last = self.at[ragged], self.group.loops[ragged].count - 1
        assert isinstance(at, Expr)
        before, behind = (replace(self, edge=(ragged, ends))._invoked(position) for ends in (False, True))
        return If((Test(at, "<", last),), before), If((Test(at, "==", last),), behind)

    def _invoked(self, position: int) -> tuple[Statement, ...]:
        work, mine = self.group.works[position], self.members[position]
        choice = self.choice(position)
        inlaid = self.group.inlaid(work)
        rest = {name: Extent(*ends) for name, ends in left(mine, inlaid).items()}
        ranges = {**self.trace.ranges[position], **rest}
        core: Size = 0
        shared = self._takes_turns(position)
        if work.split or shared:
            core = Expr(((Var(CORE, 0, self.schedule.cores - 1), 1),))
        if work.split:
            ranges = narrowed(ranges, work.split, mine.domain.dims[work.split], work.chunk, core)
        # A core may find nothing left to do, and a step no new lines; a tile itself is never empty.
        doubtful = ranges.values() if mine.output.tensor in self.group.keep else [ranges[d] for d in [work.split] if d]
        empty = [part.size for part in doubtful if bounds_of(part.size)[0] <= 0]
        tests = tuple(Test(size, ">", 0) for size in empty if isinstance(size, Expr))
        place = Place(self.memory, work.scratch)
        scratch = Pointer(place, "void", False, plain(core * work.scratch_bytes)) if work.scratch_bytes else None
        share = (core, self.schedule.cores) if shared else (0, 1)
        parts = self._parts(position, work)
        task = TileTask(
            self.plan.graph, choice, mine, ranges, self.held(position), scratch, parts, share, inlaid, self.awaits
        )
        idle = any(part.size == 0 for part in rest.values())
        body: tuple[Statement, ...] = () if idle else (invoke(task, self.pieces),)
        return (If(tests, body),) if tests and body else body

    def _parts(self, position: int, work: NodeWork) -> Parts | None:
        """Which part of a reduction that is cut a step computes."""
        loops = self.group.loops[self.outer :]
        if not work.sums:
            return None
        part: Size = 0
        for index, loop in zip(self.at[self.outer :], loops, strict=True):
            part = plain(part * loop.count + index)
        place = Place(self.memory, work.sums_at(self.schedule.cores))
        sums = HeldRegion(place, 0, self.trace.regions[position][self.members[position].output.key])
        return Parts(part, prod(loop.count for loop in loops), sums, frozenset(loop.dim for loop in loops))

    def _keep(self, position: int) -> list[Statement]:
        """Moves the lines that the next step needs to the start of their buffer, when the last node has read them."""
        index = self.at[-1] if self.at else 0
        if isinstance(index, int):
            return []
        loop, found = self.group.loops[-1], list[Statement]()
        for tensor, axis in self.group.keep.items():
            if self.last_reader(tensor) != position:
                continue
            buffer = self.made_in[tensor]
            held, use = self.in_buffer(buffer), self.members[self.makers[tensor]].output
            now, following = held.region[axis], self.following.held[tensor][axis].start
            line = held.strides()[axis] * use.type.dtype.bytes
            target = Pointer(held.place, "void", False)
            source = Pointer(held.place, "void", True, plain((following - now.start) * line))
            move = MoveBytes(target, source, plain(larger(now.stop - following, 0) * line))
            found.append(If((Test(index, "<", loop.count - 1),), (OnCores(CORE, 1, (move,)),)))
        return found

    def _crops(self, position: int) -> list[Statement]:
        """Copies parts of what an earlier node made to buffers in which they are dense."""
        found: list[Statement] = []
        for use in self.members[position].uses:
            buffer = self.group.works[position].buffers.get(use.key, -1)
            if use.writes or use.tensor not in self.made_in or buffer in (-1, self.made_in[use.tensor]):
                continue
            source, target = self.in_buffer(self.made_in[use.tensor]), self.in_buffer(buffer)
            rank = self._dma(self.memory).rank
            found += copy(self.channel(buffer), target, source, self.regions[buffer], use.type, rank)
            found.append(AwaitTransfers(self.channel(buffer)))
        return found


def index_name(loop: TileLoop) -> str:
    """The variable of a loop."""
    return f"i_{loop.dim}"
