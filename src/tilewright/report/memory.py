"""Memory maps as pictures: time in steps from left to right, addresses from bottom to top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.core.plan import Buffer, Plan

WIDTH, HEIGHT, LOWEST = 1036, 340, 36
LEFT, TOP, BOTTOM, RIGHT = 74, 24, 24, 4
"""Pixels: the picture, the height of the arena in it, the least height of any map, the room around it for axes."""
NARROWEST = 4
"""Pixels of a step in a network with very many."""
COLOURS = 8


@dataclass(frozen=True)
class Block:
    """A buffer as a rectangle."""

    buffer: Buffer
    x: float
    y: float
    width: float
    height: float
    colour: int
    label: str


@dataclass(frozen=True)
class Tick:
    """A mark of an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class MemoryMap:
    """One piece of memory: the arena, or an output that is lent to other tensors until it is written."""

    name: str
    bytes: int
    width: float
    height: float
    step_width: float
    blocks: tuple[Block, ...]
    steps: tuple[Tick, ...]
    addresses: tuple[Tick, ...]
    bound: float | None
    """Where the line of the lower bound lies."""
    left: int
    top: int
    bottom: float
    right: float


def memory_maps(plan: Plan) -> tuple[MemoryMap, ...]:
    """The arena, and every output that lends memory, all on one scale; none where nothing is kept between layers."""
    scale = HEIGHT / max(plan.arena_bytes, 1)
    arena = [b for b in plan.buffers if b.place.space == "arena"]
    maps = [_map("", arena, plan.arena_bytes, plan, scale, plan.lower_bound)] if arena else []
    for index, name in enumerate(plan.graph.outputs):
        lent = [b for b in plan.buffers if b.place.space == "output" and b.place.index == index]
        if lent:
            maps.append(_map(name, lent, plan.graph.types[name].bytes, plan, scale, None))
    return tuple(maps)


def _map(name: str, buffers: Sequence[Buffer], size: int, plan: Plan, scale: float, bound: int | None) -> MemoryMap:
    count = max(buffer.last for buffer in plan.buffers)
    step = max(NARROWEST, (WIDTH - LEFT - RIGHT) / count)
    height = min(max(size * scale, LOWEST), HEIGHT)
    scale = height / size
    bottom = TOP + height
    ordered = sorted(buffers, key=lambda b: (b.first, b.place.offset, b.name))
    every = _round_up(-(-count // 16))
    lines = 4 if height > HEIGHT / 2 else 1
    return MemoryMap(
        name,
        size,
        round(LEFT + step * count + RIGHT, 1),
        round(bottom + BOTTOM, 1),
        round(step, 2),
        tuple(_block(buffer, index, step, scale, bottom) for index, buffer in enumerate(ordered)),
        tuple(Tick(round(LEFT + step * (i + 0.5), 1), str(i)) for i in range(0, count, every)),
        tuple(_address(size * i // lines, scale, bottom) for i in range(lines + 1)),
        None if bound is None else round(bottom - bound * scale, 1),
        LEFT,
        TOP,
        round(bottom, 1),
        round(LEFT + step * count, 1),
    )


def _block(buffer: Buffer, index: int, step: float, scale: float, bottom: float) -> Block:
    width, height = step * (buffer.last - buffer.first), buffer.bytes * scale
    room = int((width - 8) / 6.7)
    label = buffer.name if len(buffer.name) <= room else buffer.name[: room - 1] + "…" if room >= 5 else ""
    return Block(
        buffer,
        round(LEFT + step * buffer.first, 1),
        round(bottom - (buffer.place.offset + buffer.bytes) * scale, 1),
        round(width, 1),
        round(max(height, 1.0), 1),
        index % COLOURS,
        label if height >= 14 else "",
    )


def _address(value: int, scale: float, bottom: float) -> Tick:
    return Tick(round(bottom - value * scale, 1), human_bytes(value, exact=False))


def _round_up(value: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ..."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= value:
                return factor * power
        power *= 10


def human_bytes(value: int, *, exact: bool = True) -> str:
    """`13056` as `12.75 KiB`, or less exactly as `12.8 KiB`."""
    if value < 1024:
        return f"{value} B"
    unit = 1 if value < 1024**2 else 2 if value < 1024**3 else 3
    return f"{value / 1024**unit:.{4 if exact else 3}g} {('KiB', 'MiB', 'GiB')[unit - 1]}"
