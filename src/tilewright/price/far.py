"""Transfers by way of a memory in between: what they take besides those on the slower part of their way."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tilewright.core.tiles import Use
from tilewright.machine.kernel import Kernel
from tilewright.machine.parts import Link
from tilewright.machine.target import Target
from tilewright.price.caches import lines_of, still_there
from tilewright.price.copies import descriptors, far_wake, route, transfer, wait_cycles
from tilewright.price.grid import Array, Box, Grid


class Far(Struct, frozen=True, eq=False):
    """What a buffer needs besides the transfer on the slower part of its way."""

    passing: Array
    """Cycles on the rest of the way, over classes: nothing runs beside those of a load, which the cores wait for."""
    latency: float
    """Of the first of several transfers, until it begins."""
    request: Array
    """To ask for its transfers, beside others."""
    wait: float
    """To send on a load that is complete."""
    wake: float
    """From its end until who waits goes on; of a load with those to send it on."""
    cold: float
    """Until the first transfer of a group begins."""
    cold_end: float
    """Of the first load of a group behind its end."""
    again: float
    """Of both at further steps, where code of several nodes took the places of this in the caches."""

    @property
    def sent_on(self) -> Array:
        """Cycles of a load that is complete until it has arrived."""
        return self.passing + self.wait

    @property
    def delay(self) -> float:
        """Until a transfer begins, and until its end is known."""
        return self.latency + self.wake - self.wait


def far_part(grid: Grid, platform: Target, box: Box, use: Use, slow: Link, kernels: Sequence[Kernel | None]) -> Far:
    """Of a buffer that a link by way of another memory fills or empties, while cores run these kernels."""
    rest = route(platform, slow.through)
    count = grid.product([]) * descriptors(grid, box, use.type.shape, slow.rank)
    passing = transfer(grid, box, use.type, rest, store=use.writes)
    # Parts of a store follow each other, those of a load are sent on one after the other and awaited together.
    more = count * slow.passing if use.writes else (count - 1) * sum(float(dma.issue) for dma in rest)
    wait, wake = (wait_cycles(platform), far_wake(platform)) if use.writes else (slow.wait, slow.wake)
    several = lines_of(platform, kernels) if len(kernels) > 1 else 0.0
    again = (slow.cold + slow.cold_end) * (1 - still_there(platform, several))
    return Far(passing + more, slow.latency, slow.request * count, wait, wake, slow.cold, slow.cold_end, again)
