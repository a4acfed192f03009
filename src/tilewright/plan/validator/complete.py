"""The validator of what moves and runs read in far memories: it is made, and stored there, by then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from tilewright.core.moves import Move, Point
from tilewright.core.tiles import Use
from tilewright.plan.validator.groups import Opened, uses_of
from tilewright.plan.validator.memory import MemoryLayout
from tilewright.plan.validator.moves import Time, times


def incomplete(layout: MemoryLayout) -> Iterator[str]:
    """What is taken before it is there."""
    stores: dict[str, list[Move]] = {}
    for move in layout.schedule.moves:
        if move.kind == "store":
            tensor = layout.groups[move.group].group.buffers[move.buffer].tensor
            stores.setdefault(layout.root(tensor), []).append(move)
    yield from _copies(layout, stores)
    for opened in layout.groups:
        for position, use in uses_of(opened):
            if not use.writes and use.type.bytes and use.tensor not in opened.replay.inner:
                name = f"{opened.where(position)}: '{use.tensor}'"
                yield from (f"{name} {reason}" for reason in _read(layout, stores, opened, position, use))


def _copies(layout: MemoryLayout, stores: Mapping[str, list[Move]]) -> Iterator[str]:
    moves = {move.buffer: move for move in layout.schedule.moves if move.kind == "stage"}
    for number, stage in enumerate(layout.schedule.stages):
        move, name = moves.get(number), f"copy of '{stage.tensor}' in {stage.place.space}"
        if move is None or (move.issue.group, move.wait) != (stage.start, Point(stage.first, "entry")):
            yield f"{name}: no move fills it from group {stage.start} to the entry of group {stage.first}"
        elif not _ready(layout, stores, stage.tensor, layout.moved.issued(move, 0)[0]):
            yield f"{name}: started at {move.issue}, but is not there by then"


def _read(
    layout: MemoryLayout, stores: Mapping[str, list[Move]], opened: Opened, position: int, use: Use
) -> Iterator[str]:
    index, number = opened.bound(position, use), opened.number
    if index is None:
        begun = times(layout.moved.runs(number)[position].start, 0, 1)[0]
        if not _ready(layout, stores, use.tensor, begun) and not (
            _queued(layout, number, position, use) or _awaited(layout, opened, use)
        ):
            yield "is read, but is not there by then"
        return
    staged = layout.stage(number, use)
    for move in layout.moved.of(number, index):
        issued = layout.moved.issued(move, int(move.tiles == "rest"))[0]
        there = issued >= (staged.first, -inf, 0) if staged else _ready(layout, stores, use.tensor, issued)
        if not there:
            yield f"is loaded at {move.issue}, but is not there by then"


def _queued(layout: MemoryLayout, number: int, position: int, use: Use) -> bool:
    """Whether the same engine, which does one thing after the other, makes a tensor first."""
    made = layout.made(use.tensor)
    run, maker = layout.moved.runs(number)[position], layout.moved.runs(made)[-1]
    first, then = (times(each.start, 0, 1)[0] for each in (maker, run))
    return maker.wait.group > made and run.wait.group > number and maker.engine == run.engine and first <= then


def _awaited(layout: MemoryLayout, opened: Opened, use: Use) -> bool:
    """Whether a node itself awaits the engine that makes a tensor, which stays where it is."""
    maker = layout.moved.runs(layout.made(use.tensor))[-1]
    return layout.moved.by_itself(opened.number, maker.wait) and use.key in opened.awaits


def _ready(layout: MemoryLayout, stores: Mapping[str, list[Move]], tensor: str, time: Time) -> bool:
    """Whether a tensor is made, and stored, by some time."""
    made = layout.made(tensor)
    moves = stores.get(layout.root(tensor), [])
    return made < 0 or (
        layout.moved.end(made) < time[0] and all(layout.moved.awaited(move, 0)[1] <= time for move in moves)
    )
