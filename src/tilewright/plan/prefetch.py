"""Transfers across the borders of groups, where there are bytes for them on both sides.

What a group reads that one before it has left in the engine's memory is not loaded again. What else it reads once, and
the first part of what it reads turn by turn, is loaded while the group before it works, or an earlier one where that is
too short for it; what it stores last is awaited when the group behind it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.plan import Group, Stage, TileBuffer
from tilewright.core.tiles import Member, Trace, trace
from tilewright.machine.target import Target
from tilewright.plan.addresses.packing import round_up, smallest_gap
from tilewright.plan.draft import PlanDraft
from tilewright.plan.network import Network
from tilewright.plan.points import WITHIN, Crossing
from tilewright.price.transfers import Outside
from tilewright.timeline.code import kept_code
from tilewright.timeline.replay import Timeline

Bytes = tuple[int, int]
Place = tuple[int, int]
"""A group, and the index of a buffer."""

LATEST = 8
"""Groups beside which a store may run."""
EARLIEST = 16
"""Groups beside which a load may run."""
Way = Literal["apart", "in order", "quiet"]
"""Loads begin as late as there is time for them, or none behind one for a later group, or none beside groups that load
turn by turn, which may come to wait behind others."""
WAYS: tuple[Way, ...] = ("apart", "in order", "quiet")
SHARE = 0.6
"""Of the cycles of a group, which are a prediction, in which loads of later ones are expected to run."""
LESS = (0.5, 0.4)
"""Others: with less, loads begin earlier. The least is taken of those with which no more cycles are predicted."""


def prefetch(draft: PlanDraft) -> PlanDraft:
    """Loads and stores across the borders of groups, where the engine's memory has bytes for them."""
    near = [span for span in draft.spans if draft.places[span.tensor].space == draft.levels.near]
    stay = [(s, (draft.places[s.tensor].offset, draft.places[s.tensor].offset + s.bytes)) for s in near]
    spaces = [
        (base, base + pick.candidate.bytes)
        for pick, base in zip(draft.solution.picks, draft.solution.workspaces, strict=True)
    ]
    occupied = [
        [mine] + [taken for s, taken in stay if s.first <= number <= s.last] for number, mine in enumerate(spaces)
    ]
    for number, overlap in draft.overlaps.items():
        for beside in range(number + 1, overlap.last + 1):
            occupied[beside].append(spaces[number])
    made, readers, buffers = dict[int, list[str]](), dict[str, list[Place]](), dict[str, list[Place]]()
    for tensor, number in draft.written.items():
        made.setdefault(number, []).append(tensor)
    for number, group in enumerate(draft.groups):
        for index, buffer in enumerate(group.buffers):
            buffers.setdefault(buffer.tensor, []).append((number, index))
        for work in group.works:
            for use in draft.network.task(work.step).member.uses:
                if not use.writes:
                    readers.setdefault(use.tensor, []).append((number, work.buffers.get(use.key, -1)))
    return replace(draft, prefetched=_Prefetch(draft, list(draft.groups), occupied, made, readers, buffers).run())


class _Prefetch(Struct):
    """Groups of a plan, with what else is in the engine's memory."""

    draft: PlanDraft
    groups: list[Group]
    occupied: list[list[Bytes]]
    """Bytes of the engine's memory that are taken during each group: its workspace, and tensors that stay."""
    made: Mapping[int, Sequence[str]]
    """Tensors that each group makes."""
    readers: Mapping[str, Sequence[Place]]
    """Where each tensor is read: the group, and the index of the buffer, or -1."""
    buffers: Mapping[str, Sequence[Place]]
    """Where each tensor has a buffer."""
    held: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """The last group that reads what is left in a buffer, by group and index of the buffer."""
    crossings: dict[tuple[int, int], Crossing] = field(default_factory=dict[tuple[int, int], Crossing])
    steps: dict[int, list[Trace]] = field(default_factory=dict[int, list[Trace]])
    """Of groups, as far as these were asked about: the first step, and those that may need something else."""

    @property
    def network(self) -> Network:
        return self.draft.network

    @property
    def platform(self) -> Target:
        return self.network.platform

    @property
    def stages(self) -> Sequence[Stage]:
        return self.draft.stages

    def run(self) -> Timeline:
        """Moves loads of one group after the other into the one before it, and further where they are too long."""
        self._keep()
        for number in range(1, len(self.groups)):
            for index in self._once(number):
                self._taken(number, index, number - 1)
        prices = [
            self.network.price(group, self.draft.around(number), self._outside(number))
            for number, group in enumerate(self.groups)
        ]
        mine = self.network
        code = kept_code(mine.graph, mine.platform, mine.choices, self.groups, [False] * len(self.groups))
        # Groups whose code earlier ones have run are shorter than alone.
        working = self._working([price.cost.cycles - sum(k.nodes) for price, k in zip(prices, code, strict=True)])
        loads = [price.loads for price in prices]
        made = [self._spread_by(SHARE, way, working, loads)._completed(working) for way in WAYS]
        best = min(made, key=lambda timeline: timeline.cycles)
        way = WAYS[made.index(best)]
        for share in LESS:
            other = self._spread_by(share, way, working, loads)._completed(working)
            best = other if other.cycles <= best.cycles else best
        return best

    def _spread_by(self, share: float, way: Way, working: Sequence[float], loads: Sequence[float]) -> _Prefetch:
        """The same with loads that begin earlier, beside groups in which they have a share of the cycles."""
        free = [
            0.0 if number in self.draft.overlaps else share * taken - mine
            for number, (taken, mine) in enumerate(zip(working, loads, strict=True))
        ]
        made = self._copy()
        if way == "quiet":
            pairs = zip(free, self.groups, loads, strict=True)
            free = [min(time, 0.0) if group.loops and mine else time for time, group, mine in pairs]
        made._spread(free)
        if way == "in order":
            made._in_order(free)
        return made

    def _working(self, cycles: Sequence[float]) -> list[float]:
        """What groups take. One that another engine computes beside later groups takes no time of its own; the last of
        these ends when it is done."""
        found = list(cycles)
        for number in self.draft.overlaps:
            found[number] = 0.0
        spans: dict[tuple[int, int], float] = {}
        for number, overlap in self.draft.overlaps.items():
            spans[overlap.first, overlap.last] = spans.get((overlap.first, overlap.last), 0.0) + cycles[number]
        for (first, last), taken in spans.items():
            found[last] += max(taken - sum(found[first : last + 1]), 0.0)
        return found

    def _copy(self) -> _Prefetch:
        """The same, to go on in another way."""
        occupied = [list(taken) for taken in self.occupied]
        return replace(
            self,
            groups=list(self.groups),
            occupied=occupied,
            held=dict(self.held),
            crossings=dict(self.crossings),
        )

    def _crossing(self, number: int, index: int) -> Crossing:
        return self.crossings.get((number, index), WITHIN)

    def _earliest(self, number: int) -> int:
        """The first group beside which something is loaded for one."""
        return number - max(
            (self._crossing(number, n).early for n in range(len(self.groups[number].buffers))), default=0
        )

    def _completed(self, working: Sequence[float]) -> Timeline:
        """When groups run whose stores run on."""
        for number in range(len(self.groups) - 1):
            self._store_late(number, working)
        around = [self.draft.around(number) for number in range(len(self.groups))]
        return self.network.timeline(self.groups, around, self.stages, self.crossings, self.draft.overlaps)

    def _keep(self) -> None:
        """Leaves whole tensors where they are for groups that read them soon."""
        chains: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for number, group in enumerate(self.groups):
            for index, buffer in enumerate(group.buffers):
                if buffer.slots > 1 or not self._whole(number, index):
                    continue
                before = chains.get((buffer.tensor, buffer.pack), [])
                if before and before[-1][0] == number:
                    continue  # a node that reads it twice
                if before and number - before[-1][0] <= EARLIEST and self._left(before, number, index):
                    before.append((number, index))
                else:
                    chains[buffer.tensor, buffer.pack] = [(number, index)]

    def _whole(self, number: int, index: int) -> bool:
        """Whether a buffer holds all of a tensor from outside, or what the group makes for the outside."""
        group = self.groups[number]
        members, tensor = self._members(group), group.buffers[index].tensor
        if (
            group.buffers[index].within >= 0
            or (group.ahead and not group.queued)
            or tensor in {mine.output.tensor for mine in members[:-1]}
            or not self._alone(group, index)
        ):
            return False
        first = self._steps(number)[0].regions
        whole = all(
            (part.start, part.stop) == (0, extent) and not mine.in_part(use.key)
            for position, (work, mine) in enumerate(zip(group.works, members, strict=True))
            for use in mine.uses
            if work.buffers.get(use.key) == index
            for part, extent in zip(first[position][use.key], use.type.shape, strict=True)
        )
        return whole and self._stays(number, index)

    def _alone(self, group: Group, index: int) -> bool:
        """Whether nothing else of a group has bytes of a buffer, but what becomes a part of it."""
        mine = (group.buffers[index].offset, group.buffers[index].end)
        cores = self.platform.cores.count
        others = [(b.offset, b.end) for n, b in enumerate(group.buffers) if index not in (n, b.within)]
        others += [(work.scratch, work.sums_at(cores) + work.sums) for work in group.works]
        return not any(_meet(mine, other) for other in others)

    def _left(self, chain: Sequence[tuple[int, int]], number: int, index: int) -> bool:
        """Keeps what a chain of groups has in a buffer for one more, if there are bytes for it."""
        first, last = chain[0][0], chain[-1][0]
        until = self.held.get(chain[-1], self.draft.end(last))
        end = max(self.draft.end(number), until)
        buffer = self.groups[first].buffers[chain[0][1]]
        size = round_up(buffer.bytes, self.platform.alignment)
        mine: Bytes | None = (buffer.offset, buffer.offset + size)
        new = range(until + 1, end + 1)
        if any(_meet(mine, other) for n in new for other in self.occupied[n]):
            mine = self._gap(first, end, size)
            new = range(first, end + 1)
        if mine is None:
            return False
        for n in new:
            self.occupied[n].append(mine)
        for group, other in (*chain, (number, index)):
            self.groups[group] = self.groups[group].with_buffer(
                other, replace(self.groups[group].buffers[other], offset=mine[0])
            )
            self.held[group, other] = end
        self.crossings[number, index] = Crossing(kept=number - last)
        return True

    def _spread(self, free: list[float]) -> None:
        """Starts loads as many groups earlier as they take, the last first: each gets the time that others leave.
        `free` are the cycles of each group in which others might run."""
        for number in range(len(self.groups) - 1, 0, -1):
            for index in reversed(range(len(self.groups[number].buffers))):
                if self._crossing(number, index).early:
                    self._begun(number, index, free)
            self._ahead_of_late(number)

    def _ahead_of_late(self, number: int) -> None:
        """Starts what a node begins with no later than what it awaits itself, which it would wait behind."""
        group = self.groups[number]
        keys = group.awaits(self.network.choices[group.works[0].step].kernel)
        awaits = {index for key, index in group.works[0].buffers.items() if key in keys}
        earliest = max((self._crossing(number, index).early for index in awaits), default=0)
        for index in {*range(len(group.buffers))} - awaits:
            while 0 < self._crossing(number, index).early < earliest and self._one_earlier(number, index):
                pass

    def _in_order(self, free: Sequence[float]) -> None:
        """Starts no load behind one for a later group, which it would wait for: that helps where time
        is short, as at the start of a network. None is started before a group that waits for its own loads."""
        first = len(self.groups)
        for number in range(len(self.groups) - 1, 0, -1):
            for index in range(len(self.groups[number].buffers)):
                early = self._crossing(number, index).early
                begin = number - early
                while early and begin > first and free[begin - 1] >= 0 and self._one_earlier(number, index):
                    begin -= 1
            earliest = self._earliest(number)
            first = min(first, earliest) if earliest < number else first

    def _begun(self, number: int, index: int, free: list[float]) -> None:
        """Starts a load beside the last group with which there is time for it, and takes that from all of them. None is
        started before a group that waits for its own loads. Where time is too short for it, as at the start of a
        network, it is started with the first of the same group."""
        left = self._load_cycles(number, self.groups[number].buffers[index])
        for beside in range(number - 1, max(number - 1 - EARLIEST, -1), -1):
            if left <= 0 or free[beside] < 0:
                break
            if not free[beside]:
                continue
            while self._crossing(number, index).early < number - beside:
                if not self._one_earlier(number, index):
                    return
            taken = min(left, free[beside])
            free[beside] -= taken
            left -= taken
        earliest = self._earliest(number) if left > 0 else number
        while number - self._crossing(number, index).early > earliest and self._one_earlier(number, index):
            pass

    def _load_cycles(self, number: int, buffer: TileBuffer) -> float:
        dma = self.platform.link(self._source(number, buffer), self.platform.cores.memory)
        return 0.0 if dma is None else dma.setup + dma.issue + self._loaded(buffer).bytes / dma.bytes_per_cycle

    def _loaded(self, buffer: TileBuffer) -> TileBuffer:
        """A buffer with the bytes that are loaded into it: what lies within a result is less than that."""
        size = self.network.graph.types[buffer.tensor].bytes if buffer.within >= 0 else buffer.bytes
        return replace(buffer, bytes=min(buffer.bytes, size))

    def _one_earlier(self, number: int, index: int) -> bool:
        """Starts a load one more group earlier, if what it loads is there by then and there are bytes for it."""
        buffer = self.groups[number].buffers[index]
        first = number - self._crossing(number, index).early - 1
        staged = any(
            (stage.tensor, stage.pack) == (buffer.tensor, buffer.pack) and first < stage.first <= number
            for stage in self.stages
        )
        # What is made right before would have to be stored at once.
        if first < 0 or staged or self._made(buffer.tensor) >= first - 1:
            return False
        return self._taken(number, index, first)

    def _outside(self, number: int) -> Outside:
        """What others do for a group that leaves its last stores to those behind it, whether or not there are bytes for
        that."""
        mine = [(index, self._crossing(number, index)) for index in range(len(self.groups[number].buffers))]
        return Outside(
            frozenset(index for index, crossing in mine if crossing.early),
            frozenset(self._stored(number)),
            frozenset(index for index, crossing in mine if crossing.kept),
        )

    def _made(self, tensor: str) -> int:
        """The group by whose end a tensor is made; one long before all where none makes it."""
        return self.draft.end(self.draft.written[tensor]) if tensor in self.draft.written else -2

    def _stored(self, number: int) -> list[int]:
        """Buffers whose last stores may run on: the group behind does not need what they store."""
        if self._wanted(number, self.draft.end(number) + 1):
            return []
        group = self.groups[number]
        results = {use.tensor for use in self._members(group)[-1].uses if use.writes}
        found: list[int] = []
        for index, buffer in enumerate(group.buffers):
            dma = self.platform.link(self.draft.sources[buffer.tensor], self.platform.cores.memory)
            if buffer.tensor in results and dma is not None and not dma.by_cores and not dma.through:
                found.append(index)
        return found

    def _store_late(self, number: int, working: Sequence[float]) -> None:
        """Lets the last stores of a group run on."""
        after = group = self.groups[number]
        for index in self._stored(number):
            # What lies within it has its bytes since it is loaded.
            inside = [n for n, other in enumerate(group.buffers) if n == index or other.within == index]
            first = number - max(self._crossing(number, n).early for n in inside)
            last = self.held.get((number, index), self.draft.end(number))
            after = after.with_buffer(index, self._stored_late(number, index, first, last, working))
        self.groups[number] = after

    def _stored_late(self, number: int, index: int, first: int, held: int, working: Sequence[float]) -> TileBuffer:
        """A buffer from which is stored while as many groups work as that takes, or as have bytes for it. It has those
        from the group `first` to the group `held`."""
        buffer, end = self.groups[number].buffers[index], self.draft.end(number)
        late, left = 1, self._load_cycles(number, buffer) - SHARE * working[end + 1]
        once = all(loop.count == 1 for loop in self.groups[number].loops)
        while once and left > 0 and late < LATEST and not self._wanted(number, end + late + 1):
            late += 1
            left -= SHARE * working[end + late]
        size = round_up(buffer.end - buffer.offset, self.platform.alignment)
        for count in range(late, 0, -1):
            beside = range(held + 1, end + count + 1)
            mine: Bytes | None = (buffer.offset, buffer.offset + size)
            if any(_meet(mine, other) for n in beside for other in self.occupied[n]):
                mine = self._gap(first, end + count, size) if held == end else None
            if mine is not None:
                for n in (*range(first, end + 1), *beside):
                    self.occupied[n].append(mine)
                crossing = replace(self._crossing(number, index), late=end + count - number)
                self.crossings[number, index] = crossing
                return replace(buffer, offset=mine[0])
        return buffer

    def _wanted(self, number: int, last: int) -> bool:
        """Whether there is no other group up to `last`, or it reads, or loads ahead, what a group makes."""
        if last >= len(self.groups):
            return True
        return any(
            any(
                number < other <= last and not self._crossing(other, index).kept
                for other, index in self.readers.get(tensor, ())
            )
            or any(
                0 < other - last <= self._crossing(other, index).early for other, index in self.buffers.get(tensor, ())
            )
            or any(stage.tensor == tensor and stage.start <= last for stage in self.stages)
            for tensor in self.made.get(number, ())
        )

    def _members(self, group: Group) -> list[Member]:
        return [self.network.task(work.step).member for work in group.works]

    def _once(self, number: int) -> Iterator[int]:
        """Buffers that a group fills once, or turn by turn, with what is there before the group before it begins."""
        group = self.groups[number]
        own = {use.tensor for mine in self._members(group) for use in mine.uses if use.writes}
        for index, buffer in enumerate(group.buffers):
            dma = self.platform.link(self._source(number, buffer), self.platform.cores.memory)
            before = self._made(buffer.tensor) < number - 1
            there = buffer.tensor not in own and not self._crossing(number, index).kept and before
            beside = dma is not None and not dma.by_cores and not dma.through
            ready = there and beside and not self._arriving(number, buffer)
            if ready and (buffer.slots > 1) != self._stays(number, index):
                yield index

    def _source(self, number: int, buffer: TileBuffer) -> str:
        for stage in self.stages:
            if (stage.tensor, stage.pack) == (buffer.tensor, buffer.pack) and stage.first <= number <= stage.last:
                return stage.place.space
        return self.draft.sources[buffer.tensor]

    def _arriving(self, number: int, buffer: TileBuffer) -> bool:
        """Whether a copy in a nearer memory is complete only when the group begins."""
        return any(
            (stage.tensor, stage.pack) == (buffer.tensor, buffer.pack) and stage.first == number
            for stage in self.stages
        )

    def _stays(self, number: int, index: int) -> bool:
        """Whether a buffer holds the same at every step."""
        bound = [
            (p, key) for p, w in enumerate(self.groups[number].works) for key, b in w.buffers.items() if b == index
        ]
        first, *others = ([step.regions[p][key] for p, key in bound] for step in self._steps(number))
        return bool(first) and all(other == first for other in others)

    def _steps(self, number: int) -> list[Trace]:
        if number not in self.steps:
            group = self.groups[number]
            members, rank = self._members(group), len(group.loops)
            ends = [
                (k, step) for k, loop in enumerate(group.loops) for step in {min(1, loop.count - 1), loop.count - 1}
            ]
            at = [[0] * rank, *([step * (k == loop) for loop in range(rank)] for k, step in ends if step)]
            self.steps[number] = [trace(members, group.loops, group.keep, each) for each in at]
        return self.steps[number]

    def _taken(self, number: int, index: int, first: int) -> bool:
        """Starts a load beside the group `first`, if there are bytes for it: those that it has, or others."""
        group = self.groups[number]
        buffer = group.buffers[index]
        left = index if buffer.within < 0 else buffer.within
        last = self.held.get((number, left), self.draft.end(number))
        size = round_up(buffer.end - buffer.offset, self.platform.alignment)
        mine = (buffer.offset, buffer.offset + size)
        beside = [
            self._crossing(number, n).early for n, b in enumerate(group.buffers) if b.within == buffer.within >= 0
        ]
        crossing = replace(self._crossing(number, index), early=number - first)
        if number - max(beside, default=0) <= first:
            # What lies within the same result has the bytes already.
            self.crossings[number, index] = crossing
            return True
        if any(_meet(mine, other) for other in self.occupied[first]):
            alone = last == self.draft.end(number) and self._alone(group, index)
            own = mine if alone else None
            found = self._gap(first, last, size, own)
            if found is None:
                return False
            mine = found
            for other in range(first + 1, last + 1):
                self.occupied[other] = [mine, *(span for span in self.occupied[other] if span != own)]
            for other in range(number + 1, last + 1):
                self._move(other, group.buffers[left], mine[0])
        self.occupied[first].append(mine)
        self.crossings[number, index] = crossing
        self.groups[number] = group.with_buffer(index, replace(buffer, offset=mine[0]))
        return True

    def _move(self, number: int, left: TileBuffer, offset: int) -> None:
        """Finds what is left for a group somewhere else."""
        group = self.groups[number]
        buffers = tuple(
            replace(buffer, offset=offset)
            if self._crossing(number, index).kept and (buffer.tensor, buffer.pack) == (left.tensor, left.pack)
            else buffer
            for index, buffer in enumerate(group.buffers)
        )
        self.groups[number] = replace(group, buffers=buffers)

    def _gap(self, first: int, last: int, size: int, own: Bytes | None = None) -> Bytes | None:
        """Bytes that are free during some groups, one behind the other; behind the first, `own` are free, too."""
        behind = (span for group in self.occupied[first + 1 : last + 1] for span in group if span != own)
        taken = {*self.occupied[first], *behind}
        start = smallest_gap(size, taken, self.draft.levels.capacity)
        return None if start is None else (start, start + size)


def _meet(a: Bytes, b: Bytes) -> bool:
    return a[0] < b[1] and b[0] < a[1]
