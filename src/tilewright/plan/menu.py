"""The candidates of every run of nodes, asked for lazily and kept by content.

Layers repeat in real networks: two runs whose nodes, types, kernels and surroundings are the same have the same
candidates, up to the names of tensors. They are computed once in a process.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from types import MappingProxyType

from tilewright.core.graph import RESULT, Attrs, Node
from tilewright.core.op import REGISTRY
from tilewright.core.plan import Choice
from tilewright.plan.network import Network, Run
from tilewright.plan.options import PlanOptions
from tilewright.plan.tiling.candidates import Candidate, Tiling, candidates

Key = tuple[Hashable, ...]
Enumerate = Callable[..., tuple[Candidate, ...]]

_FRONTS: dict[Key, tuple[tuple[str, ...], int, tuple[Candidate, ...]]] = {}
"""Tensor names in order of mention, the first step, and the candidates of runs seen before."""
_LIMIT = 20_000


class Menu:
    """Candidates of runs of one network."""

    def __init__(self, network: Network, options: PlanOptions, capacity: int) -> None:
        self.network, self.capacity = network, capacity
        self._options = options
        self.points = [mine.domain.points() for mine in network.members]
        """What each node computes."""
        self.extra = options.max_extra_macs * sum(self.points)
        """How many points each run may compute twice."""
        self._fronts: dict[tuple[Run, frozenset[str], frozenset[tuple[str, str]], float], tuple[Candidate, ...]] = {}
        self._content: dict[int, Key] = {}

    def front(self, run: Run, near: frozenset[str], sources: Mapping[str, str]) -> tuple[Candidate, ...]:
        """Pareto points of a run by growing bytes, cached. `near` and `sources` are by root."""
        names = self._names(run)
        close = frozenset(name for name in names if self.network.root(name) in near)
        where = {name: sources[self.network.root(name)] for name in names if name not in close}
        key = (run, close, frozenset(where.items()), self.extra)
        found = self._fronts.get(key)
        if found is None:
            found = self._fronts[key] = self._shared(run, close, where)
        return found

    def _names(self, run: Run) -> tuple[str, ...]:
        """Tensors that a run touches and does not keep to itself, in order of mention."""
        network = self.network
        inner = {m.output.tensor for m in network.members[run.first : run.last]}
        uses = (use.tensor for m in network.members[run.first : run.last + 1] for use in m.uses)
        return tuple(dict.fromkeys(name for name in uses if name not in inner))

    def _shared(self, run: Run, close: frozenset[str], where: Mapping[str, str]) -> tuple[Candidate, ...]:
        network, options = self.network, self._options
        steps = network.steps[run.first : run.last + 1]
        mentioned = self._mentioned(run)
        number = {name: index for index, name in enumerate(mentioned)}
        key = (
            network.platform.name,
            tuple(network.platform.engines.values()),
            tuple(network.platform.dmas.values()),
            # A node alone computes nothing twice.
            (self.capacity, options.buffers, self.extra if run.last > run.first else 0.0, options.joint),
            self.content(run),
            tuple(sorted(number[name] for name in close)),
            tuple(sorted((number[name], memory) for name, memory in where.items())),
        )
        known = _FRONTS.get(key)
        if known is not None:
            return tuple(
                _renamed(c, dict(zip(known[0], mentioned, strict=True)), steps[0] - known[1]) for c in known[2]
            )
        settings = Tiling(options.buffers, self.extra, MappingProxyType(dict(where)), self.capacity, not options.joint)
        choices = [network.choices[step] for step in steps]
        found = candidates(network.graph, network.platform, steps, choices, settings, near=close)
        if len(_FRONTS) >= _LIMIT:
            _FRONTS.clear()
        _FRONTS[key] = (mentioned, steps[0], found)
        return found

    def content(self, run: Run) -> Key:
        """The same for runs of the same nodes, types and kernels, connected in the same way."""
        steps = self.network.steps[run.first : run.last + 1]
        number = {name: index for index, name in enumerate(self._mentioned(run))}
        return (
            tuple(self._node(position) for position in range(run.first, run.last + 1)),
            tuple(tuple(number[name] for name in _mentions(self.network.graph.nodes[step])) for step in steps),
            tuple(step - steps[0] for step in steps),
        )

    def _mentioned(self, run: Run) -> tuple[str, ...]:
        steps = self.network.steps[run.first : run.last + 1]
        return tuple(dict.fromkeys(name for step in steps for name in _mentions(self.network.graph.nodes[step])))

    def _node(self, position: int) -> Key:
        found = self._content.get(position)
        if found is None:
            step = self.network.steps[position]
            found = self._content[position] = self._describe(self.network.graph.nodes[step], self.network.choices[step])
        return found

    def _describe(self, node: Node, choice: Choice) -> Key:
        """Everything about a node that its tiles depend on, but for names."""
        graph = self.network.graph
        known = [graph.constants.get(name) for name in node.inputs]
        operands = REGISTRY[node.op].operand_names(len(node.inputs))
        values = tuple(
            value.tobytes() if value is not None and operand in REGISTRY[node.op].compile_time else value is not None
            for operand, value in zip(operands, known, strict=True)
        )
        own = choice.kernel
        kernel = (own.path, own.function, own.source, own.cycles, own.scratch) if own else None
        return (
            (node.op, _attrs(node.attrs), values, kernel, tuple(sorted(choice.variables.items())), len(node.outputs)),
            tuple(graph.types[name] for name in _mentions(node) if name in graph.types),
            tuple((step.op, _attrs(step.attrs), _results(step.inputs), step.type) for step in node.epilogue),
        )


def _attrs(attrs: Attrs) -> Key:
    return tuple(sorted((name, repr(value)) for name, value in attrs.items()))


def _results(names: tuple[str, ...]) -> Key:
    return tuple(name if name.startswith(RESULT) else bool(name) for name in names)


def _mentions(node: Node) -> tuple[str, ...]:
    """Every tensor a node names, as often as it does, so that equal patterns mean equal connections."""
    extra = (name for step in node.epilogue for name in step.inputs if not name.startswith(RESULT))
    return (*node.inputs, *extra, *node.outputs)


def _renamed(candidate: Candidate, names: Mapping[str, str], shift: int) -> Candidate:
    """The candidate of an equal run elsewhere in a network."""
    group = candidate.group
    return replace(
        candidate,
        group=replace(
            group,
            works=tuple(replace(work, step=work.step + shift) for work in group.works),
            buffers=tuple(replace(buffer, tensor=names[buffer.tensor]) for buffer in group.buffers),
            keep=MappingProxyType({names[tensor]: axis for tensor, axis in group.keep.items()}),
        ),
    )
