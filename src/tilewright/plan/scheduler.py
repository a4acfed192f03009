"""The planner of machines whose engine has a memory of its own: groups of nodes run tile by tile.

Order and kernels first, then which memories are there (`plan.levels`), which runs of nodes may be fused
(`plan.fusion`), the joint choice of groups, tiles and residents (`plan.joint`), and last the places of what leaves the
engine's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tilewright.core.graph import Graph
from tilewright.core.plan import Buffer, Group, Place, Plan, Schedule, Stage
from tilewright.core.states import shown
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target
from tilewright.plan.impossible import why_impossible
from tilewright.plan.inlay import Inlay
from tilewright.plan.joint import Joint, Pick, Solution, fits_layer_by_layer, layer_by_layer
from tilewright.plan.levels import Levels, Span, first_sources, levels_of, place
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network, networks_of
from tilewright.plan.once import Once
from tilewright.plan.options import PlanOptions
from tilewright.plan.prefetch import Prefetch
from tilewright.plan.shapes import Shape, shape_of
from tilewright.plan.stages import PATIENCES, Stages
from tilewright.plan.storage import state_buffers, state_bytes, tensors
from tilewright.plan.tiling.candidates import Candidate
from tilewright.price.copies import route
from tilewright.price.tiles import priced

DOUBT = 0.1
"""Share of a plan's cycles that predictions may be off by: engines that save less are compared with the cores alone."""

FURTHER = 3
"""How often other tiles are looked for."""


def schedule(graph: Graph, platform: Target, options: PlanOptions) -> Plan:
    """Places a lowered graph on a machine with several memories."""
    if graph.bounds and any(dma.through for dma in route(platform, platform.home)):
        raise TilewrightError(
            "bad-size",
            f"sizes that are known when the network runs are inputs, and no core of '{platform.name}' reads "
            f"{platform.home}, where these are",
            help="choose another home for inputs and weights with --home",
        )
    networks = networks_of(graph, platform, options)
    saved = [network.saved for network in networks if network.saved]
    made: Plan | None = None
    for network in networks:
        if made is None or network.saved or min(saved) < DOUBT * _cycles(made):
            found = [plan for plan in (made, _planned(network, options)) if plan is not None]
            made = min(found, key=_cycles, default=None)
    if made is None:
        raise why_impossible(networks[0], options, lambda other: _fits(networks, other.platform, options))
    return made


def other_schedules(graph: Graph, platform: Target, options: PlanOptions) -> Iterator[Plan]:
    """Plans beside that of `schedule`, the fewest cycles first: with other engines, and with tiles that come next.

    Tiles are chosen before it is known what can be loaded early, so these may even be predicted to be faster.
    """
    networks = networks_of(graph, platform, options)
    plans = [(plan, network) for network in networks if (plan := _planned(network, options)) is not None]
    best, network = min(plans, key=lambda each: _cycles(each[0]))
    found = [plan for plan, _ in plans if plan is not best]
    shapes = _shapes(best)
    for _ in range(FURTHER):
        made = _planned(replace(network, avoided=shapes), options)
        if made is None:
            break
        found.append(made)
        shapes |= _shapes(made)
    yield from sorted((plan for plan in found if _cycles(plan) <= (1 + DOUBT) * _cycles(best)), key=_cycles)


def _shapes(plan: Plan) -> frozenset[Shape]:
    return frozenset(shape_of(group) for group in plan.schedule.groups) if plan.schedule else frozenset()


def _fits(networks: Sequence[Network], platform: Target, options: PlanOptions) -> bool:
    """Whether a machine is large enough, with one choice of engines or another."""
    return any(_attempt(replace(network, platform=platform), options) is not None for network in networks)


def _planned(network: Network, options: PlanOptions) -> Plan | None:
    """The plan of a network whose engines are chosen; None where some memory is too small."""
    made = _attempt(network, options)
    if options.joint and made is not None and made.schedule is not None and made.schedule.stages:
        # Copies from a slow home are chosen after the groups, so simpler groups may come out ahead.
        simple = _attempt(network, replace(options, joint=False))
        if simple is not None and simple.schedule is not None and _cycles(simple) < _cycles(made):
            return replace(simple, schedule=replace(simple.schedule, bound=made.schedule.bound))
    return made


def _cycles(plan: Plan) -> float:
    return sum(group.cycles for group in plan.schedule.groups) if plan.schedule is not None else 0.0


def _attempt(network: Network, options: PlanOptions) -> Plan | None:
    """The plan; None where some memory is too small."""
    levels = levels_of(network)
    if any(room < 0 for room in levels.room.values()):
        return None
    sources = first_sources(network, levels)
    menu = Menu(network, options, levels.capacity)
    joint = options.joint or not fits_layer_by_layer(menu, levels, sources)
    solution = Joint(menu, levels, sources).solve(options) if joint else layer_by_layer(menu, levels, sources)
    if solution is None:
        return None
    spans = _spans(network, solution.picks)
    far = [span for span in spans if span.tensor not in solution.residents]
    found = place(far, levels, network.platform.alignment, seconds=options.seconds, seed=options.seed)
    if found is None:
        return None
    final = _Final(menu, levels, solution, {**sources, **{name: where.space for name, where in found.items()}})
    tries = [Stages(network, levels, solution.picks, far, found, final.cycles, patience) for patience in PATIENCES]
    chosen = list(dict.fromkeys(stages.choose(len(solution.picks)) for stages in tries))
    copies = min(chosen, key=final.total) if len(chosen) > 1 else chosen[0]
    found |= {name: Place(levels.near, offset) for name, offset in solution.residents.items()}
    ready = replace(solution, picks=final.picks(copies))
    # Other choices are known by the quick prices of their groups only.
    gap = max(sum(pick.candidate.cycles for pick in ready.picks) - solution.bound, 0.0) if solution.bound else None
    if not options.buffers and not copies:
        ready = Once(menu, levels, ready, _sources(network, levels, found), _written(network, ready.picks)).run()
    sources = _sources(network, levels, found)
    ready = replace(ready, picks=tuple(Inlay(network, pick, sources).run() for pick in ready.picks))
    return _plan(network, levels, ready, spans, found, copies, gap)


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


def _spans(network: Network, picks: Sequence[Pick]) -> list[Span]:
    """From which group to which every tensor lives that is not inside one."""
    group_of = {position: index for index, pick in enumerate(picks) for position in _positions(pick)}
    inner = {name for pick in picks for position in _positions(pick)[:-1] for name in network.writes[position]}
    return [
        Span(name, life.bytes, group_of[life.first], group_of[life.last])
        for name, life in network.lives.items()
        if name not in inner
    ]


def _positions(pick: Pick) -> range:
    return range(pick.run.first, pick.run.last + 1)


def _plan(
    network: Network,
    levels: Levels,
    solution: Solution,
    spans: Sequence[Span],
    found: Mapping[str, Place],
    stages: Sequence[Stage],
    gap: float | None,
) -> Plan:
    """The plan; `gap` is how many cycles fewer other choices of groups may take."""
    picks, sources = solution.picks, _sources(network, levels, found)
    groups = tuple(_moved(p.candidate.group, base) for p, base in zip(picks, solution.workspaces, strict=True))
    used = dict(levels.occupied)
    ends: dict[str, int] = {levels.near: 0}
    for pick, base in zip(picks, solution.workspaces, strict=True):
        ends[levels.near] = max(ends[levels.near], base + pick.candidate.bytes)
    for span in spans:
        here = found[span.tensor]
        ends[here.space] = max(ends.get(here.space, 0), here.offset + span.bytes)
    for stage in stages:
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
        for span in spans
    )
    kept = state_buffers(network.graph, network.platform)
    near = [span for span in spans if found[span.tensor].space == levels.near]
    prefetch = Prefetch(
        network,
        list(groups),
        [
            [(base, base + pick.candidate.bytes)]
            + [(found[s.tensor].offset, found[s.tensor].offset + s.bytes) for s in near if s.first <= number <= s.last]
            for number, (pick, base) in enumerate(zip(picks, solution.workspaces, strict=True))
        ],
        levels.capacity,
        _written(network, picks),
        sources,
        stages,
    )
    timeline = prefetch.run()
    groups = tuple(
        replace(group, cycles=timed.cycles) for group, timed in zip(prefetch.groups, timeline.groups, strict=True)
    )
    ends[levels.near] = max([ends[levels.near], *(buffer.end for group in groups for buffer in group.buffers)])
    used = {name: used.get(name, 0) + ends.get(name, 0) for name in network.platform.memories}
    return Plan(
        network.graph,
        network.platform,
        network.choices,
        MappingProxyType(_places(network, {**found, **{state.name: state.place for state in kept}})),
        (*buffers, *kept),
        MappingProxyType({}),
        used[levels.near],
        used[levels.near],
        gap == 0.0,
        Schedule(
            network.engine.name,
            network.platform.home,
            groups,
            tuple(stages),
            levels.direct,
            MappingProxyType(used),
            network.engine.count,
            0.0 if gap is None else max(timeline.cycles - gap, 0.0),
            levels.states,
            timeline.moves,
            timeline.runs,
        ),
        state_bytes(kept),
    )


def _sources(network: Network, levels: Levels, found: Mapping[str, Place]) -> dict[str, str]:
    """The memory of each tensor outside the engine's, by its name and those of its views."""
    places = {name: place.space for name, place in found.items()}
    places |= dict.fromkeys(network.graph.updates, levels.states)
    return {name: places.get(network.root(name), network.platform.home) for name in tensors(network.graph)}


def _written(network: Network, picks: Sequence[Pick]) -> dict[str, int]:
    """The group that writes each tensor, by its name and those of its views."""
    group_of = {position: index for index, pick in enumerate(picks) for position in _positions(pick)}
    roots = shown(network.graph)
    made = {name: group_of[at] for at in range(len(network.steps)) for name in network.node(at).made}
    return {name: made[root] for name in tensors(network.graph) if (root := roots.get(name, name)) in made}


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
