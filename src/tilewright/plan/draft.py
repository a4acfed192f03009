"""A plan in the making, which the steps of the planner improve one after the other, and the plan that it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.plan import Buffer, Group, Place, Plan, Schedule, Stage
from tilewright.core.states import shown
from tilewright.plan.joint import Pick, Solution
from tilewright.plan.levels import GroupSpan, Levels
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network
from tilewright.plan.options import PlanOptions
from tilewright.plan.points import Overlaps
from tilewright.plan.storage import state_buffers, state_bytes, tensors
from tilewright.timeline.replay import Timeline


class PlanDraft(Struct, frozen=True, dict=True):
    """Groups and their tiles, and where everything is."""

    options: PlanOptions
    menu: Menu
    levels: Levels
    solution: Solution
    places: Mapping[str, Place]
    """Of tensors between groups, by root."""
    stages: tuple[Stage, ...] = ()
    gap: float | None = None
    """How many cycles fewer other choices of groups may take; None where that is not known."""
    prefetched: Timeline | None = None
    """When groups run whose loads and stores have been moved into others."""
    overlaps: Overlaps = field(default_factory=lambda: MappingProxyType({}))
    """Groups that another engine computes while the cores do later ones."""

    @property
    def network(self) -> Network:
        return self.menu.network

    @cached_property
    def spans(self) -> list[GroupSpan]:
        return spans_of(self.network, self.solution.picks, self.overlaps)

    @property
    def cycles(self) -> float:
        """Predicted, where loads and stores have been moved into other groups."""
        return inf if self.prefetched is None else self.prefetched.cycles

    def end(self, number: int) -> int:
        """The group by whose end another one is computed."""
        return end_of(self.overlaps, number)

    @cached_property
    def sources(self) -> dict[str, str]:
        """The memory of each tensor outside the engine's, by its name and those of its views."""
        network = self.network
        places = {name: place.space for name, place in self.places.items()}
        places |= dict.fromkeys(network.graph.updates, self.levels.states)
        return {name: places.get(network.root(name), network.platform.home) for name in tensors(network.graph)}

    @cached_property
    def written(self) -> dict[str, int]:
        """The group that writes each tensor, by its name and those of its views."""
        network = self.network
        group_of = {at: index for index, pick in enumerate(self.solution.picks) for at in _positions(pick)}
        roots = shown(network.graph)
        made = {name: group_of[at] for at in range(len(network.steps)) for name in network.node(at).made}
        return {name: made[root] for name in tensors(network.graph) if (root := roots.get(name, name)) in made}

    @cached_property
    def groups(self) -> list[Group]:
        """With their workspaces where they are."""
        found = zip(self.solution.picks, self.solution.workspaces, strict=True)
        return [_moved(pick.candidate.group, base) for pick, base in found]

    def around(self, number: int) -> Mapping[str, str]:
        """The memory of each tensor outside the engine's, as a group finds it: some have been copied nearer."""
        staged = {s.tensor: s.place.space for s in self.stages if s.first <= number <= s.last}
        return {**self.sources, **staged} if staged else self.sources


def end_of(overlaps: Overlaps, number: int) -> int:
    """The group by whose end another one is computed."""
    return overlaps[number].last if number in overlaps else number


def spans_of(network: Network, picks: Sequence[Pick], overlaps: Overlaps = MappingProxyType({})) -> list[GroupSpan]:
    """From which group to which every tensor lives that is not inside one."""
    group_of = {position: index for index, pick in enumerate(picks) for position in _positions(pick)}
    inner = {name for pick in picks for position in _positions(pick)[:-1] for name in network.writes[position]}
    lasts = {name: group_of[life.last] for name, life in network.lives.items() if name not in inner}
    for number, overlap in overlaps.items():
        for name in network.reads[picks[number].run.first]:
            lasts[name] = max(lasts[name], overlap.last)
    return [
        GroupSpan(name, life.bytes, group_of[life.first], lasts[name])
        for name, life in network.lives.items()
        if name in lasts
    ]


def _positions(pick: Pick) -> range:
    return range(pick.run.first, pick.run.last + 1)


def finished(draft: PlanDraft) -> Plan:
    """The plan of a draft."""
    network, levels, solution, found = draft.network, draft.levels, draft.solution, draft.places
    picks, timeline = solution.picks, draft.prefetched
    if timeline is None:
        around = [draft.around(number) for number in range(len(picks))]
        timeline = network.timeline(draft.groups, around, draft.stages, overlaps=draft.overlaps)
    groups = tuple(replace(timed.group, cycles=timed.cycles) for timed in timeline.groups)
    used = dict(levels.occupied)
    ends: dict[str, int] = {levels.near: 0}
    for pick, base in zip(picks, solution.workspaces, strict=True):
        ends[levels.near] = max(ends[levels.near], base + pick.candidate.bytes)
    for span in draft.spans:
        here = found[span.tensor]
        ends[here.space] = max(ends.get(here.space, 0), here.offset + span.bytes)
    for stage in draft.stages:
        ends[stage.place.space] = max(ends.get(stage.place.space, 0), stage.place.offset + stage.bytes)
    steps = network.steps
    buffers = tuple(
        Buffer(
            span.tensor,
            network.graph.types[span.tensor].bytes,
            steps[picks[span.first].run.first],
            steps[picks[span.last].run.last] + 1,
            found[span.tensor],
        )
        for span in draft.spans
    )
    kept = state_buffers(network.graph, network.platform)
    ends[levels.near] = max([ends[levels.near], *(buffer.end for group in groups for buffer in group.buffers)])
    used = {name: used.get(name, 0) + ends.get(name, 0) for name in network.platform.memories}
    schedule = Schedule(
        network.engine.name,
        network.platform.home,
        groups,
        draft.stages,
        levels.direct,
        MappingProxyType(used),
        network.engine.count,
        0.0 if draft.gap is None else max(timeline.cycles - draft.gap, 0.0),
        levels.states,
        timeline.moves,
        timeline.runs,
    )
    plan = Plan(
        network.graph,
        network.platform,
        network.choices,
        MappingProxyType(_places(network, {**found, **{state.name: state.place for state in kept}})),
        (*buffers, *kept),
        MappingProxyType({}),
        used[levels.near],
        used[levels.near],
        draft.gap == 0.0,
        schedule,
        state_bytes(kept),
    )
    timeline.of(plan, schedule)
    return plan


def _moved(group: Group, base: int) -> Group:
    """A group whose workspace starts at an address."""
    return replace(
        group,
        works=tuple(replace(work, scratch=work.scratch + base) for work in group.works),
        buffers=tuple(replace(buffer, offset=buffer.offset + base) for buffer in group.buffers),
    )


def _places(network: Network, found: Mapping[str, Place]) -> dict[str, Place]:
    """The place of every tensor that is not inside a group only."""
    graph = network.graph
    known = {name: Place("constant") for name in graph.constants}
    known |= {network.root(name): Place("output", index=index) for index, name in enumerate(graph.given)}
    known |= {name: Place("input", index=index) for index, name in enumerate(graph.fed)}
    known |= found
    return {name: known[network.root(name)] for name in tensors(graph) if network.root(name) in known}
