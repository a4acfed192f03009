"""The Program: C functions and the calls that make up one inference. C is printed from it."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.core.graph import Array, TensorType
from tilewright.core.plan import Place


@dataclass(frozen=True)
class Pointer:
    """An argument that points at a tensor or at scratch bytes."""

    place: Place
    ctype: str
    const: bool


@dataclass(frozen=True)
class Literal:
    """A number passed by value, as C text."""

    text: str


@dataclass(frozen=True)
class Struct:
    """A parameter block of a fused epilogue, initialised at the call."""

    ctype: str
    fields: tuple[Pointer | Literal, ...]


Argument = Pointer | Literal | Struct


@dataclass(frozen=True)
class Function:
    """A C function (or a group that belongs together) as text; identical ones are emitted once."""

    name: str
    text: str


@dataclass(frozen=True)
class Invoke:
    """One call of a function."""

    function: str
    arguments: tuple[Argument, ...]
    comment: str


@dataclass(frozen=True)
class Constant:
    """Bytes that stay in flash: a weight as the kernels want it, at its offset among all constants."""

    name: str
    offset: int
    array: Array


@dataclass(frozen=True)
class Port:
    """An input or output of the network."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class Program:
    """Everything the C printer needs."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    functions: tuple[Function, ...]
    calls: tuple[Invoke, ...]
    constants: tuple[Constant, ...]
    constant_bytes: int
    arena_bytes: int
    headers: tuple[tuple[str, str], ...]
    """C headers by file name."""
