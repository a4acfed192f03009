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
    """Where a tensor lives: the n-th input or output of the network, a constant, or bytes of the arena."""

    space: Space
    offset: int = 0
    """Index of the input or output; bytes into the arena."""


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
    """Bytes of the arena held from step `first` up to, not including, step `last`."""

    name: str
    bytes: int
    first: int
    last: int
    offset: int


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
