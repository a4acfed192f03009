"""What a tiled plan says about each group of layers, and in all."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Literal

from msgspec import Struct

from tilewright.core.op import call_node
from tilewright.core.plan import Group, NodeWork, Plan, Schedule, TileBuffer
from tilewright.report.layers import code_of, multiply_accumulates
from tilewright.timeline.replay import Timed, Timeline, plan_timeline

Interval = tuple[int, int]
Lives = Mapping[str, Sequence[tuple[Interval, Interval]]]
"""Of the tensors in each memory, the groups during which they live, and their bytes."""


class BufferRow(Struct, frozen=True):
    """A tile buffer."""

    tensor: str
    bytes: int
    """Of one slot."""
    slots: int
    kept: bool
    """Whether lines stay from one tile to the next."""
    within: str
    """The tensor in whose buffer it lies; "" where it has bytes of its own."""


class GroupRow(Struct, frozen=True):
    """Layers that run together, tile by tile."""

    index: int
    steps: tuple[int, ...]
    """Of the graph."""
    layers: tuple[str, ...]
    ops: tuple[str, ...]
    engine: str
    code: tuple[str, ...]
    loops: tuple[tuple[str, int, int], ...]
    """Dimension, size and number of tiles of each loop, outermost first."""
    tiles: int
    buffers: tuple[BufferRow, ...]
    splits: tuple[str, ...]
    """For each layer the dimension that cores share, "" where one core does it all."""
    near_bytes: int
    """In use in the engine's memory while the group runs."""
    moved: int
    cycles: float
    compute: float
    transfers: float
    bound: Literal["compute", "DMA"]
    macs: float
    """Multiply-accumulates, those done twice included."""


class Totals(Struct, frozen=True):
    """What the groups add up to."""

    cycles: float
    lower_bound: float
    """0 where none is proven."""
    moved: int
    used: Mapping[str, int]
    macs: int
    extra_macs: float
    """As a fraction."""
    activation_peak: int
    """The most bytes of activations in all memories at once; inputs and outputs at home are not counted."""
    known: str = "predicted"
    """How cycles are known: `measured` where the plan was simulated."""

    @property
    def gap(self) -> float | None:
        """How much faster a plan might be, as a fraction of this one."""
        return max(0.0, 1 - self.lower_bound / self.cycles) if self.lower_bound and self.cycles else None


class GroupTable(Struct, frozen=True):
    """All groups and their totals."""

    rows: tuple[GroupRow, ...]
    totals: Totals


def group_table(plan: Plan, schedule: Schedule, timeline: Timeline | None = None) -> GroupTable:
    """What a tiled plan decided and predicts; `timeline` is that of the plan, where it is known."""
    tensors = _lives(plan, schedule)
    timed = (timeline or plan_timeline(plan, schedule)).groups
    rows = tuple(_row(plan, schedule, tensors, mine) for mine in timed)
    done = sum(row.macs for row in rows)
    # Of a layer whose result is not read whole, fused nodes compute only what is.
    needed = sum(
        min(_macs(plan, work.step), _computed(plan, mine, position, work))
        for mine in timed
        for position, work in enumerate(mine.group.works)
    )
    return GroupTable(
        rows,
        Totals(
            sum(row.cycles for row in rows),
            schedule.bound,
            sum(row.moved for row in rows),
            schedule.used,
            round(needed),
            done / needed - 1 if needed else 0.0,
            activation_peak(plan, schedule),
            schedule.known,
        ),
    )


def _row(plan: Plan, schedule: Schedule, tensors: Lives, timed: Timed) -> GroupRow:
    group, nodes = timed.group, [plan.graph.nodes[work.step] for work in timed.group.works]
    engine = plan.platform.engines[schedule.engine]
    return GroupRow(
        timed.index,
        tuple(work.step for work in group.works),
        tuple(node.label for node in nodes),
        tuple(" + ".join([node.op, *(fused.op for fused in node.epilogue)]) for node in nodes),
        schedule.engine,
        tuple(code_of(plan.choices[work.step]) for work in group.works),
        tuple((loop.dim, loop.size, loop.count) for loop in group.loops),
        prod(loop.count for loop in group.loops),
        tuple(_buffer(group, buffer) for buffer in group.buffers),
        tuple(work.split for work in group.works),
        covered([*_whole(plan, schedule, tensors, timed.index, engine.memory), *workspace(group, schedule.cores)]),
        timed.cost.moved,
        group.cycles,
        timed.cost.compute,
        timed.cost.transfers,
        timed.bound,
        sum(_computed(plan, timed, position, work) for position, work in enumerate(group.works)),
    )


def _buffer(group: Group, buffer: TileBuffer) -> BufferRow:
    within = group.buffers[buffer.within].tensor if buffer.within >= 0 else ""
    return BufferRow(buffer.tensor, buffer.bytes, buffer.slots, buffer.tensor in group.keep, within)


def _macs(plan: Plan, step: int) -> int:
    return multiply_accumulates(call_node(plan.graph, plan.graph.nodes[step]).domain())


def _computed(plan: Plan, timed: Timed, position: int, work: NodeWork) -> float:
    """Multiply-accumulates of a layer as often as its points are computed."""
    priced = timed.place.part.costs.priced
    whole = prod(priced.grid.members[position].domain.dims.values())
    return _macs(plan, work.step) * priced.total(priced.points[position]) / whole if whole else 0.0


# Bytes


def covered(intervals: Iterable[Interval]) -> int:
    """Bytes in at least one of some intervals."""
    total = end = 0
    for start, stop in sorted(intervals):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def workspace(group: Group, cores: int) -> list[Interval]:
    """What a group takes of the engine's memory for tiles and scratch."""
    scratch = [(work.scratch, work.scratch + work.scratch_bytes * cores) for work in group.works if work.scratch_bytes]
    sums = [(work.sums_at(cores), work.sums_at(cores) + work.sums) for work in group.works if work.sums]
    return [*((buffer.offset, buffer.end) for buffer in group.buffers), *scratch, *sums]


def group_span(schedule: Schedule, first: int, last: int) -> Interval:
    """The groups during which something lives from step `first` to before step `last`."""
    begin = bisect_left(schedule.groups, first, key=lambda group: group.works[-1].step)
    return begin, max(begin, bisect_left(schedule.groups, last, key=lambda group: group.works[0].step))


def _lives(plan: Plan, schedule: Schedule) -> Lives:
    found: dict[str, list[tuple[Interval, Interval]]] = {}
    for buffer in plan.buffers:
        place, groups = buffer.place, group_span(schedule, buffer.first, buffer.last)
        found.setdefault(place.space, []).append((groups, (place.offset, place.offset + buffer.bytes)))
    return found


def _whole(
    plan: Plan, schedule: Schedule, tensors: Lives, index: int, memory: str, *, constants: bool = True
) -> list[Interval]:
    """Whole tensors in a memory while a group runs."""
    found = [held for (first, last), held in tensors.get(memory, ()) if first <= index < last]
    for stage in schedule.stages:
        counted = constants or stage.tensor not in plan.graph.constants
        if stage.place.space == memory and counted and stage.start <= index <= stage.last:
            found.append((stage.place.offset, stage.place.offset + stage.bytes))
    return found


def activation_peak(plan: Plan, schedule: Schedule) -> int:
    """The most bytes of activations at once: whole tensors in every memory, and tiles of the group that runs."""
    near = plan.platform.engines[schedule.engine].memory
    tensors = _lives(plan, schedule)
    constants = {name for name, place in plan.places.items() if place.space == "constant"}
    return max(
        (
            sum(
                covered(
                    [
                        *_whole(plan, schedule, tensors, index, memory, constants=False),
                        *(_activation_tiles(constants, group) if memory == near else ()),
                    ]
                )
                for memory in plan.platform.memories
            )
            for index, group in enumerate(schedule.groups)
        ),
        default=0,
    )


def _activation_tiles(constants: Collection[str], group: Group) -> Sequence[Interval]:
    return [(buffer.offset, buffer.end) for buffer in group.buffers if buffer.tensor not in constants]
