"""The Plan: for each node its engine and kernel, for each tensor its memory, address and lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from tilewright.core.graph import Graph
from tilewright.core.kernel import Kernel
from tilewright.core.platform import Platform

Space = Literal["input", "output", "constant", "arena"]


@dataclass(frozen=True)
class Place:
    """Where a tensor lives: bytes of the arena, of an input or output of the network, or among the constants.

    Until it is written, the memory of an output is lent to other tensors, so a place there may have an offset too.
    """

    space: Space
    offset: int = 0
    """In bytes."""
    index: int = 0
    """Which input or output."""


@dataclass(frozen=True)
class Rejection:
    """Why a kernel was not taken for a node."""

    kernel: str
    reason: str


@dataclass(frozen=True)
class Choice:
    """How one node is computed: by a kernel, or by the loop nest printed from its access maps (`kernel` None)."""

    engine: str
    kernel: Kernel | None
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The element type taken for each type variable of the kernel."""
    scratch: int = 0
    rejected: tuple[Rejection, ...] = ()


@dataclass(frozen=True)
class Buffer:
    """Bytes held from step `first` up to, not including, step `last`, in the arena or lent by an output."""

    name: str
    bytes: int
    first: int
    last: int
    place: Place


@dataclass(frozen=True)
class Plan:
    """A network placed on a platform. Node i of the graph runs at step i."""

    graph: Graph
    platform: Platform
    choices: tuple[Choice, ...]
    places: Mapping[str, Place]
    buffers: tuple[Buffer, ...]
    scratch: Mapping[int, int]
    """Arena offset of the scratch bytes of the steps that need some."""
    arena_bytes: int
    lower_bound: int
    """No allocation of this order needs fewer bytes."""
    optimal: bool
