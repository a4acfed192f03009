"""Copies of constants and inputs in a memory nearer than their home, made while earlier groups run.

A group that reads them straight from a slow home waits for that memory at every tile. A copy made ahead hides the slow
memory behind the groups before, at the price of room. Groups are taken in order; for each, its constants are copied as
late as hides the copy, into gaps that tensors leave; where the group is not faster for it, nothing is copied.

Where groups read from the home by way of the nearer memory, one DMA does both: what a group brings for itself waits for
the copies that were begun before, and they for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.plan import Group, Place, Stage
from tilewright.core.tiles import Use
from tilewright.machine.parts import Link
from tilewright.plan.addresses.packing import Item, lowest_gap, round_up
from tilewright.plan.draft import PlanDraft
from tilewright.plan.joint import Pick, Solution
from tilewright.plan.levels import GroupSpan, Levels, first_sources
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network
from tilewright.plan.tiling.candidates import Candidate
from tilewright.price.copies import copied
from tilewright.price.tiles import priced

PATIENCES = (1.0, 0.5, 0.2, 0.0)
"""Shares of what a copy gains that a group may wait for it; which is best depends on the groups behind."""
# How many groups ahead a copy may be started.
FURTHEST = 8

Cycles = Callable[[int, frozenset[str]], tuple[float, float, float]]
"""Predicted cycles of a group with some tensors read from the nearer memory; in how many of them it uses the DMA
between that memory and the home for others; how many pass until its first loads have arrived."""


class _Taken(Struct, frozen=True):
    """Bytes of the nearer memory, from one group to another."""

    start: int
    end: int
    first: int
    last: int


def stageable(network: Network, levels: Levels, picks: Sequence[Pick]) -> dict[int, dict[tuple[str, str], Use]]:
    """What each group reads from a home that is not the fastest memory: its constants, and inputs read by several."""
    home = network.platform.home
    if not levels.far or levels.far[0] == home or network.platform.link(home, levels.far[0]) is None:
        return {}
    inputs = {network.root(name) for name in network.graph.fed}
    found: dict[int, dict[tuple[str, str], Use]] = {}
    for index, pick in enumerate(picks):
        for mine in network.members[pick.run.first : pick.run.last + 1]:
            for use in mine.uses:
                root = network.root(use.tensor)
                constant = root in network.graph.constants and use.tensor not in levels.direct
                often = root in inputs and len(network.readers.get(use.tensor, ())) > 1
                if not use.writes and use.type.bytes and (constant or often):
                    found.setdefault(index, {})[use.tensor, use.pack] = use
    return found


class Stages:
    """Chooses the copies of one plan."""

    def __init__(
        self,
        network: Network,
        levels: Levels,
        picks: Sequence[Pick],
        spans: Sequence[GroupSpan],
        places: Mapping[str, Place],
        cycles: Cycles,
        patience: float,
    ) -> None:
        self._network, self._cycles, self._patience = network, cycles, patience
        self._memory = levels.far[0] if levels.far else ""
        self._limit = levels.room.get(self._memory, 0)
        self._reads = stageable(network, levels, picks)
        self._taken = [
            _Taken(places[s.tensor].offset, places[s.tensor].offset + s.bytes, s.first, s.last)
            for s in spans
            if places[s.tensor].space == self._memory
        ]
        self._passing: dict[int, float] = {}
        self._leads: dict[int, float] = {}
        """When each group starts copies for later ones: its own loads go first."""
        self.found: list[Stage] = []
        self.end = max((taken.end for taken in self._taken), default=0)

    def choose(self, count: int) -> tuple[Stage, ...]:
        """Finds the copies that make groups faster."""
        dma = self._network.platform.link(self._network.platform.home, self._memory) if self._reads else None
        begins = [0.0]
        if dma is None:
            return ()
        free = 0.0
        for group in range(count):
            stall, free = self._group(group, begins, free, dma)
            staged = frozenset(s.tensor for s in self.found if s.first <= group <= s.last)
            alone, shared, lead = self._cycles(group, staged)
            start = begins[-1] + stall
            self._passing[group], self._leads[group] = shared, stall + lead
            if shared:
                free = max(free, start) + shared
                stall += max(0.0, free - start - alone)
            begins.append(begins[-1] + stall + alone)
        return tuple(self.found)

    def _group(self, group: int, begins: Sequence[float], free: float, dma: Link) -> tuple[float, float]:
        """Copies what a group reads and is not there yet, if that pays; how long the group waits, and the DMA works."""
        known = {(s.tensor, s.pack) for s in self.found if s.first <= group <= s.last}
        missing = [use for key, use in self._reads.get(group, {}).items() if key not in known]
        if not missing:
            return 0.0, free
        there = frozenset(tensor for tensor, _ in known)
        nearer = there.union(use.tensor for use in missing)
        gain = self._cycles(group, there)[0] - self._cycles(group, nearer)[0]
        copy = copied(dma, [use.type.bytes for use in missing])
        best: tuple[float, int, list[_Taken]] | None = None
        for start in range(group, max(-1, group - FURTHEST), -1):
            stall = max(0.0, self._begin(start, group, begins, free, dma) + copy - begins[group])
            # Waiting for a copy keeps the DMA from those of later groups, too.
            if stall >= (gain if best is None else best[0]) or stall > self._patience * gain:
                continue
            room = self._room(missing, start, group)
            if room is None:
                break
            best = (stall, start, room)
            if not stall:
                break
        if best is None:
            return 0.0, free
        stall, start, room = self._earlier(best, missing, group)
        for use, taken in zip(missing, room, strict=True):
            place = Place(self._memory, taken.start)
            self.found.append(Stage(use.tensor, use.pack, place, use.type.bytes, start, group, taken.last))
            self._taken.append(taken)
            self.end = max(self.end, taken.end)
        return stall, self._begin(start, group, begins, free, dma) + copy

    def _begin(self, start: int, group: int, begins: Sequence[float], free: float, dma: Link) -> float:
        """When the DMA begins with copies that one group starts for another, or for itself."""
        lead = self._leads[start] if start < group else 0.0
        return max(free, begins[start] + lead + dma.issue + dma.latency)

    def _earlier(
        self, best: tuple[float, int, list[_Taken]], missing: Sequence[Use], group: int
    ) -> tuple[float, int, list[_Taken]]:
        """One group sooner than predicted, where there is room and no copy to wait for: predictions are not exact."""
        stall, start, _ = best
        if start == 0 or self._passing.get(start - 1, 0.0):
            return best
        room = self._room(missing, start - 1, group)
        return best if room is None else (stall, start - 1, room)

    def _room(self, uses: Sequence[Use], start: int, group: int) -> list[_Taken] | None:
        """Gaps for all copies, held until the last reader where possible."""
        align = self._network.platform.alignment
        found: list[_Taken] = []
        for use in uses:
            size = round_up(use.type.bytes, align)
            readers = [g for g, reads in self._reads.items() if g >= group and (use.tensor, use.pack) in reads]
            for last in (readers[-1], group):
                busy = [t for t in (*self._taken, *found) if t.first <= last and start <= t.last]
                item = Item(size, start, last + 1, align, None)
                offset = lowest_gap(item, [(t.start, t.end) for t in busy])
                if offset + size <= self._limit:
                    found.append(_Taken(offset, offset + size, start, last))
                    break
            else:
                return None
        return found


class _Final:
    """Groups once it is known where everything lives: the tiles may be better ones of the same workspace."""

    def __init__(self, menu: Menu, levels: Levels, solution: Solution, sources: Mapping[str, str]) -> None:
        self._menu, self._levels, self._solution = menu, levels, solution
        home = menu.network.platform.home
        self._sources = {**sources, **dict.fromkeys(menu.network.graph.constants, home)}
        self._times: dict[tuple[int, frozenset[str]], tuple[float, float, float]] = {}

    def cycles(self, group: int, staged: frozenset[str]) -> tuple[float, float, float]:
        """Of a group, those in which it uses the DMA that copies what is staged, too, and of its first loads."""
        if (group, staged) not in self._times:
            best = self._best(group, staged)
            self._times[group, staged] = best.cycles, *self._passing(best.group, staged)
        return self._times[group, staged]

    def _passing(self, group: Group, staged: frozenset[str]) -> tuple[float, float]:
        """Cycles of what a group brings from the home by way of the memory in between, and of its first loads."""
        network, levels = self._menu.network, self._levels
        home, near = network.platform.home, levels.near
        way = network.platform.link(home, near)
        if way is None or not way.through:
            return 0.0, 0.0
        where = self._around(group, staged)
        found = priced(network.graph, network.platform, network.choices, group, where)
        passing = sum(
            found.total(flow.cycles * found.due(flow))
            for number, flow in found.flows.items()
            if where.get(group.buffers[number].tensor) == home
        )
        return passing, found.lead

    def _around(self, group: Group, staged: frozenset[str]) -> dict[str, str]:
        """The memory of each tensor of a group outside the engine's."""
        network, levels = self._menu.network, self._levels
        sources = {**self._sources, **{network.root(name): levels.far[0] for name in staged}}
        roots = {buffer.tensor: network.root(buffer.tensor) for buffer in group.buffers}
        return {tensor: sources[root] for tensor, root in roots.items() if root in sources}

    def total(self, stages: Sequence[Stage]) -> float:
        """Cycles of all groups with some copies."""
        groups = [pick.candidate.group for pick in self.picks(stages)]
        staged = [frozenset(s.tensor for s in stages if s.first <= n <= s.last) for n in range(len(groups))]
        around = [self._around(group, near) for group, near in zip(groups, staged, strict=True)]
        return self._menu.network.timeline(groups, around, stages).cycles

    def picks(self, stages: Sequence[Stage]) -> tuple[Pick, ...]:
        found: list[Pick] = []
        for group, pick in enumerate(self._solution.picks):
            staged = frozenset(stage.tensor for stage in stages if stage.first <= group <= stage.last)
            found.append(replace(pick, candidate=self._best(group, staged)))
        return tuple(found)

    def _best(self, group: int, staged: frozenset[str]) -> Candidate:
        network, levels = self._menu.network, self._levels
        pick = self._solution.picks[group]
        nearer = {network.root(name): levels.far[0] for name in staged}
        front = self._menu.front(pick.run, pick.near | levels.direct, {**self._sources, **nearer})
        return [candidate for candidate in front if candidate.bytes <= pick.candidate.bytes][-1]


def stage(draft: PlanDraft) -> PlanDraft:
    """Copies constants and inputs to a nearer memory ahead of the groups that read them, and takes the best tiles of
    each group for that."""
    network, levels, solution = draft.network, draft.levels, draft.solution
    far = [span for span in draft.spans if span.tensor not in solution.residents]
    found = {span.tensor: draft.places[span.tensor] for span in far}
    sources = {**first_sources(network, levels), **{name: where.space for name, where in found.items()}}
    final = _Final(draft.menu, levels, solution, sources)
    tries = [Stages(network, levels, solution.picks, far, found, final.cycles, patience) for patience in PATIENCES]
    chosen = list(dict.fromkeys(stages.choose(len(solution.picks)) for stages in tries))
    copies = min(chosen, key=final.total) if len(chosen) > 1 else chosen[0]
    ready = replace(solution, picks=final.picks(copies))
    # Other choices are known by the quick prices of their groups only.
    gap = max(sum(pick.candidate.cycles for pick in ready.picks) - solution.bound, 0.0) if solution.bound else None
    return replace(draft, solution=ready, stages=copies, gap=gap)
