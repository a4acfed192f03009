"""Which nodes run on an engine beside the cores: those whose predicted cycles are fewer there.

Such an engine only adds up products: what follows them becomes a node that the cores compute, tile by tile behind it.

It reads its weights in place, cores have to load theirs. Whether they wait for that depends on the plan: often there is
time and room to load constants while groups before them work. So nodes are compared both ways. That gives two graphs at
most, beside the one for the cores alone, and the planner takes the one of the fastest plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from tilewright.core.graph import Graph, Names, Node
from tilewright.core.plan import Choice
from tilewright.core.platform import Engine, Platform
from tilewright.errors import TilewrightError
from tilewright.passes.split import Split, splits
from tilewright.plan.options import PlanOptions
from tilewright.plan.select import select
from tilewright.plan.tiling.candidates import Tiling, candidates


@dataclass(frozen=True)
class Offloaded:
    """A graph in which some nodes are for other engines than the cores."""

    graph: Graph
    engines: Mapping[str, str]
    """The engine of such a node, by its output."""
    saved: float = 0.0
    """Predicted cycles that this saves, each node on its own."""

    def choose(self, node: Node, platform: Platform) -> Choice:
        """The kernel of a node."""
        return select(self.graph, node, platform, self.engines.get(node.outputs[0], ""))


def offloads(graph: Graph, platform: Platform, options: PlanOptions) -> tuple[Offloaded, ...]:
    """What may be best, the one without other engines last."""
    first, then = (offload(graph, platform, options, early=early) for early in (False, True))
    found = [first]
    for way in (then, Offloaded(graph, MappingProxyType({}))):
        if all((way.graph.nodes, way.engines) != (other.graph.nodes, other.engines) for other in found):
            found.append(way)
    return tuple(found)


def offload(graph: Graph, platform: Platform, options: PlanOptions, *, early: bool = False) -> Offloaded:
    """Compares the engines for every node. With `early` the cores find their constants loaded."""
    beside = [engine for engine in platform.engines.values() if engine != platform.cores]
    found = Offloaded(graph, MappingProxyType({}))
    for engine in beside:
        found = _offload(found, platform, engine, options, early=early)
    return found


def _offload(before: Offloaded, platform: Platform, engine: Engine, options: PlanOptions, *, early: bool) -> Offloaded:
    graph, engines, saved = before.graph, dict(before.engines), before.saved
    names = Names(graph)
    nodes: list[Node] = []
    types, constants = dict(graph.types), dict(graph.constants)
    for node in graph.nodes:
        best, gain = (None, 0.0)
        if node.outputs[0] not in engines:
            best, gain = _best(graph, node, names, platform, engine, options, early)
        if best is None:
            nodes.append(node)
            continue
        nodes += best.nodes
        types |= best.types
        constants |= best.constants
        engines[best.nodes[0].outputs[0]] = engine.name
        saved += gain
    return Offloaded(graph.with_nodes(nodes, types=types, constants=constants), MappingProxyType(engines), saved)


def _best(
    graph: Graph, node: Node, names: Names, platform: Platform, engine: Engine, options: PlanOptions, early: bool
) -> tuple[Split | None, float]:
    """The fastest way to compute a node with an engine, and cycles saved; None where the cores alone are faster."""
    ops = {kernel.op for kernel in platform.kernels if kernel.engine == engine.name}
    found = [way for way in splits(graph, node, names) if way.nodes[0].op in ops]
    if not found:
        return None, 0.0
    cycles = [_cycles(graph, way, platform, engine.name, options, early) for way in found]
    gain = _cycles(graph, Split((node,)), platform, "", options, early) - min(cycles)
    return (found[cycles.index(min(cycles))], gain) if gain > 0 else (None, 0.0)


def _cycles(graph: Graph, way: Split, platform: Platform, engine: str, options: PlanOptions, early: bool) -> float:
    """Predicted cycles of nodes that run as one group, with tensors outside of the engine's memory.

    With `early`, constants are there.
    """
    small = graph.with_nodes(way.nodes, types=way.types, constants=way.constants, outputs=way.nodes[-1].outputs)
    try:
        choices = [select(small, node, platform, "" if index else engine) for index, node in enumerate(way.nodes)]
    except TilewrightError:
        return inf
    if engine and choices[0].kernel is None:
        return inf
    near = frozenset(way.nodes[0].inputs[1:2]) if engine and _has_room(platform) else frozenset[str]()
    if early:
        near |= {name for node in way.nodes for name in node.reads if name in small.constants}
    size = platform.memories[platform.cores.memory].bytes
    capacity = 1 << 40 if size is None else size
    settings = Tiling(options.buffers, 0.0, dict.fromkeys(small.types, platform.home), capacity)
    found = candidates(small, platform, range(len(way.nodes)), choices, settings, near=near)
    return min((candidate.cycles for candidate in found if candidate.bytes <= capacity), default=inf)


def _has_room(platform: Platform) -> bool:
    """Whether there is a memory that engines read in place."""
    return bool(platform.in_place) and platform.memories[platform.in_place].bytes != 0
