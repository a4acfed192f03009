"""Where buffers of a group lie."""

from __future__ import annotations

from tilewright.core.op import parse_type
from tilewright.core.tiles import Use
from tilewright.plan.tiling.frame import Holder
from tilewright.plan.tiling.groups import placed


def inner(name: str, first: int, last: int) -> Holder:
    """What a node makes for the nodes behind it."""
    holder = Holder(Use("Y", name, True, parse_type("int8[8]")), (), [], True)
    holder.first, holder.last, holder.through = first, last, False
    return holder


def test_bytes_that_are_handed_on_are_taken_until_the_last_has_them() -> None:
    holders = [inner("a", 0, 1), inner("b", 1, 2), inner("c", 2, 3), inner("d", 3, 4)]
    offsets, end = placed(holders, [-1, 0, 1, -1], [64, 64, 64, 16], [0, 0, 0, 0], [0] * 5)
    assert offsets[:3] == [offsets[0]] * 3
    assert offsets[3] >= offsets[0] + 64 or offsets[3] + 16 <= offsets[0]
    assert end == 80
