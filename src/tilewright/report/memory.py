"""Memory maps as pictures: time from left to right, addresses from bottom to top.

Time is counted in steps of the network, in tiled plans in groups of layers.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.plan import Buffer, Place, Plan, Schedule
from tilewright.report.groups import group_span, workspace

WIDTH, HEIGHT, LOWEST = 1036, 340, 36
LEFT, TOP, BOTTOM, RIGHT = 74, 24, 24, 4
"""Pixels: the picture, the height of the arena in it, the least height of any map, the room around it for axes."""
NARROWEST = 4
"""Pixels of a step in a network with very many."""
COLOURS = 8
MOST = 2000
"""Rectangles of the memory maps of a tiled plan; beyond, the tiles of a group are one."""


class BufferBar(Struct, frozen=True):
    """A buffer as a rectangle."""

    buffer: Buffer
    x: float
    y: float
    width: float
    height: float
    colour: int
    label: str


class Tick(Struct, frozen=True):
    """A mark of an axis."""

    at: float
    text: str


class MemoryMap(Struct, frozen=True):
    """One piece of memory: the arena, an output that is lent to other tensors until it is written, or a memory."""

    name: str
    title: str
    """What stands above the picture; "" for nothing."""
    unit: str
    """Of time."""
    bytes: int
    width: float
    height: float
    step_width: float
    blocks: tuple[BufferBar, ...]
    steps: tuple[Tick, ...]
    addresses: tuple[Tick, ...]
    bound: float | None
    """Where the line of the lower bound lies."""
    left: int
    top: int
    bottom: float
    right: float


def memory_maps(plan: Plan) -> tuple[MemoryMap, ...]:
    """Every memory of a tiled plan, else the arena and every output that lends memory, on one scale.

    There is none where nothing is kept between layers.
    """
    kept = [b for b in plan.buffers if b.place.space == "state"]
    where = "" if plan.schedule is None else f" in {plan.schedule.states}"
    title = f"States{where}, kept from run to run: {plan.state_bytes:,} bytes"
    count = len(plan.graph.nodes) if plan.schedule is None else len(plan.schedule.groups)
    whole = [replace(b, last=count) for b in kept]
    scale = HEIGHT / max(plan.state_bytes, 1)
    unit = "step" if plan.schedule is None else "group"
    states = [_map("the states", title, unit, whole, plan.state_bytes, count, scale, None)] if kept else []
    if plan.schedule is not None:
        return (*_tiled_maps(plan, plan.schedule), *states)
    scale = HEIGHT / max(plan.arena_bytes, 1)
    count = max((buffer.last for buffer in plan.buffers), default=0)
    arena = [b for b in plan.buffers if b.place.space == "arena"]
    maps = [_map("the arena", "", "step", arena, plan.arena_bytes, count, scale, plan.lower_bound)] if arena else []
    for index, name in enumerate(plan.graph.given):
        lent = [b for b in plan.buffers if b.place.space == "output" and b.place.index == index]
        if lent:
            title = f"Memory of the output {name}, lent until the output is written:"
            maps.append(_map(name, title, "step", lent, plan.graph.types[name].bytes, count, scale, None))
    return (*maps, *states)


def _tiled_maps(plan: Plan, schedule: Schedule) -> tuple[MemoryMap, ...]:
    held = _whole(plan, schedule) + _workspaces(plan, schedule)
    if len(held) > MOST:
        held = _whole(plan, schedule) + _workspaces(plan, schedule, merged=True)
    maps: list[MemoryMap] = []
    for memory in plan.platform.memories.values():
        mine = [buffer for buffer in held if buffer.place.space == memory.name]
        size = max((buffer.place.offset + buffer.bytes for buffer in mine), default=0)
        if size:
            title = f"{memory.name}: {schedule.used[memory.name]:,} bytes needed"
            title += f" of {memory.bytes:,}" if memory.bytes is not None else ""
            title += ", with inputs, outputs and weights" if memory.name == schedule.home else ""
            count = len(schedule.groups)
            maps.append(_map(memory.name, title, "group", mine, size, count, HEIGHT / size, None))
    return tuple(maps)


def _whole(plan: Plan, schedule: Schedule) -> list[Buffer]:
    """Whole tensors and copies of them, over groups."""
    tensors = [
        Buffer(buffer.name, buffer.bytes, *group_span(schedule, buffer.first, buffer.last), buffer.place)
        for buffer in plan.buffers
    ]
    stages = [
        Buffer(f"copy of {stage.tensor}", stage.bytes, stage.start, stage.last + 1, stage.place)
        for stage in schedule.stages
    ]
    return [buffer for buffer in (*tensors, *stages) if buffer.last > buffer.first]


def _workspaces(plan: Plan, schedule: Schedule, *, merged: bool = False) -> list[Buffer]:
    """Tile buffers, slot by slot, and scratch of each group; `merged` as one block per group."""
    memory = plan.platform.engines[schedule.engine].memory
    found: list[Buffer] = []

    def add(name: str, offset: int, size: int, group: int) -> None:
        if size:
            found.append(Buffer(name, size, group, group + 1, Place(memory, offset)))

    for index, group in enumerate(schedule.groups):
        if merged:
            parts = workspace(group, schedule.cores)
            start, stop = min((a for a, _ in parts), default=0), max((b for _, b in parts), default=0)
            add(f"tiles of group {index}", start, stop - start, index)
            continue
        for buffer in (buffer for buffer in group.buffers if buffer.within < 0):
            for slot in range(buffer.slots):
                which = f", slot {slot} of {buffer.slots}" if buffer.slots > 1 else ""
                kept = ", lines kept" if buffer.tensor in group.keep else ""
                add(f"{buffer.tensor}, tile{which}{kept}", buffer.offset + slot * buffer.bytes, buffer.bytes, index)
        for work in group.works:
            name = plan.graph.nodes[work.step].made[0]
            add(f"{name}, scratch", work.scratch, work.scratch_bytes * schedule.cores, index)
            add(f"{name}, sums", work.sums_at(schedule.cores), work.sums, index)
    return found


def _map(
    name: str,
    title: str,
    unit: str,
    buffers: Sequence[Buffer],
    size: int,
    count: int,
    scale: float,
    bound: int | None,
) -> MemoryMap:
    step = max(NARROWEST, (WIDTH - LEFT - RIGHT) / count)
    height = min(max(size * scale, LOWEST), HEIGHT)
    scale = height / size
    bottom = TOP + height
    ordered = sorted(buffers, key=lambda b: (b.first, b.place.offset, b.name))
    every = round_up(-(-count // 16))
    lines = 4 if height > HEIGHT / 2 else 1
    return MemoryMap(
        name,
        title,
        unit,
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


def _block(buffer: Buffer, index: int, step: float, scale: float, bottom: float) -> BufferBar:
    width, height = step * (buffer.last - buffer.first), buffer.bytes * scale
    room = int((width - 8) / 6.7)
    label = buffer.name if len(buffer.name) <= room else buffer.name[: room - 1] + "…" if room >= 5 else ""
    return BufferBar(
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


def round_up(value: int) -> int:
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
