"""The planner of machines whose engine has a memory of its own: groups of nodes run tile by tile.

Order and kernels first, then which memories are there (`plan.levels`), which runs of nodes may be fused
(`plan.fusion`), the joint choice of groups, tiles and residents (`plan.joint`), and last the places of what leaves the
engine's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tilewright.core.graph import Graph
from tilewright.core.plan import Buffer, Group, Place, Plan, Schedule
from tilewright.core.platform import Platform
from tilewright.plan.joint import Joint, Pick, Solution, layer_by_layer
from tilewright.plan.levels import Levels, Span, first_sources, levels_of, place
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network, network_of
from tilewright.plan.options import PlanOptions
from tilewright.plan.storage import tensors


def schedule(graph: Graph, platform: Platform, options: PlanOptions) -> Plan:
    """Places a lowered graph on a machine with several memories."""
    network = network_of(graph, platform, options)
    levels = levels_of(network)
    sources = first_sources(network, levels)
    menu = Menu(network, options, levels.capacity)
    solution = _solve(menu, levels, sources, options)
    spans = _spans(network, solution.picks)
    far = [span for span in spans if span.tensor not in solution.residents]
    align = platform.alignment
    found = place(far, levels, align, seconds=options.seconds, seed=options.seed)
    found |= {name: Place(levels.near, offset) for name, offset in solution.residents.items()}
    return _plan(network, levels, solution, spans, found)


def _solve(menu: Menu, levels: Levels, sources: Mapping[str, str], options: PlanOptions) -> Solution:
    if not options.joint:
        return layer_by_layer(menu, levels, sources)
    solution = Joint(menu, levels, sources).solve(options)
    assert solution is not None
    return solution


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
    network: Network, levels: Levels, solution: Solution, spans: Sequence[Span], found: Mapping[str, Place]
) -> Plan:
    picks = solution.picks
    groups = tuple(_moved(p.candidate.group, base) for p, base in zip(picks, solution.workspaces, strict=True))
    used = dict(levels.occupied)
    ends: dict[str, int] = {levels.near: 0}
    for pick, base in zip(picks, solution.workspaces, strict=True):
        ends[levels.near] = max(ends[levels.near], base + pick.candidate.bytes)
    for span in spans:
        here = found[span.tensor]
        ends[here.space] = max(ends.get(here.space, 0), here.offset + span.bytes)
    used = {name: used.get(name, 0) + ends.get(name, 0) for name in network.platform.memories}
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
    cycles = sum(group.cycles for group in groups)
    return Plan(
        network.graph,
        network.platform,
        network.choices,
        MappingProxyType(_places(network, found)),
        buffers,
        MappingProxyType({}),
        used[levels.near],
        used[levels.near],
        solution.bound >= cycles,
        Schedule(
            network.engine.name,
            network.platform.home,
            groups,
            (),
            levels.direct,
            MappingProxyType(used),
            network.engine.count,
            solution.bound,
        ),
    )


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
    known |= {network.root(name): Place("output", index=index) for index, name in enumerate(graph.outputs)}
    known |= {name: Place("input", index=index) for index, name in enumerate(graph.inputs)}
    known |= found
    return {name: known[network.root(name)] for name in tensors(graph) if network.root(name) in known}
