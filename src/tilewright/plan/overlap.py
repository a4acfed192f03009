"""Two engines at a time: one beside the cores computes a group while these do later ones that do not need it.

Branches of a network and heads of attention are such groups. The run of a group of one node and one step is started
beside the first group behind it that the cores compute, and awaited beside a later one: before something needs it, a
group behind the one in which it is expected to be done, or where memory ends. Until then it keeps what it reads and
writes, so addresses are found anew. The clock tells whether all of that pays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.plan import Place
from tilewright.plan.draft import PlanDraft, spans_of
from tilewright.plan.joint import Pick, pack
from tilewright.plan.levels import GroupSpan, place
from tilewright.plan.network import Network
from tilewright.plan.points import Overlap
from tilewright.plan.prefetch import prefetch
from tilewright.plan.single_step import SingleSteps
from tilewright.timeline.clock import CORES
from tilewright.timeline.replay import Timed, Timeline


def overlap(draft: PlanDraft) -> PlanDraft:
    """Groups of other engines beside those of the cores, where that is faster."""
    timeline = draft.prefetched
    if timeline is None or draft.options.overlap == "off" or draft.options.buffers:
        return draft
    ways = [draft]
    seen: list[Mapping[int, Overlap]] = [{}]
    for one_by_one in (False, True):
        search = _Overlaps(draft, timeline, one_by_one)
        overlaps = search.run()
        if overlaps in seen:
            continue
        seen.append(overlaps)
        whole = search.in_one_step
        begins = _begins(whole)
        found = (_overlapped(whole, overlaps, each) for each in ([{}, begins] if begins else [{}]))
        ways += [way for way in found if way is not None]
    return min(ways, key=lambda way: way.cycles)


def _overlapped(draft: PlanDraft, overlaps: Mapping[int, Overlap], begins: Mapping[int, int]) -> PlanDraft | None:
    """The same groups, some beside others, and some with their bytes from an earlier one on; None where there are no
    addresses for that."""
    solution, options = draft.solution, draft.options
    found = None
    # Where there is room, nobody has the bytes of the group behind, so that its loads run beside the last one.
    for behind in (1, 0):
        ends = {number: mine.last + behind for number, mine in overlaps.items()}
        found = found or pack(
            draft.network,
            solution.picks,
            draft.levels.capacity,
            seconds=options.seconds,
            seed=options.seed,
            ends=ends,
            begins=begins,
        )
    far = _far(draft, overlaps)
    if found is None or far is None:
        return None
    workspaces, residents = found
    near = {name: Place(draft.levels.near, offset) for name, offset in residents.items()}
    return prefetch(
        replace(
            draft,
            solution=replace(solution, workspaces=workspaces, residents=residents),
            places={**draft.places, **far, **near},
            overlaps=overlaps,
            gap=None,
        )
    )


def _begins(draft: PlanDraft) -> dict[int, int]:
    """From where on groups that need most of the memory have it for themselves: from behind the one before."""
    found: dict[int, int] = {}
    behind = 0
    for number, pick in enumerate(draft.solution.picks):
        if 2 * pick.candidate.bytes > draft.levels.capacity:
            if behind < number:
                found[number] = behind
            behind = number + 1
    return found


def _far(draft: PlanDraft, overlaps: Mapping[int, Overlap]) -> Mapping[str, Place] | None:
    """Places in the memories behind the engine's, where what overlapping groups read lives longer; None where there are
    none, or where copies in a nearer memory would be in the way of new ones."""
    residents, options, platform = draft.solution.residents, draft.options, draft.network.platform
    spans = spans_of(draft.network, draft.solution.picks, overlaps)
    far = [span for span in spans if span.tensor not in residents and span.bytes]
    if not any(_meet(draft.places, one, other) for at, one in enumerate(far) for other in far[:at]):
        return draft.places
    if draft.stages:
        return None
    return place(far, draft.levels, platform.alignment, seconds=options.seconds, seed=options.seed)


def _meet(places: Mapping[str, Place], one: GroupSpan, other: GroupSpan) -> bool:
    """Whether two tensors have bytes in common at the same time."""
    a, b = places[one.tensor], places[other.tensor]
    apart = a.offset + one.bytes <= b.offset or b.offset + other.bytes <= a.offset
    return a.space == b.space and not apart and one.first <= other.last and other.first <= one.last


class _Overlaps(Struct, dict=True):
    """Goes through the groups of a plan, with those that another engine computes meanwhile."""

    draft: PlanDraft
    timeline: Timeline
    one_by_one: bool = False
    """Whether what is started behind something that is needed sooner is started when that is done."""
    found: dict[int, Overlap] = field(default_factory=dict[int, Overlap])
    pending: dict[int, int] = field(default_factory=dict[int, int])
    """Groups of other engines, with the group beside which each is started; -1 where none has come yet."""
    last: int = -1
    """The last group of the cores."""
    left: float = 0.0
    """Cycles for which the engines are still at work."""

    @property
    def _network(self) -> Network:
        return self.draft.network

    @cached_property
    def _picks(self) -> tuple[Pick, ...]:
        """With what other engines compute in one step where that is possible."""
        steps, network = SingleSteps.of(self.draft), self._network
        found: list[Pick] = []
        for number, pick in enumerate(self.draft.solution.picks):
            apart = pick.run.single and network.beside[pick.run.first] and pick.candidate.group.loops
            whole = steps.at_once(number) if apart else None
            found.append(pick if whole is None else replace(pick, candidate=whole))
        return tuple(found)

    @property
    def in_one_step(self) -> PlanDraft:
        """The same plan with what was found computed in one step."""
        solution = self.draft.solution
        both = enumerate(zip(solution.picks, self._picks, strict=True))
        picks = tuple(whole if number in self.found else pick for number, (pick, whole) in both)
        return replace(self.draft, solution=replace(solution, picks=picks))

    def run(self) -> dict[int, Overlap]:
        for number, timed in enumerate(self.timeline.groups):
            inside = self._give_way(number)
            if not self._fits(number):
                self._close()
            if self._apart(number):
                self.pending[number] = -1
            elif not self._by_cores(number, timed):
                self._close()
            elif self.pending:
                self._beside(number, timed, inside)
        self._close()
        return self.found

    def _give_way(self, number: int) -> frozenset[int]:
        """Awaits what a group needs: that which has been started before it, the rest where it is; but nothing where its
        node awaits all that itself, which is told."""
        needed = [other for other in self.pending if self._needs(number, other)]
        begun = all(first >= 0 for first in self.pending.values())
        if needed and begun and all(self._awaits(number, other) for other in needed):
            return frozenset(needed)
        if any(self.pending[other] >= 0 for other in needed):
            if self.one_by_one:
                self._recall(needed)
            self._close(started=True)
        while waiting := [other for other in needed if other in self.pending]:
            for other in waiting:
                del self.pending[other]
            # What stays where it is, and all that it needs.
            needed = [mine for mine in self.pending if any(self._follows(other, mine) for other in waiting)]
        return frozenset()

    def _recall(self, needed: Sequence[int]) -> None:
        """Lets what the engine would do behind the last of what is needed begin later: it is not awaited then."""
        begun = [other for other, first in self.pending.items() if first >= 0]
        while begun and begun[-1] not in needed:
            self.pending[begun.pop()] = -1

    def _beside(self, number: int, timed: Timed, inside: frozenset[int]) -> None:
        """Lets the cores compute a group meanwhile, which awaits some of the others itself.

        What should be done when it begins is awaited at its end: cores that are faster than expected need not wait.
        """
        begun = [other for other, first in self.pending.items() if first < 0]
        done = self.left <= 0 and not begun
        for other in begun:
            self.pending[other] = number
            self.left += sum(self.timeline.groups[other].passed.busy.get(e, 0.0) for e in self._engines)
        self.last = number
        self.left -= timed.cycles
        if done or inside:
            self._close(inside=inside)

    def _close(self, *, started: bool = False, inside: frozenset[int] = frozenset()) -> None:
        """Awaits all that was started; the rest stays where it is, unless it may be started later."""
        self.found |= {n: Overlap(first, self.last, n in inside) for n, first in self.pending.items() if first >= 0}
        self.pending = {n: first for n, first in self.pending.items() if started and first < 0}
        self.left = 0.0

    @cached_property
    def _engines(self) -> list[str]:
        return [name for name, engine in self._network.platform.engines.items() if engine != self._network.engine]

    def _apart(self, number: int) -> bool:
        """Whether a group is one node that another engine computes at once."""
        pick = self._picks[number]
        return pick.run.single and self._network.beside[pick.run.first] and not pick.candidate.group.loops

    def _by_cores(self, number: int, timed: Timed) -> bool:
        """Whether the cores compute a group, and work at every step of it."""
        run = self._picks[number].run
        alone = not any(self._network.beside[run.first : run.last + 1])
        return alone and bool(timed.place.part.costs.carriers) and timed.passed.busy.get(CORES, 0.0) > 0

    def _needs(self, number: int, other: int) -> bool:
        """Whether a group reads or overwrites what another one makes, or overwrites what that reads."""
        handed = self._touched[other][0] & self._touched[number][1]
        return self._follows(number, other) and not (handed and self._queued(other, number, handed))

    def _awaits(self, number: int, other: int) -> bool:
        """Whether a group needs nothing of another one but what its node awaits itself."""
        pick, network = self._picks[number], self._network
        group, step = pick.candidate.group, network.steps[pick.run.first]
        keys = group.awaits(network.choices[step].kernel)
        uses = network.task(step).member.uses if keys else ()
        others = {network.root(use.tensor) for use in uses if use.key not in keys}
        made, read = self._touched[other]
        return len(keys) > 0 and made.isdisjoint(others) and read.isdisjoint(self._touched[number][0])

    def _follows(self, number: int, other: int) -> bool:
        """Whether a group cannot be computed before another one."""
        made, read = self._touched[other]
        makes, reads = self._touched[number]
        return not made.isdisjoint(makes | reads) or not read.isdisjoint(makes)

    def _queued(self, other: int, number: int, handed: frozenset[str]) -> bool:
        """Whether an engine, which does one thing after the other, finds in its memory all that it waits for."""
        first, then = self._picks[other], self._picks[number]
        apart = all(self._apart(each) for each in (other, number))
        engines = {self._network.choices[self._network.steps[pick.run.first]].engine for pick in (first, then)}
        copied = {self._network.root(buffer.tensor) for buffer in then.candidate.group.buffers}
        return apart and len(engines) == 1 and handed <= first.near & then.near and handed.isdisjoint(copied)

    @cached_property
    def _touched(self) -> list[tuple[frozenset[str], frozenset[str]]]:
        """What each group makes, and what it reads, by root; copies in a nearer memory that it starts read, too."""
        network = self._network
        found: list[tuple[frozenset[str], frozenset[str]]] = []
        for number, pick in enumerate(self._picks):
            nodes = [network.node(position) for position in range(pick.run.first, pick.run.last + 1)]
            staged = [stage.tensor for stage in self.draft.stages if stage.start == number]
            reads = {network.root(name) for node in nodes for name in node.reads} | {*map(network.root, staged)}
            found.append((frozenset(network.root(name) for node in nodes for name in node.made), frozenset(reads)))
        return found

    def _fits(self, number: int) -> bool:
        """Whether there are bytes for a group beside those that are pending."""
        lives, mine = self._network.lives, self._picks[number]
        others = [self._picks[other] for other in self.pending]
        held = mine.residents.union(*(other.near for other in others))
        spaces = sum(pick.candidate.bytes for pick in (mine, *others))
        return spaces + sum(lives[name].bytes for name in held) <= self.draft.levels.capacity
