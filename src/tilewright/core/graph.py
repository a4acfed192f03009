"""The Graph: operators and tensors with types. Frozen; every pass returns a new one."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.base.dtype import DType, dtype_of
from tilewright.errors import TilewrightError

Array = np.ndarray[Any, Any]
Attr = int | float | str | bool | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | None
Attrs = Mapping[str, Attr]


class TensorType(Struct, frozen=True):
    """Element type and static shape."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def with_shape(self, shape: Iterable[int]) -> TensorType:
        return TensorType(self.dtype, tuple(int(extent) for extent in shape))

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    __repr__ = __str__


class Result(Struct, frozen=True):
    """What an epilogue step reads of its own node: 0 is the result of the operator, 1 that of the first step, etc.

    It is no string, because every string may be the name of a tensor.
    """

    number: int

    def __str__(self) -> str:
        return f"@{self.number or ''}"


class Step(Struct, frozen=True):
    """One element-wise operator fused behind a node: computed on each result before it is stored."""

    op: str
    inputs: tuple[str | Result, ...]
    """Names of tensors, the empty one for an absent operand, and results computed before."""
    type: TensorType
    attrs: Attrs = field(default_factory=lambda: MappingProxyType({}))

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors it reads, as often as it does, absent operands included."""
        return tuple(name for name in self.inputs if isinstance(name, str))

    def rename(self, names: Mapping[str, str]) -> Step:
        """The same step reading other tensors."""
        return replace(self, inputs=tuple(names.get(i, i) if isinstance(i, str) else i for i in self.inputs))

    def moved(self, shift: int) -> Step:
        """The same step with so many more steps before it."""
        inputs = (Result(i.number + shift) if isinstance(i, Result) else i for i in self.inputs)
        return replace(self, inputs=tuple(inputs))


class Node(Struct, frozen=True, dict=True):
    """An operator applied to tensors, followed by the element-wise `epilogue` on its first output.

    An absent optional input and an output that is left out are the empty string. With an epilogue, the output tensor
    has the type of the last step.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Attrs = field(default_factory=lambda: MappingProxyType({}))
    name: str = ""
    epilogue: tuple[Step, ...] = ()

    @property
    def label(self) -> str:
        """What messages and reports call it. Nodes may share a name, or have none."""
        return self.name or next(iter(self.made), self.op)

    @cached_property
    def made(self) -> tuple[str, ...]:
        """The tensors it makes. No other node makes the first of them, so that this tells nodes apart."""
        return tuple(name for name in self.outputs if name)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Every tensor it reads, epilogue operands included, in order, each once."""
        steps = (name for step in self.epilogue for name in step.tensors)
        return tuple(dict.fromkeys(name for name in (*self.inputs, *steps) if name))

    def rename(self, names: Mapping[str, str]) -> Node:
        """The same node reading other tensors; outputs are renamed too where `names` has them."""
        return replace(
            self,
            inputs=tuple(names.get(i, i) for i in self.inputs),
            outputs=tuple(names.get(o, o) for o in self.outputs),
            epilogue=tuple(step.rename(names) for step in self.epilogue),
        )


class State(Struct, frozen=True, eq=False):
    """A tensor that lives between runs: what it is called, and its value before the first run."""

    name: str
    initial: Array


class Bound(Struct, frozen=True):
    """A size that is known when the network runs: the value of the input of this name, clamped to what it may be."""

    name: str
    low: int
    high: int
    number: int

    def clamped(self, value: int) -> int:
        return min(max(value, self.low), self.high)

    @property
    def variable(self) -> str:
        """What code calls it."""
        return f"size_{self.number}"


class Graph(Struct, frozen=True, dict=True):
    """A network: nodes in a topological order, the type of every tensor, the values of the constant ones.

    The last inputs and outputs are those of `states`, in their order: a run reads the value that the run before has
    left, everywhere, and leaves another one. Types say the largest extents; see `core.sizes` for smaller ones.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    types: Mapping[str, TensorType]
    constants: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    states: tuple[State, ...] = ()
    bounds: tuple[Bound, ...] = ()
    open: Mapping[str, tuple[tuple[int, str, int], ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Inputs that may be shorter than their type: axis, name of the size, and how much longer than that the axis is."""

    @cached_property
    def answers(self) -> dict[int, tuple[Node, Any]]:
        """What was worked out about nodes, which are here so that they keep their identity; see `core.op.call_node`."""
        return {}

    @property
    def fed(self) -> tuple[str, ...]:
        """The inputs that callers give."""
        return self.inputs[: len(self.inputs) - len(self.states)]

    @property
    def given(self) -> tuple[str, ...]:
        """The outputs that callers get."""
        return self.outputs[: len(self.outputs) - len(self.states)]

    @property
    def updates(self) -> dict[str, str]:
        """For the tensor that has the old value of a state, the one that has the new value."""
        count = len(self.states)
        return dict(zip(self.inputs[-count:], self.outputs[-count:], strict=True)) if count else {}

    def producer(self) -> dict[str, Node]:
        """Which node makes each tensor."""
        return {output: node for node in self.nodes for output in node.made}

    def users(self) -> dict[str, list[Node]]:
        """Which nodes read each tensor."""
        users: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.reads:
                users.setdefault(name, []).append(node)
        return users

    def type(self, name: str) -> TensorType:
        return self.types[name]

    def constant(self, name: str) -> Array | None:
        return self.constants.get(name)

    def with_nodes(
        self,
        nodes: Sequence[Node],
        *,
        types: Mapping[str, TensorType] | None = None,
        constants: Mapping[str, Array] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> Graph:
        """A graph with other nodes and additional types and constants; what nothing refers to any more is dropped."""
        kept = tuple(nodes)
        results = tuple(outputs) if outputs is not None else self.outputs
        all_constants = {**self.constants, **(constants or {})}
        all_types = {**self.types, **(types or {}), **{n: type_of_array(a) for n, a in (constants or {}).items()}}
        alive = {*self.inputs, *results}
        for node in kept:
            alive.update(node.reads)
            alive.update(node.made)
        return replace(
            self,
            nodes=kept,
            outputs=results,
            types=MappingProxyType({n: t for n, t in all_types.items() if n in alive}),
            constants=MappingProxyType({n: a for n, a in all_constants.items() if n in alive}),
        )


def type_of_array(array: Array) -> TensorType:
    return TensorType(dtype_of(array), tuple(array.shape))


def attrs(**values: Attr) -> Attrs:
    """Frozen attributes."""
    return MappingProxyType(values)


class FreshNames:
    """Gives names that no tensor of a graph has yet."""

    def __init__(self, graph: Graph) -> None:
        self._taken = set(graph.types)

    def fresh(self, hint: str) -> str:
        name, count = hint, 1
        while name in self._taken:
            name, count = f"{hint}_{count}", count + 1
        self._taken.add(name)
        return name


def topological(nodes: Sequence[Node], available: Iterable[str]) -> tuple[Node, ...]:
    """The nodes in an order in which every tensor is made before it is read; stable for an already ordered list."""
    known = set(available)
    made = {output for node in nodes for output in node.outputs}
    waiting: dict[str, list[int]] = {}
    missing = [0] * len(nodes)
    ready: list[int] = []
    for index, node in enumerate(nodes):
        needs = {name for name in node.reads if name not in known and name in made}
        missing[index] = len(needs)
        for name in needs:
            waiting.setdefault(name, []).append(index)
        if not needs:
            ready.append(index)
    heapq.heapify(ready)
    order: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        order.append(node)
        for output in node.outputs:
            for index in waiting.pop(output, ()):
                missing[index] -= 1
                if missing[index] == 0:
                    heapq.heappush(ready, index)
    if len(order) < len(nodes):
        stuck = [n for n, m in zip(nodes, missing, strict=True) if m > 0]
        raise TilewrightError(
            "cyclic-graph",
            f"{len(stuck)} nodes wait for each other in a cycle",
            reasons=[f"{n.op} '{n.label}' needs {', '.join(n.reads)}" for n in stuck[:8]],
            help="a network must be acyclic: unroll the recurrence or use a recurrent operator",
        )
    return tuple(order)
