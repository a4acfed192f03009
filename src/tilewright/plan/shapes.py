"""What tells ways to run the same nodes as a group apart."""

from __future__ import annotations

from collections.abc import Hashable

from tilewright.core.plan import Group

Shape = tuple[Hashable, ...]


def shape_of(group: Group) -> Shape:
    """Loops, slots, and how cores share the nodes, of which neither names nor addresses matter."""
    return (
        group.loops,
        tuple((work.split, work.chunk) for work in group.works),
        max((buffer.slots for buffer in group.buffers), default=1),
        tuple(group.keep.values()),
        group.ahead,
    )
