"""Which nodes run on an engine beside the cores: those whose predicted cycles are fewer there.

The machine says what an engine takes. What it leaves becomes a node that the cores compute, tile by tile behind it.

It reads its weights in place, cores have to load theirs. Whether they wait for that depends on the plan: often there is
time and room to load constants while groups before them work. So nodes are compared both ways. That gives two graphs at
most, beside the one for the cores alone, and the planner takes the one of the fastest plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.graph import FreshNames, Graph, Node
from tilewright.core.plan import Choice
from tilewright.core.sizes import ranges_of
from tilewright.errors import TilewrightError
from tilewright.machine.parts import Engine
from tilewright.machine.target import Target
from tilewright.passes.split import Split, operand, splits
from tilewright.plan.content import Contents, Key, connections, mentioned
from tilewright.plan.options import PlanOptions
from tilewright.plan.select import select
from tilewright.plan.tiling.candidates import Tiling, fewest_cycles
from tilewright.plan.tiling.frame import Frame
from tilewright.plan.tiling.groups import whole_cycles
from tilewright.plan.tiling.rules import rules
from tilewright.price.grid import Grid
from tilewright.price.tasks import task


class Offloaded(Struct, frozen=True):
    """A graph in which some nodes are for other engines than the cores."""

    graph: Graph
    engines: Mapping[str, str]
    """The engine of such a node, by its output."""
    saved: float = 0.0
    """Predicted cycles that this saves at least, each node on its own."""

    def choose(self, node: Node, platform: Target, contents: Contents) -> Choice:
        """The kernel of a node."""
        return select(self.graph, node, platform, self.engines.get(node.outputs[0], ""), contents)


def offloads(graph: Graph, platform: Target, options: PlanOptions, contents: Contents) -> tuple[Offloaded, ...]:
    """What may be best, the one without other engines last."""
    compared = _Compared(platform, options, contents)
    first, then = (compared.offload(graph, early=early) for early in (False, True))
    found = [first]
    for way in (then, Offloaded(graph, MappingProxyType({}))):
        if all((way.graph.nodes, way.engines) != (other.graph.nodes, other.engines) for other in found):
            found.append(way)
    return tuple(found)


class _Way(Struct, frozen=True):
    """Nodes that compute what a node does, as one group on some engine."""

    split: Split
    in_place: str
    """The tensor that the engine reads in place; "" where there is none."""
    graph: Graph
    choices: tuple[Choice, ...]
    """None where there are no kernels for it."""
    key: Key
    """Ways that are alike have the same."""


class _Compared(Struct, frozen=True):
    """Compares the engines for every node; nodes that are alike once."""

    platform: Target
    options: PlanOptions
    contents: Contents
    _known: dict[Key, float] = field(default_factory=dict[Key, float])
    """Cycles of nodes that run as one group."""
    _ways: dict[tuple[int, int, str], tuple[Graph, Node, tuple[_Way, ...]]] = field(
        default_factory=dict[tuple[int, int, str], tuple[Graph, Node, tuple[_Way, ...]]]
    )
    """What there is for a node of a graph on an engine, the cores alone last; by the identity of both, which is theirs
    as long as they are here."""

    def offload(self, graph: Graph, *, early: bool) -> Offloaded:
        """Each node where it is fastest. With `early` the cores find their constants loaded."""
        beside = [engine for engine in self.platform.engines.values() if engine != self.platform.cores]
        found = Offloaded(graph, MappingProxyType({}))
        for engine in beside:
            found = self._offload(found, engine, early=early)
        return found

    def _offload(self, before: Offloaded, engine: Engine, *, early: bool) -> Offloaded:
        graph, engines, saved = before.graph, dict(before.engines), before.saved
        names = FreshNames(graph)
        nodes: list[Node] = []
        types, constants = dict(graph.types), dict(graph.constants)
        for node in graph.nodes:
            best, gain = (None, 0.0)
            # Other engines are told all sizes beforehand.
            if node.outputs[0] not in engines and not ranges_of(graph, node):
                best, gain = self._best(graph, node, names, engine, early)
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
        self, graph: Graph, node: Node, names: FreshNames, engine: Engine, early: bool
    ) -> tuple[Split | None, float]:
        """The fastest way to compute a node with an engine, and cycles saved; None where the cores alone are faster."""
        key = (id(graph), id(node), engine.name)
        if key not in self._ways:
            self._ways[key] = (graph, node, self._found(graph, node, names, engine))
        if not self._ways[key][2]:
            return None, 0.0
        *found, cores = self._ways[key][2]
        cycles = [self._cycles(way, early) for way in found]
        best = min(cycles)
        # What tiles of the cores would take matters only where all of it at once is not slower already.
        gain = self._whole(cores) - best
        if not 0 < gain < inf:
            gain = self._cycles(cores, early) - best
        return (found[cycles.index(best)].split, gain) if gain > 0 else (None, 0.0)

    def _found(self, graph: Graph, node: Node, names: FreshNames, engine: Engine) -> tuple[_Way, ...]:
        """The ways to compute a node with an engine, and the cores alone; empty where there is none."""
        takes = next((one for one in engine.takes if one.op == node.op), None)
        if takes is None:
            return ()
        found = [way for way in splits(graph, node, names, takes) if self._has_kernel(engine, way.nodes[0].op)]
        if not found:
            return ()
        room = takes.weights if _has_room(self.platform) else ""
        ways = (self._way(graph, way, engine.name, operand(way.nodes[0], room)) for way in found)
        return (*ways, self._way(graph, Split((node,)), ""))

    def _has_kernel(self, engine: Engine, op: str) -> bool:
        return any(kernel.engine == engine.name for kernel in self.platform.kernels_of(op))

    def _way(self, graph: Graph, split: Split, engine: str, in_place: str = "") -> _Way:
        nodes, platform = split.nodes, self.platform
        # What others have is left out first: networks of many nodes have many types.
        names = dict.fromkeys([*graph.inputs, *(name for node in nodes for name in (*node.reads, *node.made))])
        types = {name: graph.types[name] for name in names if name in graph.types}
        constants = {name: graph.constants[name] for name in names if name in graph.constants}
        alone = replace(graph, types=types, constants=constants, states=(), bounds=(), open={})
        small = alone.with_nodes(nodes, types=split.types, constants=split.constants, outputs=nodes[-1].outputs)
        try:
            choices = tuple(
                select(small, node, platform, "" if index else engine, self.contents)
                for index, node in enumerate(nodes)
            )
        except TilewrightError:
            return _Way(split, in_place, small, (), ())
        if engine and choices[0].kernel is None:
            return _Way(split, in_place, small, (), ())
        tasks = [task(small, node, choice.kernel) for node, choice in zip(nodes, choices, strict=True)]
        key = (*map(self.contents.of, tasks), connections(nodes, mentioned(nodes)))
        return _Way(split, in_place, small, choices, key)

    def _cycles(self, way: _Way, early: bool) -> float:
        """Predicted cycles of nodes that run as one group, with tensors outside of the engine's memory.

        With `early`, constants are there.
        """
        if not way.choices:
            return inf
        nodes, graph = way.split.nodes, way.graph
        near = frozenset([way.in_place]) if way.in_place else frozenset[str]()
        if early:
            near |= {name for node in nodes for name in node.reads if name in graph.constants}
        numbers = mentioned(nodes)
        key = (*way.key, *sorted(numbers[name] for name in near))
        if key not in self._known:
            self._known[key] = self._predicted(graph, way.choices, near)
        return self._known[key]

    def _whole(self, way: _Way) -> float:
        """Cycles of the cores for a node that is not cut, without transfers; infinite where it has to be."""
        key = (*way.key, "whole")
        if way.choices and key not in self._known:
            mine = task(way.graph, way.split.nodes[0], way.choices[0].kernel)
            self._known[key] = whole_cycles(Frame(self.platform, [mine], [rules(mine)], Grid([mine.member], [])))
        return self._known.get(key, inf)

    def _predicted(self, graph: Graph, choices: Sequence[Choice], near: frozenset[str]) -> float:
        platform = self.platform
        size = platform.memories[platform.cores.memory].bytes
        capacity = 1 << 40 if size is None else size
        settings = Tiling(self.options.buffers, 0.0, dict.fromkeys(graph.types, platform.home), capacity)
        return fewest_cycles(graph, platform, range(len(choices)), choices, settings, near=near)


def _has_room(platform: Target) -> bool:
    """Whether there is a memory that engines read in place."""
    return bool(platform.in_place) and platform.memories[platform.in_place].bytes != 0
