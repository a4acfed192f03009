"""Follows a plan from its first transfer to its last: the only source of predicted cycles and of the timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.actions import actions as actions_of
from tilewright.core.graph import Graph
from tilewright.core.moves import Move, Run
from tilewright.core.plan import Choice, Group, Plan, Schedule, Stage
from tilewright.machine.target import Target
from tilewright.price.tiles import Cost, priced
from tilewright.timeline.clock import CORES, OUT, START, Bar, Body, Passed, State, arrived, passed
from tilewright.timeline.code import kept_code
from tilewright.timeline.parts import CostedGroup, Costs, GroupPlace
from tilewright.timeline.program import Turns

Price = Callable[[Group, Mapping[str, str]], Costs]
"""What the parts of a group cost, given the memory of each tensor outside the engine's."""
Followed = dict[tuple[object, ...], tuple[GroupPlace, Passed]]
"""What groups took, by what they do and what others left; with all whose identity is in that."""


class Timed(Struct, frozen=True, eq=False, dict=True):
    """A group and when it runs."""

    place: GroupPlace
    start: float
    passed: Passed
    state: State
    """What others left when it began."""
    lent: float = 0.0
    """Cycles behind its own statements until it ends: a wait for an engine, beside what the next group begins with."""

    @property
    def group(self) -> Group:
        return self.place.part.group

    @property
    def index(self) -> int:
        return self.place.part.number

    @property
    def cycles(self) -> float:
        """As a profile counts them: until the core that drives comes to the next group."""
        return self.passed.cycles - (self.passed.owed or 0.0) + self.lent

    @property
    def stop(self) -> float:
        return self.start + self.passed.cycles

    @cached_property
    def cost(self) -> Cost:
        """Of the group alone."""
        return self.place.part.costs.priced.cost

    @property
    def bound(self) -> Literal["compute", "DMA"]:
        """What would have to become faster for the group to become faster."""
        return "compute" if self.cost.compute >= self.cost.transfers else "DMA"

    def busy(self, lane: str) -> float:
        """Cycles in which a lane is busy while the group runs."""
        before, behind = (dict(state[0]).get(lane, 0.0) for state in (self.state, self.passed.state))
        return max(self.passed.busy.get(lane, 0.0) + before - behind, 0.0)


class Timeline(Struct, frozen=True, eq=False):
    """When everything runs."""

    groups: tuple[Timed, ...]
    moves: tuple[Move, ...] = ()
    runs: tuple[Run, ...] = ()

    @property
    def cycles(self) -> float:
        return self.groups[-1].stop if self.groups else 0.0

    def of(self, plan: Plan, schedule: Schedule) -> None:
        """Says that it is that of a plan with the same groups: `plan_timeline` need not work it out again."""
        pairs = zip(self.groups, schedule.groups, strict=True)
        parts = tuple(replace(timed.place.part, group=group) for timed, group in pairs)
        places = (replace(timed.place, part=parts[timed.index], parts=parts) for timed in self.groups)
        groups = (replace(timed, place=place) for timed, place in zip(self.groups, places, strict=True))
        _TIMELINES[id(schedule)] = plan, replace(self, groups=tuple(groups))
        if len(_TIMELINES) > MOST_TIMELINES:
            del _TIMELINES[next(iter(_TIMELINES))]

    def bars(self, number: int, most: int) -> tuple[Bar, ...]:
        """The first steps of a group, bar by bar; cycles count from its start."""
        timed = self.groups[number]
        turns = Turns(timed.place)
        clock = arrived(timed.state, _slows(timed.place), [])
        clock.run(turns.before)
        for t in turns.turns:
            if t < most:
                clock.run(turns.body(t), t)
        return tuple(clock.bars or ())


MOST_TIMELINES = 8
_TIMELINES: dict[int, tuple[Plan, Timeline]] = {}
"""Of the last plans, by the identity of their schedules, which is theirs as long as the plans are here."""


def replay(
    graph: Graph,
    platform: Target,
    choices: Sequence[Choice],
    parts: Sequence[CostedGroup],
    stages: Sequence[Stage],
    moves: Sequence[Move],
    runs: Sequence[Run],
    known: Followed | None = None,
) -> Timeline:
    """When each group runs that does some moves and runs; `known` are groups followed before, to which it adds."""
    followed: Followed = {} if known is None else known
    asked = {move.issue.group for move in moves if move.kind == "stage"}
    slow = [part.far or part.number in asked for part in parts]
    kept = kept_code(graph, platform, choices, [part.group for part in parts], slow)
    found: list[Timed] = []
    state, start = START, 0.0
    for part, actions in zip(parts, actions_of(len(parts), moves, runs), strict=True):
        place = GroupPlace(part, parts, actions, stages, kept[part.number], any(slow[: part.number]))
        key = (*place.key, state)
        if key not in followed:
            followed[key] = place, followed_group(place, state)
        mine = followed[key][1]
        if mine.owed:
            found[-1] = replace(found[-1], lent=mine.owed)
        found.append(Timed(place, start, mine, state))
        state, start = mine.state, found[-1].stop
    return Timeline(tuple(found), tuple(moves), tuple(runs))


def parts_of(
    graph: Graph, groups: Sequence[Group], sources: Sequence[Mapping[str, str]], price: Price
) -> list[CostedGroup]:
    """Groups with what they cost; `sources` are, for each, the memories of tensors outside the engine's."""
    return [
        CostedGroup(number, group, price(group, source), tuple(graph.nodes[work.step].label for work in group.works))
        for number, (group, source) in enumerate(zip(groups, sources, strict=True))
    ]


def lanes(platform: Target) -> tuple[str, ...]:
    """The cores, other engines and every DMA; one that copies both ways at once has two."""
    engines = [name for name, engine in platform.engines.items() if engine != platform.cores]
    dmas = [lane for name, dma in platform.links.items() for lane in (name, f"{name}{OUT}")[: 1 + dma.duplex]]
    return (CORES, *engines, *dmas)


def plan_timeline(plan: Plan, schedule: Schedule) -> Timeline:
    """When everything of a plan runs."""
    graph, platform, choices = plan.graph, plan.platform, plan.choices
    other, known = _TIMELINES.get(id(schedule), (None, None))
    if other is not None and known is not None and other.platform is platform and other.choices is choices:
        return known
    homes = memories(plan, schedule)
    where = [sources(homes, schedule, number) for number in range(len(schedule.groups))]

    def price(group: Group, source: Mapping[str, str]) -> Costs:
        return Costs(platform, group, priced(graph, platform, choices, group, source), source)

    parts = parts_of(graph, schedule.groups, where, price)
    return replay(graph, platform, choices, parts, schedule.stages, schedule.moves, schedule.runs)


def memories(plan: Plan, schedule: Schedule) -> dict[str, str]:
    """The memory of every tensor that has a place."""
    found = {name: schedule.memory(place) for name, place in plan.places.items()}
    return found | dict.fromkeys(schedule.direct, plan.platform.in_place)


def sources(homes: Mapping[str, str], schedule: Schedule, number: int) -> dict[str, str]:
    """The memory of every tensor as a group finds it; `homes` are those of `memories`."""
    staged = (stage for stage in schedule.stages if stage.first <= number <= stage.last)
    return {**homes, **{stage.tensor: stage.place.space for stage in staged}}


def _slows(place: GroupPlace) -> float:
    return max(engine.slows for engine in place.part.costs.platform.engines.values())


def followed_group(place: GroupPlace, state: State) -> Passed:
    """Follows a group: turns that begin alike end alike."""
    turns, slows = Turns(place), _slows(place)
    cycles, busy, moved = 0.0, dict[str, float](), dict[str, int]()
    owed, first = 0.0, True
    known: dict[tuple[int, State], tuple[Body, Passed]] = {}
    bodies = (turns.before, *(turns.body(t) for t in turns.turns), turns.behind)
    for body in bodies:
        key = (id(body), state)
        if key not in known:
            known[key] = body, passed(body, state, slows)
        mine = known[key][1]
        if first and mine.owed is None:
            # Nothing but waits so far, which join one that the group before ends with.
            owed += mine.cycles if state[5] is not None else 0.0
        elif first:
            owed, first = owed + (mine.owed or 0.0), False
        cycles, state = cycles + mine.cycles, mine.state
        for lane, spent in mine.busy.items():
            busy[lane] = busy.get(lane, 0.0) + spent
            moved[lane] = moved.get(lane, 0) + mine.moved[lane]
    return Passed(cycles, state, busy, moved, owed)
