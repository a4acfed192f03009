"""What a tiled plan does: moves of tensors between memories, and runs of nodes, at points of its groups."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Turn = Literal["entry", "first", "each", "last", "exit"]
"""Before the loop of a group; at the turn of its first step, of every step, of the last one; behind the loop."""
Side = Literal["before", "now", "beside", "inside", "ending", "after"]
"""Of the runs of a turn: before them, one of them, beside the first that runs at every step, beside the only one,
which awaits it itself, beside the last, after."""
Tiles = Literal["all", "first", "rest", "but last", "last"]
"""Of which steps of a group a move takes what they touch."""


class Point(Struct, frozen=True):
    """A moment of a group. What is done for each step is done `shift` turns behind the turn of that step."""

    group: int
    turn: Turn
    side: Side = "before"
    shift: int = 0

    def __str__(self) -> str:
        turn = f"step{self.shift:+d}" if self.turn == "each" and self.shift else self.turn.replace("each", "step")
        return f"{self.group} {turn}" + ("" if self.turn in ("entry", "exit") else f" {self.side}")


class Move(Struct, frozen=True):
    """A tensor, or its part for each step of a group, on its way from one memory to another."""

    kind: Literal["load", "store", "stage"]
    group: int
    """Whose steps it is for; of a stage, the first that reads it."""
    buffer: int
    """Which buffer of the group it fills or empties; of a stage, which one."""
    tiles: Tiles
    issue: Point
    wait: Point
    """Where the last of it is awaited; of loads for each step, where that step's is."""
    reuse: Point | None = None
    """Where what was stored from a slot is awaited, as it is written again."""
    behind: tuple[int, ...] = ()
    """Buffers of results with bytes of what it loads: what is stored from there is awaited before."""
    joins: bool = False
    """Whether it is part of the transfer of the move before it: constants that lie in a row on both sides."""


class Run(Struct, frozen=True):
    """A node of a group at each of its steps."""

    group: int
    position: int
    engine: str
    start: Point
    """In a later group where an engine beside the cores computes a group of one step while these do later ones."""
    wait: Point
    """Where it is done; the same as `start` where nothing else is done before that."""
    carries: bool
    """Whether it runs at every step, so that something can be done beside it."""


class Residency(Struct, frozen=True):
    """Bytes of a memory that hold a tensor, or tiles of it in slots, from one group to another.

    A tensor may have several at a time: whole in a far memory, tile by tile in that of the engine.
    """

    tensor: str
    pack: str
    """How a constant is reordered there."""
    space: str
    """The name of a memory, or `input`, `output`, `constant` or `state` with their number in `index`."""
    offset: int
    bytes: int
    """Of one slot."""
    slots: int
    since: int
    """The first group; -1 where it is there from the beginning."""
    until: int
    """The last group; their number where it is there in the end."""
    index: int = 0
    inside: int = -1
    """The residency of a result in whose bytes it lies, each element where the result has it."""
