"""A network as the scheduler sees it: the nodes that compute, in order, and the life of every tensor between them.

Views do nothing, so they have no position; a view has the life and place of the tensor it is a view of (its root).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.graph import Graph, Node
from tilewright.core.op import is_view
from tilewright.core.plan import Choice, Group, Stage
from tilewright.core.tiles import Member
from tilewright.machine.parts import Engine
from tilewright.machine.target import Target
from tilewright.plan.addresses.packing import round_up
from tilewright.plan.interleave import interleaved
from tilewright.plan.offload import Offloaded, offloads
from tilewright.plan.options import PlanOptions
from tilewright.plan.points import Crossings, Overlaps, points
from tilewright.plan.prices import Price, Prices
from tilewright.plan.select import node_cycles, with_doubtful_nest
from tilewright.plan.shapes import Shape
from tilewright.plan.storage import fixed, in_order, root_of, storage
from tilewright.price.tasks import Task, task
from tilewright.price.transfers import ALONE, Outside
from tilewright.timeline.parts import Costs
from tilewright.timeline.replay import Timeline, parts_of, replay


class Life(Struct, frozen=True):
    """A tensor that some memory must hold: its bytes, and the positions of its first writer and last reader."""

    bytes: int
    first: int
    last: int


class NodeRange(Struct, frozen=True):
    """Positions `first` to `last`, both included, that run as one group."""

    first: int
    last: int

    @property
    def single(self) -> bool:
        return self.first == self.last


class Network(Struct, frozen=True, dict=True):
    """A graph in execution order with the kernels chosen; positions count the nodes that compute."""

    graph: Graph
    platform: Target
    choices: tuple[Choice, ...]
    roots: Mapping[str, str]
    steps: tuple[int, ...]
    """The step of each position in the graph."""
    saved: float = 0.0
    """Predicted cycles that engines beside the cores save, each node on its own."""
    prices: Prices = field(default_factory=Prices)
    avoided: frozenset[Shape] = frozenset()
    """Tiles of groups that are only taken where others are much slower."""
    apart: frozenset[str] = frozenset()
    """First results of nodes that are groups of their own, as another engine is to compute them beside others."""

    @property
    def engine(self) -> Engine:
        return self.platform.cores

    def node(self, position: int) -> Node:
        return self.graph.nodes[self.steps[position]]

    def root(self, name: str) -> str:
        return root_of(self.roots, name)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """By position."""
        return tuple(self.task(step).member for step in self.steps)

    def task(self, step: int) -> Task:
        """A node of the graph with its kernel."""
        return task(self.graph, self.graph.nodes[step], self.choices[step].kernel)

    def price(self, group: Group, source: Mapping[str, str], outside: Outside = ALONE) -> Price:
        """What a group takes; `source` is the memory of each tensor from outside."""
        return self.prices.of(self.graph, self.platform, self.choices, group, source, outside)

    @property
    def interleaved(self) -> Network | None:
        """The same in an order in which engines work at the same time; None where they have little to do then."""
        graph, platform = self.graph, self.platform
        beside = [platform.beside(choice.kernel) for choice in self.choices]
        cycles = [
            node_cycles(graph, node, choice, platform, self.prices.contents)
            for node, choice in zip(graph.nodes, self.choices, strict=True)
        ]
        found = interleaved(graph, ["" if engine is None else engine.name for engine in beside], cycles)
        if found is None:
            return None
        chosen = {id(node): choice for node, choice in zip(graph.nodes, self.choices, strict=True)}
        return replace(
            self,
            graph=found.graph,
            choices=tuple(chosen[id(node)] for node in found.graph.nodes),
            steps=_steps(found.graph),
            apart=found.beside,
        )

    def timeline(
        self,
        groups: Sequence[Group],
        sources: Sequence[Mapping[str, str]],
        stages: Sequence[Stage],
        crossings: Crossings = MappingProxyType({}),
        overlaps: Overlaps = MappingProxyType({}),
    ) -> Timeline:
        """When groups run, one behind the other; `sources` are as of `price`, for each group."""

        def costs(group: Group, source: Mapping[str, str]) -> Costs:
            return self.prices.costs(self.graph, self.platform, self.choices, group, source)

        parts = parts_of(self.graph, groups, sources, costs)
        moves, runs = points(groups, [part.costs.facts for part in parts], stages, crossings, overlaps, self._constants)
        return replay(self.graph, self.platform, self.choices, parts, stages, moves, runs, self.prices.followed)

    @cached_property
    def _constants(self) -> Mapping[str, int]:
        """Bytes of constants."""
        return {name: self.graph.types[name].bytes for name in self.graph.constants}

    @cached_property
    def lives(self) -> Mapping[str, Life]:
        """Tensors between groups, by root: not inputs, outputs or constants."""
        outside = fixed(self.graph, self.roots)
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for position in range(len(self.steps)):
            node = self.node(position)
            for name in (*node.reads, *(o for o in node.outputs if o)):
                root = self.root(name)
                if root not in outside:
                    first.setdefault(root, position)
                    last[root] = position
        align = self.platform.alignment
        return {r: Life(round_up(self.graph.types[r].bytes, align), first[r], last[r]) for r in first}

    @cached_property
    def reads(self) -> tuple[tuple[str, ...], ...]:
        """Tensors between groups that each position reads, by root."""
        return tuple(self._between(self.node(position).reads) for position in range(len(self.steps)))

    @cached_property
    def writes(self) -> tuple[tuple[str, ...], ...]:
        """Tensors between groups that each position writes, by root."""
        return tuple(self._between(self.node(position).made) for position in range(len(self.steps)))

    @property
    def with_doubtful_nests(self) -> Network | None:
        """The same with loop nests where these may be faster than kernels; None where there are none."""
        choices = tuple(
            with_doubtful_nest(self.graph, node, self.platform, choice, self.prices.contents)
            for node, choice in zip(self.graph.nodes, self.choices, strict=True)
        )
        return replace(self, choices=choices) if choices != self.choices else None

    @cached_property
    def beside(self) -> tuple[bool, ...]:
        """Whether each position is on another engine than the cores: fused with what follows, both work at once."""
        return tuple(self.platform.beside(self.choices[step].kernel) is not None for step in self.steps)

    def _between(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(root for root in map(self.root, names) if root in self.lives))

    @cached_property
    def readers(self) -> Mapping[str, tuple[int, ...]]:
        """Positions that read each tensor directly, by its own name."""
        found: dict[str, list[int]] = {}
        for position in range(len(self.steps)):
            for name in self.node(position).reads:
                found.setdefault(name, []).append(position)
        return {name: tuple(positions) for name, positions in found.items()}

    @cached_property
    def constants(self) -> Mapping[tuple[str, str], int]:
        """Bytes of each constant that code reads, by tensor and packing."""
        found: dict[tuple[str, str], int] = {}
        for _, tensor, pack, size in self.constant_uses():
            found[tensor, pack] = size
        return found

    def constant_uses(self) -> Iterator[tuple[int, str, str, int]]:
        """Position, tensor, packing and bytes of every use of a constant."""
        align = self.platform.alignment
        for position, mine in enumerate(self.members):
            for use in mine.uses:
                if self.root(use.tensor) in self.graph.constants:
                    yield position, use.tensor, use.pack, round_up(use.type.bytes, align)

    def label(self, position: int) -> str:
        """How messages call a layer."""
        node = self.node(position)
        return f"{node.op} '{node.label}'"


def networks_of(graph: Graph, platform: Target, options: PlanOptions) -> tuple[Network, ...]:
    """Chooses engines, in one way or several."""
    prices = Prices()
    found = offloads(graph, platform, options, prices.contents)
    return tuple(_network(placed, platform, options, prices) for placed in found)


def _network(placed: Offloaded, platform: Target, options: PlanOptions, prices: Prices) -> Network:
    """Orders the nodes and chooses their kernels."""
    roots = storage(placed.graph)
    ordered = in_order(placed.graph, roots, options.order)
    choices = tuple(placed.choose(node, platform, prices.contents) for node in ordered.nodes)
    return Network(ordered, platform, choices, roots, _steps(ordered), placed.saved, prices)


def _steps(graph: Graph) -> tuple[int, ...]:
    """Nodes that compute."""
    return tuple(step for step, node in enumerate(graph.nodes) if not is_view(node))
