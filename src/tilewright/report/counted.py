"""A run that was counted step by step, on machines with one memory: what each layer took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from tilewright.core.plan import Plan
from tilewright.report.layers import layers

if TYPE_CHECKING:
    from tilewright.sim.marks import GroupProfile


class CountedRow(Struct, frozen=True):
    """A layer."""

    step: int
    layer: str
    op: str
    code: str
    macs: int
    time: int
    """In the platform's unit."""
    share: float
    """Of all time."""
    cycles: int | None
    """An estimate, where the unit is another one."""

    @property
    def rate(self) -> float:
        """Multiply-accumulates in a unit of time."""
        return self.macs / self.time if self.time else 0.0


def counted_rows(plan: Plan, parts: Sequence[GroupProfile]) -> tuple[CountedRow, ...]:
    """A row for each step that was counted."""
    total = sum(part.cycles for part in parts) or 1
    found = {layer.step: layer for layer in layers(plan)}
    rows: list[CountedRow] = []
    for part in parts:
        layer = found[part.index]
        share = part.cycles / total
        cycles = estimated(plan, part.cycles)
        rows.append(CountedRow(layer.step, layer.name, layer.op, layer.code, layer.macs, part.cycles, share, cycles))
    return tuple(rows)


def estimated(plan: Plan, time: int) -> int | None:
    """Cycles that a time may be, where the unit is another one and the platform has an estimate."""
    return round(time * plan.platform.estimate.each) if plan.platform.estimate else None
