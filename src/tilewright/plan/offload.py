"""Which nodes run on an engine beside the cores: those whose predicted cycles are fewer there.

Such an engine only adds up products: what follows them becomes a node that the cores compute, tile by tile behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from tilewright.core.graph import Graph, Names, Node
from tilewright.core.plan import Choice
from tilewright.core.platform import Engine, Platform
from tilewright.errors import TilewrightError
from tilewright.passes.split import split
from tilewright.plan.options import PlanOptions
from tilewright.plan.select import select
from tilewright.plan.tiling import Tiling, candidates


@dataclass(frozen=True)
class Offloaded:
    """A graph in which some nodes are for other engines than the cores."""

    graph: Graph
    engines: Mapping[str, str]
    """The engine of such a node, by its output."""

    def choose(self, node: Node, platform: Platform) -> Choice:
        """The kernel of a node."""
        return select(self.graph, node, platform, self.engines.get(node.outputs[0], ""))


def offload(graph: Graph, platform: Platform, options: PlanOptions) -> Offloaded:
    """Compares the engines for every node."""
    beside = [engine for engine in platform.engines.values() if engine != platform.cores]
    import os  # TEMPORARY

    if not os.environ.get("TW_NPU"):
        beside = []
    engines: dict[str, str] = {}
    for engine in beside:
        graph = _offload(graph, platform, engine, options, engines)
    return Offloaded(graph, MappingProxyType(engines))


def _offload(graph: Graph, platform: Platform, engine: Engine, options: PlanOptions, engines: dict[str, str]) -> Graph:
    names = Names(graph)
    nodes: list[Node] = []
    types = dict(graph.types)
    for node in graph.nodes:
        parts = _parts(graph, node, names, platform, engine) if node.outputs[0] not in engines else None
        if parts is None or not _faster(parts, graph, node, platform, options):
            nodes.append(node)
            continue
        nodes += parts.graph.nodes
        types |= parts.graph.types
        engines[parts.graph.nodes[0].outputs[0]] = engine.name
    return graph.with_nodes(nodes, types=types)


@dataclass(frozen=True)
class _Parts:
    """A node as another engine would compute it."""

    graph: Graph
    """Of these nodes alone: the sums, and what follows."""
    choices: tuple[Choice, ...]


def _parts(graph: Graph, node: Node, names: Names, platform: Platform, engine: Engine) -> _Parts | None:
    """None where the engine has no kernel for it."""
    if not any(kernel.engine == engine.name and kernel.op == node.op for kernel in platform.kernels):
        return None
    found = split(graph, node, names.fresh(f"{node.outputs[0]}_sums"))
    if found is None:
        return None
    first, rest, kind = found
    small = graph.with_nodes([first, rest] if rest else [first], types={first.outputs[0]: kind}, outputs=node.outputs)
    choice = _choice(small, first, platform, engine.name)
    if choice is None or choice.kernel is None:
        return None
    return _Parts(small, (choice, select(small, rest, platform)) if rest else (choice,))


def _choice(graph: Graph, node: Node, platform: Platform, engine: str) -> Choice | None:
    try:
        return select(graph, node, platform, engine)
    except TilewrightError:
        return None


def _faster(parts: _Parts, graph: Graph, node: Node, platform: Platform, options: PlanOptions) -> bool:
    there = _cycles(parts.graph, parts.choices, platform, options, frozenset(parts.graph.nodes[0].inputs[1:2]))
    alone = graph.with_nodes([node], outputs=node.outputs)
    return there < _cycles(alone, (select(alone, node, platform),), platform, options, frozenset())


def _cycles(
    graph: Graph, choices: Sequence[Choice], platform: Platform, options: PlanOptions, near: frozenset[str]
) -> float:
    """Predicted cycles of nodes that run as one group, with tensors outside of the engine's memory."""
    memory = platform.cores.memory
    source = dict.fromkeys(graph.types, platform.home)
    size = platform.memories[memory].bytes
    settings = Tiling(options.buffers, 0.0, source, 1 << 40 if size is None else size)
    in_place = near if platform.in_place and platform.memories[platform.in_place].bytes != 0 else frozenset[str]()
    found = candidates(graph, platform, range(len(graph.nodes)), choices, settings, near=in_place)
    fitting = [candidate.cycles for candidate in found if candidate.bytes <= settings.capacity]
    return min(fitting, default=inf)
