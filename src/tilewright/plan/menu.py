"""The candidates of every run of nodes, asked for lazily and kept by content.

Layers repeat in real networks: two runs whose nodes, types, kernels and surroundings are the same have the same
candidates, up to the names of tensors. They are computed once in a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from tilewright.core.plan import Group
from tilewright.plan.content import Hashed, Key, connections, mentioned
from tilewright.plan.network import Network, NodeRange
from tilewright.plan.options import PlanOptions
from tilewright.plan.tiling.candidates import Candidate, Tiling, candidates

_FRONTS: dict[Key, tuple[tuple[str, ...], int, tuple[Candidate, ...]]] = {}
"""Tensor names in order of mention, the first step, and the candidates of runs seen before."""
_LIMIT = 20_000


class Menu:
    """Candidates of runs of one network."""

    def __init__(self, network: Network, options: PlanOptions, capacity: int) -> None:
        self.network, self.capacity = network, capacity
        self._options = options
        platform = network.platform
        tables = (platform.engines, platform.links, platform.memories, platform.operations, platform.fused)
        self._machine = Hashed((platform.name, platform.home, *(tuple(table.items()) for table in tables)))
        """What prices of candidates ask of the platform."""
        self.points = [mine.domain.points() for mine in network.members]
        """What each node computes."""
        self.extra = options.max_extra_macs * sum(self.points)
        """How many points each run may compute twice."""
        self._fronts: dict[
            tuple[NodeRange, frozenset[str], frozenset[tuple[str, str]], float], tuple[Candidate, ...]
        ] = {}
        self._contents: dict[NodeRange, Key] = {}

    def front(self, run: NodeRange, near: frozenset[str], sources: Mapping[str, str]) -> tuple[Candidate, ...]:
        """Pareto points of a run by growing bytes, cached. `near` and `sources` are by root."""
        names = self._names(run)
        close = frozenset(name for name in names if self.network.root(name) in near)
        where = {name: sources[self.network.root(name)] for name in names if name not in close}
        key = (run, close, frozenset(where.items()), self.extra)
        found = self._fronts.get(key)
        if found is None:
            found = self._fronts[key] = self._shared(run, close, where)
        return found

    def _names(self, run: NodeRange) -> tuple[str, ...]:
        """Tensors that a run touches and does not keep to itself, in order of mention."""
        network = self.network
        inner = {m.output.tensor for m in network.members[run.first : run.last]}
        uses = (use.tensor for m in network.members[run.first : run.last + 1] for use in m.uses)
        return tuple(dict.fromkeys(name for name in uses if name not in inner))

    def _shared(self, run: NodeRange, close: frozenset[str], where: Mapping[str, str]) -> tuple[Candidate, ...]:
        network, options = self.network, self._options
        steps = network.steps[run.first : run.last + 1]
        number = mentioned([network.graph.nodes[step] for step in steps])
        key = (
            self._machine,
            # A node alone computes nothing twice.
            (self.capacity, options.buffers, self.extra if run.last > run.first else 0.0, options.joint),
            network.avoided,
            self.content(run),
            tuple(sorted(number[name] for name in close)),
            tuple(sorted((number[name], memory) for name, memory in where.items())),
        )
        known = _FRONTS.get(key)
        if known is not None:
            names = dict(zip(known[0], number, strict=True))
            return tuple(_renamed(candidate, names, steps[0] - known[1]) for candidate in known[2])
        around = MappingProxyType(dict(where))
        settings = Tiling(options.buffers, self.extra, around, self.capacity, not options.joint, network.avoided)
        choices = [network.choices[step] for step in steps]
        found = candidates(network.graph, network.platform, steps, choices, settings, near=close)
        if len(_FRONTS) >= _LIMIT:
            _FRONTS.clear()
        _FRONTS[key] = (tuple(number), steps[0], found)
        return found

    def content(self, run: NodeRange) -> Key:
        """The same for runs of the same nodes, types and kernels, connected in the same way."""
        if run not in self._contents:
            self._contents[run] = self._content(run)
        return self._contents[run]

    def _content(self, run: NodeRange) -> Key:
        steps = self.network.steps[run.first : run.last + 1]
        nodes = [self.network.graph.nodes[step] for step in steps]
        return (
            tuple(self.network.prices.contents.of(self.network.task(step)) for step in steps),
            connections(nodes, mentioned(nodes)),
            tuple(step - steps[0] for step in steps),
        )


def _renamed(candidate: Candidate, names: Mapping[str, str], shift: int) -> Candidate:
    """The candidate of an equal run elsewhere in a network."""

    def renamed() -> Group:
        group = candidate.group
        return replace(
            group,
            works=tuple(replace(work, step=work.step + shift) for work in group.works),
            buffers=tuple(replace(buffer, tensor=names[buffer.tensor]) for buffer in group.buffers),
            keep=MappingProxyType({names[tensor]: axis for tensor, axis in group.keep.items()}),
        )

    return replace(candidate, make=renamed)
