"""What passes share: a graph being rewritten node by node, in topological order.

A rule looks at one node and at what lies above it, emits replacements and says so; nodes nobody needs any more are
dropped at the end. As the nodes above have been rewritten already, one sweep carries a change as far down as it goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tilewright.core.graph import Array, Attr, FreshNames, Graph, Node, TensorType, type_of_array
from tilewright.core.op import REGISTRY, Call, call_of
from tilewright.passes.dead_code import live


class Edit:
    """A graph while it is rewritten. Nodes that have been passed are found by `producer`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.types: dict[str, TensorType] = dict(graph.types)
        self.constants: dict[str, Array] = dict(graph.constants)
        self._results = frozenset(graph.outputs)
        self._names = FreshNames(graph)
        self._producers: dict[str, Node] = {}
        self._nodes: list[Node] = []
        self._aliases: dict[str, str] = {}
        self._uniform: dict[str, float | None] = {}
        self._uses = Counter(name for node in graph.nodes for name in node.reads)
        self._uses.update(graph.outputs)
        self._readers: dict[str, list[Node]] | None = None
        self._origins: dict[str, Node] | None = None
        self._current = ""

    def shape(self, name: str) -> tuple[int, ...]:
        return self.types[name].shape

    def producer(self, name: str, *ops: str) -> Node | None:
        """The node that makes a tensor, if it is one of `ops` (any where none is named) without an epilogue."""
        node = self._producers.get(name)
        return node if node and not node.epilogue and (not ops or node.op in ops) else None

    def origin(self, name: str) -> Node | None:
        """The node that makes a tensor: as rewritten where that has been passed, else as it was."""
        if name in self._producers:
            return self._producers[name]
        if self._origins is None:
            self._origins = self.graph.producer()
        return self._origins.get(name)

    def is_result(self, name: str) -> bool:
        return name in self._results

    def single(self, name: str) -> bool:
        """Whether one node alone reads a tensor, so that it vanishes with that node."""
        return self._uses[name] == 1 and name not in self._results

    def readers(self, name: str) -> list[Node]:
        """The nodes of the graph before this pass that read a tensor of that graph."""
        if self._readers is None:
            self._readers = self.graph.users()
        return self._readers.get(name, [])

    def uniform(self, name: str) -> float | None:
        """The number a constant holds in all its elements; None for other tensors."""
        if name not in self._uniform:
            array = self.constants.get(name)
            self._uniform[name] = None if array is None else _uniform(array)
        return self._uniform[name]

    def ints(self, name: str) -> tuple[int, ...] | None:
        """The values of a constant list of integers; None where it is not known."""
        array = self.constants.get(name)
        return None if array is None else tuple(int(value) for value in array.reshape(-1))

    def call(self, node: Node) -> Call:
        """The call of a node: types, defaults of attributes, known values."""
        return call_of(
            REGISTRY[node.op],
            [self.types[name] if name else None for name in node.inputs],
            node.attrs,
            values=[self.constants.get(name) for name in node.inputs],
            name=node.label,
            wanted=len(node.outputs),
        )

    def constant(self, array: Array, hint: str) -> str:
        """A new constant."""
        name = self._names.fresh(hint)
        self.constants[name] = array
        self.types[name] = type_of_array(array)
        return name

    def integers(self, values: Iterable[int], hint: str) -> str:
        """A new list of integers, as shapes and axes are."""
        return self.constant(np.array(list(values), np.int64), hint)

    def emit(self, op: str, inputs: Sequence[str], output: str = "", **attributes: Attr) -> str:
        """Adds a node with one output, whose type is inferred; returns the output's name."""
        (result,) = self.emit_all(op, inputs, (output or None,), MappingProxyType(attributes))
        return result

    def emit_all(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str | None], attributes: Mapping[str, Attr]
    ) -> tuple[str, ...]:
        """Adds a node; an output that is None gets a fresh name, one named "" is left out."""
        fresh = f"{self._current}_{op}"
        names = tuple(self._names.fresh(fresh) if output is None else output for output in outputs)
        node = Node(op, tuple(map(self._resolve, inputs)), names, MappingProxyType(dict(attributes)), self._current)
        inferred = self.call(node).outputs
        for name, given, kind in zip(names, outputs, inferred, strict=False):
            if given and self.types[given] != kind:
                raise ValueError(f"{op} would change the type of '{given}' from {self.types[given]} to {kind}")
            if name:
                self.types[name] = kind
        self._append(node)
        self._uses.update(node.reads)
        return names

    def reshape(self, name: str, shape: Sequence[int], output: str = "") -> str:
        """A view of a tensor under another shape; a constant is reshaped at once."""
        known = self.constants.get(name)
        if known is not None and not output:
            return self.constant(known.reshape(shape), f"{name}_view")
        keeps_zero = {"allowzero": 1} if 0 in shape else {}
        target = self.integers(shape, f"{output or self._current}_shape")
        return self.emit("Reshape", (name, target), output, **keeps_zero)

    def transpose(self, name: str, perm: Sequence[int], output: str = "") -> str:
        """A tensor with its axes in another order; a constant is transposed at once."""
        known = self.constants.get(name)
        if known is not None and not output:
            return self.constant(np.ascontiguousarray(np.transpose(known, perm)), f"{name}_turned")
        return self.emit("Transpose", (name,), output, perm=tuple(perm))

    def alias(self, old: str, new: str) -> bool:
        """Makes every reader of `old` read `new` instead; False where an output's name forbids it."""
        new = self._resolve(new)
        if old not in self._results:
            self._aliases[old] = new
            self._uses[new] += self._uses[old]
            return True
        if new not in self._producers or new in self._results or self.types[old] != self.types[new]:
            return False
        # An output keeps its name: the tensor it equals takes that name.
        self._aliases[new] = old
        self._producers[old] = self._producers[new]
        self._uses[old] += self._uses[new]
        return True

    def run(self, rules: Mapping[str, Rule]) -> Graph:
        """Applies the rule of each node's operator once, from the inputs down."""
        for node in self.graph.nodes:
            current = self._renamed(node)
            self._current = node.label
            rule = rules.get(node.op)
            if rule is not None and not node.epilogue and rule(self, current):
                self._release(current.reads)
            else:
                self._append(current)
        return self._finish()

    def _append(self, node: Node) -> None:
        self._nodes.append(node)
        self._producers.update(dict.fromkeys(node.made, node))

    def _release(self, names: Iterable[str]) -> None:
        """Counts readers that are gone, and those of producers that thereby go too."""
        waiting = list(names)[::-1]
        while waiting:
            name = waiting.pop()
            self._uses[name] -= 1
            node = self._producers.get(name)
            if node and not any(self._uses[output] or output in self._results for output in node.made):
                waiting += node.reads[::-1]

    def _resolve(self, name: str) -> str:
        while name in self._aliases:
            name = self._aliases[name]
        return name

    def _renamed(self, node: Node) -> Node:
        """A node under the names that its tensors have now."""
        if self._aliases.keys().isdisjoint(node.reads) and self._aliases.keys().isdisjoint(node.outputs):
            return node
        return node.rename({name: self._resolve(name) for name in (*node.reads, *node.outputs)})

    def _finish(self) -> Graph:
        kept = live([self._renamed(node) for node in self._nodes], self.graph.outputs)
        types = {name: kind for name, kind in self.types.items() if name not in self.graph.types}
        constants = {name: array for name, array in self.constants.items() if name not in self.graph.constants}
        return self.graph.with_nodes(kept, types=types, constants=constants)


Rule = Callable[[Edit, Node], bool]
"""Looks at a node; returns True where it emitted a replacement (or an alias) of its outputs."""


def rewrite(graph: Graph, rules: Mapping[str, Rule]) -> Graph:
    """The graph after one sweep of rules by operator; the same graph where no node has one."""
    if not any(node.op in rules for node in graph.nodes):
        return graph
    return Edit(graph).run(rules)


def _uniform(array: Array) -> float | None:
    if not array.size or array.dtype.kind not in "iufbV":
        return None
    flat = array.reshape(-1)
    if flat[0] != flat[-1] or not bool(np.all(flat == flat[0])):
        return None
    return float(flat[0])
