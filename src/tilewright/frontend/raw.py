"""A network as the file states it, freed of protobuf: what the importer works through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from msgspec import Struct, field

from tilewright.base.dtype import DType
from tilewright.core.graph import Array, Attr, Node, topological

NEWEST = 10_000
"""The opset of nodes that are already in the newest form."""


class Ref(Struct, frozen=True):
    """Inside a function: the attribute of that name of the calling node."""

    name: str


class Unsupported(Struct, frozen=True):
    """A type or value of the file that nothing here can hold; `what` says which."""

    what: str


class Subgraph(Struct, frozen=True, eq=False, dict=True):
    """A graph in an attribute (a branch of If)."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[RawNode, ...]
    initialisers: Mapping[str, Array | Unsupported]
    source: object
    """The message it was read from: some definitions of the standard are made from it."""

    @cached_property
    def free(self) -> frozenset[str]:
        """Names it takes from around it."""
        made = {*self.inputs, *self.initialisers, *(o for node in self.nodes for o in node.outputs)}
        return frozenset({*self.outputs, *(n for node in self.nodes for n in node.reads)} - made)


RawAttr = Attr | Array | Ref | Subgraph | Unsupported
RawAttrs = Mapping[str, RawAttr]


class RawNode(Struct, frozen=True, eq=False, dict=True):
    """A node of the file; `version` is the opset its meaning comes from."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: RawAttrs = field(default_factory=lambda: MappingProxyType({}))
    name: str = ""
    domain: str = ""
    version: int = NEWEST

    @property
    def label(self) -> str:
        return self.name or next((o for o in self.outputs if o), self.op)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        inner = [n for value in self.attrs.values() if isinstance(value, Subgraph) for n in sorted(value.free)]
        return tuple(dict.fromkeys(n for n in (*self.inputs, *inner) if n))


class Function(Struct, frozen=True, eq=False):
    """A function of the model or of the standard: formal inputs, outputs and attribute defaults."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[RawNode, ...]
    defaults: RawAttrs


class Declared(Struct, frozen=True):
    """A graph input as declared: element type and extents, open ones by name or None; no rank gives no `shape`."""

    name: str
    dtype: DType | Unsupported
    shape: tuple[int | str | None, ...] | None


class RawModel(Struct, frozen=True, eq=False):
    """The whole file."""

    name: str
    inputs: tuple[Declared, ...]
    outputs: tuple[str, ...]
    nodes: tuple[RawNode, ...]
    initialisers: Mapping[str, Array | Unsupported]
    functions: Mapping[tuple[str, str], Function]
    ranks: Mapping[str, int]
    """Ranks that the file states for tensors other than inputs."""
    exact_types: bool
    """Declared element types are meant as they stand (files written by `save`)."""
    defaults: tuple[Declared, ...] = ()
    """Inputs that have a value among the initialisers."""
    states: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Inputs that are states, with the outputs that are their new values, where the file says so."""


def ordered(nodes: Sequence[RawNode], available: Iterable[str]) -> tuple[RawNode, ...]:
    """The nodes in a topological order."""
    stand_ins = [Node(n.op, n.reads, tuple(o for o in n.outputs if o), name=n.label) for n in nodes]
    original = {id(stand_in): node for stand_in, node in zip(stand_ins, nodes, strict=True)}
    return tuple(original[id(stand_in)] for stand_in in topological(stand_ins, available))


def alive(nodes: Sequence[RawNode], outputs: Iterable[str]) -> tuple[RawNode, ...]:
    """The nodes that contribute to `outputs`, with outputs that nobody reads blanked; order kept."""
    maker = {output: node for node in nodes for output in node.outputs if output}
    read = set(outputs)
    waiting, kept = list(read), set[int]()
    while waiting:
        node = maker.get(waiting.pop())
        if node is None or id(node) in kept:
            continue
        kept.add(id(node))
        waiting += [name for name in node.reads if name not in read]
        read.update(node.reads)
    return tuple(_blank_unread(node, read) for node in nodes if id(node) in kept)


def _blank_unread(node: RawNode, read: set[str]) -> RawNode:
    if all(output in read for output in node.outputs):
        return node
    outputs = tuple(output if output in read else "" for output in node.outputs)
    return RawNode(node.op, node.inputs, outputs, node.attrs, node.name, node.domain, node.version)
