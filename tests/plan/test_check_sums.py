"""The validator accepts reductions whose parts a kernel adds up, and refuses every way to break them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from plan.test_check_tiles import in_group, with_buffer, with_kernel, with_work
from plan.tiled_plans import CONV, PACK, assembled, buffer, by_layer, checked, group, mapping, schedule_of, stacked
from tilewright.core.plan import Group, NodeWork, Place, Plan, Stage
from tilewright.plan import PlanError

ROWS = ("OH", 3, 3)
PARTS = ("C", 2, 2)


def convolution(loops: Sequence[tuple[str, int, int]]) -> Group:
    """Three rows of the first convolution at a time, of two of four channels; sums are behind all buffers."""
    buffers = stacked(buffer("x", 320), buffer("c0", 1152, 2, PACK), buffer("a", 1536))
    work = NodeWork(0, mapping(X=0, W=1, Y=2), buffers[-1].end, 0, "OH", 1, sums=1536)
    return group([work], loops, buffers)


def parts(*loops: tuple[str, int, int]) -> Plan:
    return in_group(by_layer(), 0, lambda _: convolution(loops or (ROWS, PARTS)))


def parts_in_a_resident_result() -> Plan:
    """Half of the channels at a time, whose result is whole in L1: there pixels are farther apart than in the sums."""
    cut = parts(ROWS, ("F", 8, 2), PARTS)
    work = NodeWork(0, mapping(X=0, W=1), 5000, 0, "OH", 1, sums=768)
    return in_group(cut, 0, lambda g: replace(g, works=(work,), buffers=g.buffers[:2]))


def fused_parts() -> Plan:
    """Parts of a node that is not alone."""
    works = (NodeWork(0, mapping(X=0, W=1, Y=2)), NodeWork(1, mapping(X=2, Y=3), 32000, sums=512))
    buffers = stacked(buffer("x", 1024), buffer("c0", 2304, 1), buffer("a", 4096, 1), buffer("b", 4096))
    others = schedule_of(by_layer()).groups[2:]
    stage = Stage("c1", "", Place("L1", 16384), 9216, 0, 0, 0)
    return assembled([group(works, [("C", 8, 2)], buffers), *others], {1: CONV}, (stage,))


def window_parts() -> Plan:
    made = with_kernel(parts(("KH", 1, 3)), 0, accumulate=("KH",))
    return with_work(with_buffer(made, 0, 0, bytes=1024, slots=1), 0, 0, split="", sums=4096)


def test_parts_are_right() -> None:
    checked(parts())


Corruption = tuple[str, Callable[[], Plan], str]
CORRUPTIONS: list[Corruption] = [
    (
        "kernel that cannot add up",
        lambda: with_kernel(parts(), 0, accumulate=()),
        "2 tiles of 2 along C, which is no parallel one",
    ),
    (
        "kernel without a hook that adds up",
        lambda: with_kernel(parts(), 0, epilogue=False),
        "kernels/conv2d_f32.c has no epilogue that adds them up",
    ),
    (
        "parts outside of tiles",
        lambda: parts(PARTS, ROWS),
        "loops over C, OH, but parts of C must be added up innermost",
    ),
    ("missing part", lambda: parts(ROWS, ("C", 1, 3)), "3 tiles of 1 along C cover 3 of 4"),
    ("parts in a group of nodes", fused_parts, "parts of C of one of 2 nodes"),
    ("parts of a window", window_parts, "parts of KH, which shares an axis of X with OH"),
    ("no sums", lambda: with_work(parts(), 0, 0, sums=0), "0 bytes for the sums of a tile that needs 1536"),
    ("sums too small", lambda: with_work(parts(), 0, 0, sums=1024), "1024 bytes for the sums of a tile that needs"),
    (
        "sums beside a resident result",
        parts_in_a_resident_result,
        "adds up parts of 1x3x8x8, which do not lie so in its result of 1x8x8x16",
    ),
    (
        "sums over a buffer",
        lambda: with_work(parts(), 0, 0, scratch=4480),
        "overlaps sums of group 0, Conv 'a' (L1 bytes 4480..6016)",
    ),
    ("sums outside", lambda: with_work(parts(), 0, 0, scratch=32752), "lies outside its 32768 bytes"),
    ("sums misaligned", lambda: with_work(parts(), 0, 0, scratch=6024), "is not aligned to 16"),
    (
        "sums of nothing",
        lambda: in_group(by_layer(), 0, lambda g: replace(g, works=(replace(g.works[0], scratch=8192, sums=1536),))),
        "has bytes for sums, but no loop over parts",
    ),
    (
        "buffer for half of a part",
        lambda: with_buffer(parts(), 0, 1, bytes=576),
        "of 'c0' has 576 bytes, its tile of 1x1x3x3x2x16 needs 1152",
    ),
    (
        "scratch of the last part",
        lambda: with_kernel(parts(ROWS, ("C", 3, 2)), 0, scratch="max(0, 2-C)*32"),
        "0 bytes of scratch, its largest part needs 32",
    ),
]


@pytest.mark.parametrize(("broken", "message"), [c[1:] for c in CORRUPTIONS], ids=[c[0] for c in CORRUPTIONS])
def test_a_broken_plan_is_refused(broken: Callable[[], Plan], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        checked(broken())
    assert message in str(caught.value)
