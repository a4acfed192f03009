"""A simulated run beside its plan: what each group of layers took, against what was predicted and what is possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from msgspec import Struct

from tilewright.core.plan import Plan, Schedule
from tilewright.report.groups import GroupRow, group_table
from tilewright.report.memory import RIGHT, WIDTH, Tick

if TYPE_CHECKING:
    from tilewright.sim.marks import GroupProfile


class ProfileRow(Struct, frozen=True):
    """Layers that run together."""

    group: int
    layers: tuple[str, ...]
    code: tuple[str, ...]
    macs: int
    tiles: int
    cycles: int
    share: float
    """Of all cycles."""
    predicted: float
    kernel: int
    """Cycles in which the cores computed."""
    waiting: int
    """Cycles in which they waited for what a tile reads."""
    loading: int
    """Cycles of the DMA."""
    storing: int
    moved: int
    """Bytes of its own, both ways, whenever they are moved: some are loaded while an earlier group works."""
    counters: Mapping[str, int]
    """Of all cores."""

    @property
    def rate(self) -> float:
        """Multiply-accumulates in a cycle."""
        return self.macs / self.cycles if self.cycles else 0.0

    @property
    def ratio(self) -> float:
        """Predicted cycles for each simulated one."""
        return self.predicted / self.cycles if self.cycles else 1.0


def profile_rows(plan: Plan, schedule: Schedule, groups: Sequence[GroupProfile]) -> tuple[ProfileRow, ...]:
    """A row for each group."""
    total = sum(group.cycles for group in groups) or 1
    rows = group_table(plan, schedule).rows
    return tuple(_row(row, group, total) for row, group in zip(rows, groups, strict=True))


def _row(row: GroupRow, group: GroupProfile, total: int) -> ProfileRow:
    names = list(group.counters[0]) if group.counters else []
    return ProfileRow(
        row.index,
        row.layers,
        row.code,
        round(row.macs),
        row.tiles,
        group.cycles,
        group.cycles / total,
        row.cycles,
        sum(tile.kernel for tile in group.tiles),
        sum(tile.waiting for tile in group.tiles),
        sum(tile.loading for tile in group.tiles),
        sum(tile.storing for tile in group.tiles),
        row.moved,
        {name: sum(core[name] for core in group.counters) for name in names},
    )


# The roofline


class Dot(Struct, frozen=True):
    """A group in the picture; larger ones take more of the time."""

    x: float
    y: float
    radius: float
    text: str


class Roofline(Struct, frozen=True):
    """MAC/cycle over MAC/byte, both logarithmic, below what DMA and cores allow."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    roof: str
    """Corners of the line."""
    dots: tuple[Dot, ...]
    note: str


LEFT, TOP, HEIGHT, BOTTOM, END = 60, 14, 320, 40, WIDTH - RIGHT - 24
"""Pixels: room for numbers on the left, above the picture, its height, room below, its right end."""


def roofline(plan: Plan, schedule: Schedule, rows: Sequence[ProfileRow]) -> Roofline | None:
    """The picture; none where the platform does not say what its cores can do, or nothing is multiplied."""
    engine = plan.platform.engines[schedule.engine]
    dma = plan.platform.link(schedule.home, engine.memory)
    counted = [row for row in rows if row.macs]
    if not engine.peak or dma is None or not counted:
        return None
    used = {choice.engine for choice in plan.choices}
    others = [e.peak * e.count for e in plan.platform.engines.values() if e != engine and e.name in used]
    peak, speed = max(engine.peak * schedule.cores, *others, 0.0), dma.bytes_per_cycle
    bend = peak / speed
    known = [row.macs / row.moved for row in counted if row.moved]
    low, high = _decades([*known, bend / 10, bend * 10])
    bottom, top = _decades([peak, *(row.rate for row in counted)])

    def x(value: float) -> float:
        share = (log10(value) - low) / (high - low)
        return round(LEFT + (END - LEFT) * min(max(share, 0.0), 1.0), 1)

    def y(value: float) -> float:
        return round(TOP + HEIGHT * (top - log10(value)) / (top - bottom), 1)

    start = max(10.0**low, 10.0**bottom / speed)
    corners = [(start, start * speed), (bend, peak), (10.0**high, peak)]
    dots = [
        Dot(
            x(row.macs / row.moved if row.moved else 10.0**high),
            y(row.rate),
            round(3 + 9 * row.share**0.5, 1),
            f"group {row.group}, {', '.join(row.layers)}\n{row.rate:.2f} MAC/cycle, {row.share:.1%} of the time\n"
            + (f"{row.macs / row.moved:,.1f} MAC/byte" if row.moved else "no byte moved"),
        )
        for row in counted
    ]
    return Roofline(
        WIDTH,
        TOP + HEIGHT + BOTTOM,
        LEFT,
        END,
        TOP,
        TOP + HEIGHT,
        tuple(Tick(x(10.0**e), f"{10.0**e:,g}") for e in range(low, high + 1)),
        tuple(Tick(y(10.0**e), f"{10.0**e:,g}") for e in range(bottom, top + 1)),
        " ".join(f"{x(a)},{y(b)}" for a, b in corners),
        tuple(dots),
        f"at most {peak:g} MAC/cycle and {speed:g} bytes/cycle",
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)
