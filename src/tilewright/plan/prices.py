"""Costs of the groups of plans; those of groups that are alike are worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group
from tilewright.machine.target import Target
from tilewright.plan.content import Contents, Key, connections, mentioned
from tilewright.price.tasks import task
from tilewright.price.tiles import Cost, priced
from tilewright.price.transfers import Outside
from tilewright.timeline.parts import Costs
from tilewright.timeline.replay import Followed


class Price(Struct, frozen=True):
    """What a group takes."""

    cost: Cost
    loads: float
    """Cycles of its transfers, but for stores that others do not wait for."""


class Prices(Struct, frozen=True):
    """What is known of the groups of one network, whichever engines its nodes are for."""

    contents: Contents = field(default_factory=Contents)
    known: dict[Key, Price] = field(default_factory=dict[Key, Price])
    parts: dict[Key, Costs] = field(default_factory=dict[Key, Costs])
    followed: Followed = field(default_factory=lambda: Followed())
    """Groups that plans have in common."""

    def of(
        self,
        graph: Graph,
        platform: Target,
        choices: Sequence[Choice],
        group: Group,
        source: Mapping[str, str],
        outside: Outside,
    ) -> Price:
        """The price of a group; arguments as of `price.tiles.priced`."""
        key = (*self._key(graph, platform, choices, group, source), outside)
        found = self.known.get(key)
        if found is None:
            parts = priced(graph, platform, choices, group, source, outside)
            own = [flow for flow in parts.flows.values() if not (flow.store and flow.duplex)]
            loads = sum(parts.total(flow.cycles * parts.due(flow)) for flow in own)
            found = self.known[key] = Price(parts.cost, loads)
        return found

    def costs(
        self, graph: Graph, platform: Target, choices: Sequence[Choice], group: Group, source: Mapping[str, str]
    ) -> Costs:
        """What the parts of a group cost at every step; arguments as of `price.tiles.priced`."""
        key = self._key(graph, platform, choices, group, source)
        found = self.parts.get(key)
        if found is None:
            found = Costs(platform, group, priced(graph, platform, choices, group, source), source)
            self.parts[key] = found
        return found

    def _key(
        self, graph: Graph, platform: Target, choices: Sequence[Choice], group: Group, source: Mapping[str, str]
    ) -> Key:
        """All of a group but names and addresses, of which it matters which buffers share bytes."""
        tasks = [task(graph, graph.nodes[work.step], choices[work.step].kernel) for work in group.works]
        nodes = [mine.member.node for mine in tasks]
        numbers = mentioned(nodes)
        buffers = group.buffers
        return (
            tuple(platform.memories.values()),
            tuple(map(self.contents.of, tasks)),
            connections(nodes, numbers),
            tuple(
                (
                    *work.buffers.items(),
                    work.scratch_bytes,
                    work.split,
                    work.chunk,
                    work.sums,
                )
                for work in group.works
            ),
            tuple((numbers[b.tensor], b.bytes, b.slots, b.pack, b.within) for b in buffers),
            tuple(a.offset < b.end and b.offset < a.end for a in buffers for b in buffers),
            tuple((numbers[tensor], axis) for tensor, axis in group.keep.items()),
            (group.loops, group.ahead),
            tuple(source.get(name) for name in numbers),
        )
