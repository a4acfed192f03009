"""Transfers that go together: neighbours on both sides are one, and each channel is awaited once.

To start a transfer, or to look whether one is complete, takes what drives some dozens of cycles, and cores wait for it
more often than for bytes. Constants are laid out as they lie where they are loaded, so that many are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from tilewright.codegen.lowering import Lowering
from tilewright.core.expr import Size, plain
from tilewright.core.moves import Move
from tilewright.core.program import (
    AwaitTransfers,
    Copy,
    Driven,
    For,
    If,
    OnCores,
    Pointer,
    Routine,
    StartEngine,
    Statement,
)


def lay_out(groups: Sequence[Lowering], moves: Iterable[Move]) -> None:
    """Gives constants their places, in the order of the moves that load them."""
    for move in moves:
        if move.kind == "load" and move.tiles == "first":
            group = groups[move.group]
            group.at_home(*group.read[move.buffer])


def joined(routines: Iterable[Routine]) -> tuple[Routine, ...]:
    """The same routines with fewer transfers and waits."""
    return tuple(replace(routine, body=_joined(routine.body)) for routine in routines)


def _joined(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for kind, run in groupby(statements, type):
        if kind is Copy:
            found += _copies(s for s in run if isinstance(s, Copy))
        elif kind is AwaitTransfers:
            found += dict.fromkeys(run)
        else:
            found += map(_inside, run)
    return tuple(found)


def _inside(statement: Statement) -> Statement:
    match statement:
        case If(body=body) | For(body=body) | Driven(body=body):
            return replace(statement, body=_joined(body))
        case OnCores(beside=beside) | StartEngine(beside=beside):
            return replace(statement, beside=_joined(beside))
        case _:
            return statement


def _copies(copies: Iterable[Copy]) -> list[Copy]:
    found: list[Copy] = []
    for copy in copies:
        if found and _adjoin(found[-1], copy):
            found[-1] = replace(found[-1], bytes=plain(found[-1].bytes + copy.bytes))
        else:
            found.append(copy)
    return found


def _adjoin(one: Copy, other: Copy) -> bool:
    """Whether a run of bytes goes on with another one of its channel, on both sides."""
    sides = ((one.to, other.to), (one.source, other.source))
    return (
        one.channel == other.channel
        and not (one.counts or other.counts)
        and all(
            (a.place.space, a.place.index, a.const) == (b.place.space, b.place.index, b.const)
            and _address(a) + one.bytes == _address(b)
            for a, b in sides
        )
    )


def _address(pointer: Pointer) -> Size:
    return plain(pointer.place.offset + pointer.offset)
