"""Groups that work in one step, where all they read can be in the engine's memory before they begin.

Tiles are chosen as if a group had to wait for its first loads, so it is cut into steps to work while it loads. Where
groups before it leave the DMA time and the memory bytes for most of what it reads (`plan.prefetch`), steps are only in
the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.plan import Group, TileBuffer
from tilewright.core.sizes import extents, type_of
from tilewright.core.tiles import Use
from tilewright.plan.addresses.packing import first_gap, round_up
from tilewright.plan.draft import PlanDraft
from tilewright.plan.joint import Pick, Solution
from tilewright.plan.levels import Levels
from tilewright.plan.menu import Menu
from tilewright.plan.prefetch import EARLIEST, SHARE
from tilewright.plan.prices import Price
from tilewright.plan.tiling.candidates import Candidate
from tilewright.price.tiles import Cost
from tilewright.price.transfers import Outside


def single_step(draft: PlanDraft) -> PlanDraft:
    """Groups in one step where that is faster; not beside copies in a nearer memory, which take the same time."""
    if draft.options.buffers or draft.stages:
        return draft
    return replace(draft, solution=SingleSteps.of(draft).run())


class SingleSteps(Struct, frozen=True, dict=True):
    """The groups of a plan before anything is loaded early."""

    menu: Menu
    levels: Levels
    solution: Solution
    sources: Mapping[str, str]
    """The memory of each tensor outside the engine's, by its name and those of its views."""
    made: Mapping[str, int]
    """The group that writes each tensor between groups, likewise."""

    @staticmethod
    def of(draft: PlanDraft) -> SingleSteps:
        return SingleSteps(draft.menu, draft.levels, draft.solution, draft.sources, draft.written)

    def run(self) -> Solution:
        picks, workspaces = list(self.solution.picks), list(self.solution.workspaces)
        for number in range(1, len(picks)):
            found = self._in_one_step(number)
            base = None if found is None else self._gap(picks[number], found.bytes)
            if found is not None and base is not None:
                picks[number] = replace(picks[number], candidate=found)
                workspaces[number] = base
        return replace(self.solution, picks=tuple(picks), workspaces=tuple(workspaces))

    def _in_one_step(self, number: int) -> Candidate | None:
        """The same group in one step, if that is faster once everything is loaded."""
        pick = self.solution.picks[number]
        before = pick.candidate.group
        loads = [use for use in self._moved(pick) if not use.writes]
        if (before.ahead and not before.queued) or not before.loops or not loads:
            return None
        waiting = self._waiting(number, loads)
        network = self.menu.network
        loaded = {network.root(use.tensor) for use in loads}
        if any(network.root(name) in loaded for name in network.node(pick.run.last).made):
            # A state that is written over: it is stored, too.
            return None
        now = self._cost(before, [n for n, b in enumerate(before.buffers) if self.made.get(b.tensor, -1) < number - 1])
        if waiting >= now.cycles:
            return None
        near = pick.near | self.levels.direct | loaded
        whole = [c for c in self.menu.front(pick.run, near, self._roots) if not c.group.loops]
        # A kernel that wants a part of a tensor side by side has a copy of it.
        whole = [c for c in whole if not any(network.root(b.tensor) in loaded for b in c.group.buffers)]
        if not whole:
            return None
        found = self._with_buffers(whole[-1], loads)
        cost = self._cost(found.group, range(len(found.group.buffers)))
        if found.bytes > self.levels.capacity or cost.cycles + waiting >= now.cycles:
            return None
        alone = self._cost(found.group)
        return replace(found, cycles=alone.cycles, moved=alone.moved)

    @cached_property
    def _roots(self) -> Mapping[str, str]:
        """The memories by root."""
        return {self.menu.network.root(name): memory for name, memory in self.sources.items()}

    def at_once(self, number: int) -> Candidate | None:
        """A group in one step, whether or not that is faster, if there are bytes for it."""
        pick = self.solution.picks[number]
        moved = [*self._moved(pick)]
        tensors = {self.menu.network.root(use.tensor) for use in moved}
        front = self.menu.front(pick.run, pick.near | self.levels.direct | tensors, {})
        whole = [c for c in front if not c.group.loops and not c.group.buffers]
        if not whole or len(moved) > len({use.tensor for use in moved}):
            return None
        found = self._with_buffers(whole[-1], moved)
        cost = self._cost(found.group)
        return replace(found, cycles=cost.cycles, moved=cost.moved) if found.bytes <= self.levels.capacity else None

    def _moved(self, pick: Pick) -> Iterator[Use]:
        """What a group reads from outside, or stores, each once."""
        group, network, seen = pick.candidate.group, self.menu.network, set[int]()
        members = network.members[pick.run.first : pick.run.last + 1]
        inner = {mine.output.tensor for mine in members}
        for work, mine in zip(group.works, members, strict=True):
            for use in mine.uses:
                buffer = work.buffers.get(use.key, -1)
                outside = use.tensor not in inner or (use.writes and mine is members[-1])
                if outside and buffer >= 0 and buffer not in seen and use.type.bytes:
                    seen.add(buffer)
                    yield use

    @cached_property
    def _free(self) -> tuple[float, ...]:
        """Cycles of each group in which the DMA has time for others, below 0 where it has less than none."""
        network, groups = self.menu.network, [pick.candidate.group for pick in self.solution.picks]
        return tuple(_free_cycles(network.price(group, self.sources)) for group in groups)

    def _waiting(self, number: int, loads: Sequence[Use]) -> float:
        """Cycles for which a group waits for all that it reads, beyond those that groups before it leave the DMA.

        Infinite where it cannot be loaded before the group begins. What is left there need not be. Tensors whose size
        is known when the network runs are half as long as they may be, which is what they are on average.
        """
        needed, platform = 0.0, self.menu.network.platform
        for use in loads:
            maker = self.made.get(use.tensor, -1)
            dma = platform.link(self.sources[use.tensor], platform.cores.memory)
            if dma is None or dma.by_cores or dma.through or (maker >= 0 and not self._leaves(maker, number)):
                return inf
            needed += 0.0 if maker >= 0 else dma.setup + dma.issue + self._bytes(use) / dma.bytes_per_cycle
        return max(needed - sum(self._free[max(number - EARLIEST, 0) : number]), 0.0)

    def _bytes(self, use: Use) -> int:
        graph = self.menu.network.graph
        found, at = extents(graph), {bound.variable: (bound.low + bound.high) // 2 for bound in graph.bounds}
        return type_of(graph, found, use.tensor, at).bytes if use.tensor in found else use.type.bytes

    def _leaves(self, maker: int, number: int) -> bool:
        """Whether a group makes all of its result in one step, not long before another."""
        return number - maker <= EARLIEST and not self.solution.picks[maker].candidate.group.loops

    def _with_buffers(self, candidate: Candidate, moved: Sequence[Use]) -> Candidate:
        """A group with further buffers, behind its workspace, for all of what it reads or stores."""
        align = self.menu.network.platform.alignment
        group, end = candidate.group, round_up(candidate.bytes, align)
        buffers, bound = list(group.buffers), dict[tuple[str, str], int]()
        for use in moved:
            bound[use.tensor, use.pack] = len(buffers)
            size = round_up(use.type.bytes, align)
            buffers.append(TileBuffer(use.tensor, end, size, 1, use.pack))
            end += size
        network = self.menu.network
        works = tuple(
            replace(
                work,
                buffers={
                    **work.buffers,
                    **{
                        use.key: bound[use.tensor, use.pack]
                        for use in network.members[network.steps.index(work.step)].uses
                        if (use.tensor, use.pack) in bound
                    },
                },
            )
            for work in group.works
        )
        return candidate.with_group(replace(group, works=works, buffers=tuple(buffers)), bytes=end)

    def _gap(self, pick: Pick, size: int) -> int | None:
        """Where a workspace fits beside what stays in the engine's memory."""
        lives, residents = self.menu.network.lives, self.solution.residents
        start = first_gap(size, ((residents[n], residents[n] + lives[n].bytes) for n in pick.residents))
        return start if start + size <= self.levels.capacity else None

    def _cost(self, group: Group, begun: Iterable[int] = ()) -> Cost:
        """Of a group, some of whose buffers are filled before it begins."""
        return self.menu.network.price(group, self.sources, Outside(begun=frozenset(begun))).cost


def _free_cycles(price: Price) -> float:
    """In which loads of later groups are expected to run beside a group, below 0 where it waits for its own."""
    return SHARE * price.cost.cycles - price.loads
