"""The validator accepts tiled plans made by hand and refuses every way to break them."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from plan.tiled_plans import (
    assembled,
    buffer,
    by_layer,
    checked,
    conv_a,
    crossing,
    fused,
    group,
    mapping,
    memory,
    schedule_of,
    scheduled,
    stacked,
)
from tilewright.core.plan import Group, NodeWork, Place, Plan, Stage
from tilewright.core.tiles import TileLoop
from tilewright.machine.parts import Device
from tilewright.plan import PlanError

PLANS: dict[str, Callable[[], Plan]] = {
    "layer by layer": by_layer,
    "fused with kept lines": fused,
    "fused with lines computed again": lambda: fused(keep=False),
    "with a queue": lambda: ahead(by_layer()),
    "with a constant that an engine awaits where it is loaded": lambda: ahead(beside_cores()),
}


@pytest.mark.parametrize("made", PLANS.values(), ids=PLANS)
def test_plans_made_by_hand_are_right(made: Callable[[], Plan]) -> None:
    checked(made())


# Ways to break a plan


def in_group(made: Plan, number: int, change: Callable[[Group], Group]) -> Plan:
    groups = schedule_of(made).groups
    return scheduled(made, groups=tuple(change(g) if i == number else g for i, g in enumerate(groups)))


def with_buffer(made: Plan, number: int, index: int, **changes: Any) -> Plan:
    def change(old: Group) -> Group:
        return replace(
            old, buffers=tuple(replace(b, **changes) if i == index else b for i, b in enumerate(old.buffers))
        )

    return in_group(made, number, change)


def with_loop(made: Plan, number: int, index: int, **changes: Any) -> Plan:
    def change(old: Group) -> Group:
        return replace(old, loops=tuple(replace(x, **changes) if i == index else x for i, x in enumerate(old.loops)))

    return in_group(made, number, change)


def with_work(made: Plan, number: int, index: int, **changes: Any) -> Plan:
    def change(old: Group) -> Group:
        return replace(old, works=tuple(replace(w, **changes) if i == index else w for i, w in enumerate(old.works)))

    return in_group(made, number, change)


def bound(made: Plan, number: int, index: int, **buffers: int | None) -> Plan:
    """Uses in other buffers, or in none."""
    old = {**schedule_of(made).groups[number].works[index].buffers, **buffers}
    return with_work(made, number, index, buffers={key: value for key, value in old.items() if value is not None})


def placed(made: Plan, **places: Place | None) -> Plan:
    found = {**made.places, **places}
    return replace(made, places=MappingProxyType({name: place for name, place in found.items() if place}))


def staged(made: Plan, **changes: Any) -> Plan:
    return scheduled(made, stages=tuple(replace(stage, **changes) for stage in schedule_of(made).stages))


def with_kernel(made: Plan, step: int, **changes: Any) -> Plan:
    old = made.choices[step]
    assert old.kernel is not None
    changed = replace(old, kernel=replace(old.kernel, **changes))
    return replace(made, choices=tuple(changed if i == step else c for i, c in enumerate(made.choices)))


def ahead(made: Plan) -> Plan:
    """The first node of the first group on another engine, a step ahead."""
    engines = {**made.platform.engines, "array": Device(name="array", memory="L1")}
    choices = (replace(made.choices[0], engine="array"), *made.choices[1:])
    other = replace(made, platform=replace(made.platform, engines=MappingProxyType(engines)), choices=choices)
    return in_group(other, 0, lambda g: replace(g, ahead=True, works=(replace(g.works[0], split=""), *g.works[1:])))


def beside_cores() -> Plan:
    """The fused plan with two slots for what the first node makes."""

    def apart(g: Group) -> Group:
        made = g.buffers[2]
        behind = (replace(b, offset=b.offset + made.bytes) for b in g.buffers[3:])
        return replace(g, buffers=(*g.buffers[:2], replace(made, slots=2), *behind))

    return in_group(fused(keep=False), 0, apart)


def without_dma(made: Plan) -> Plan:
    return replace(made, platform=replace(made.platform, links=MappingProxyType({})))


def kernel_cut(loops: list[tuple[str, int, int]], split: str = "", chunk: int = 0) -> Plan:
    """The kernel of the first convolution with other loops; its buffers are as large as they could have to be."""
    first = conv_a()
    buffers = stacked(*(replace(b, bytes=size) for b, size in zip(first.buffers, (1024, 2304, 4096), strict=True)))
    broken = replace(
        first,
        loops=tuple(TileLoop(*loop) for loop in loops),
        buffers=buffers,
        works=(replace(first.works[0], split=split, chunk=chunk),),
    )
    return in_group(by_layer(), 0, lambda _: broken)


def regrouped(order: list[int]) -> Plan:
    made = by_layer()
    return scheduled(made, groups=tuple(schedule_of(made).groups[i] for i in order))


Corruption = tuple[str, Callable[[], Plan], str]
PLACES: list[Corruption] = [
    (
        "two tensors at one place",
        lambda: placed(by_layer(), b=Place("L2", 2048)),
        "'a' (L2 bytes 0..4096) overlaps 'b' (L2 bytes 2048..6144) in group 1",
    ),
    ("tensor misaligned", lambda: placed(by_layer(), b=Place("L2", 4100)), "'b' (L2 bytes 4100..8196) is not aligned"),
    ("tensor outside", lambda: placed(by_layer(), b=Place("L2", 65536)), "'b' (L2 bytes 65536..69632) lies outside"),
    ("no such memory", lambda: placed(by_layer(), b=Place("L9", 0)), "Conv 'b': 'b' has no place"),
    ("no place", lambda: placed(by_layer(), b=None), "group 1, Conv 'b': 'b' has no place"),
    ("view elsewhere", lambda: placed(by_layer(), v=Place("L2", 0)), "is a view of 'c'"),
    ("output elsewhere", lambda: placed(by_layer(), y=Place("L2", 0)), "output 0 'y' is at"),
    ("result in an input", lambda: placed(by_layer(), b=Place("input")), "writes 'b' to"),
    ("home too small", lambda: memory(by_layer(), "L2", 20000), "L2 has 20000 bytes, but holds 12288 of tensors"),
    (
        "weight memory too small",
        lambda: memory(by_layer(), "W", 500),
        "W has 500 bytes, but holds 0 of tensors and 512",
    ),
    (
        "fewer bytes asked for than used",
        lambda: scheduled(by_layer(), used={"L1": 32768, "L2": 12000}),
        "12288 bytes of L2 are used, but 12000 are asked for",
    ),
    ("no DMA", lambda: without_dma(by_layer()), "no DMA is between L2 and L1"),
    ("no DMA to the far memory", lambda: placed(by_layer(), b=Place("L3", 0)), "no DMA is between L3 and L1"),
]

BUFFERS: list[Corruption] = [
    (
        "buffer too small",
        lambda: with_buffer(by_layer(), 0, 0, bytes=512),
        "of 'x' has 512 bytes, its tile of 1x5x8x4 needs 640",
    ),
    (
        "overlapping buffers",
        lambda: with_buffer(by_layer(), 0, 1, offset=1264),
        "buffer 0 of 'x' in group 0 (L1 bytes 0..1280) overlaps buffer 1 of 'c0' in group 0 (L1 bytes 1264..3568)",
    ),
    ("overlapping slots", lambda: with_buffer(by_layer(), 0, 0, slots=3), "overlaps buffer 1 of 'c0'"),
    ("buffer misaligned", lambda: with_buffer(by_layer(), 3, 1, offset=2056), "is not aligned to 16"),
    ("slots misaligned", lambda: with_buffer(by_layer(), 3, 1, bytes=520), "with slots of 520 bytes is not aligned"),
    ("buffer outside", lambda: with_buffer(by_layer(), 3, 1, offset=32256), "(L1 bytes 32256..33280) lies outside"),
    ("no slot", lambda: with_buffer(by_layer(), 3, 1, slots=0), "has 0 slots"),
    (
        "buffer of another tensor",
        lambda: with_buffer(by_layer(), 2, 0, tensor="a"),
        "A is 'b', its buffer 0 is for 'a'",
    ),
    ("buffer without the packing", lambda: with_buffer(by_layer(), 0, 1, pack=""), "packed G,F,C,KH,KW -> "),
    ("wrong binding", lambda: bound(by_layer(), 2, 0, A=1, B=0), "A is 'b', its buffer 1 is for 'a'"),
    ("no such buffer", lambda: bound(by_layer(), 2, 0, A=7), "A is in buffer 7 of 3"),
    ("no such operand", lambda: bound(by_layer(), 2, 0, Q=1), "for 'Q', which it does not touch"),
    ("no buffer", lambda: bound(by_layer(), 1, 0, X=None), "buffer 0 of 'a' serves no operand"),
    ("over a staged copy", lambda: with_buffer(by_layer(), 0, 2, offset=16384), "overlaps"),
    (
        "in place of an operand with another number of slots",
        lambda: with_buffer(by_layer(), 2, 2, slots=1),
        "buffer 0 of 'b' in group 2 (L1 bytes 0..2048) overlaps buffer 2 of 'c' in group 2",
    ),
    (
        "in place of an operand read elsewhere",
        lambda: with_buffer(by_layer(), 3, 1, offset=0, bytes=1024),
        "buffer 0 of 'v' in group 3 (L1 bytes 0..2048) overlaps buffer 1 of 'y'",
    ),
    (
        "scratch over a buffer",
        lambda: with_work(by_layer(), 0, 0, scratch=2048, scratch_bytes=16),
        "overlaps scratch of group 0, Conv 'a' (L1 bytes 2048..2112)",
    ),
    (
        "scratch outside",
        lambda: with_work(by_layer(), 0, 0, scratch=32720, scratch_bytes=16),
        "(L1 bytes 32720..32784) lies outside",
    ),
    (
        "scratch too small",
        lambda: with_kernel(by_layer(), 0, scratch="C*KH*OW"),
        "0 bytes of scratch, its largest part needs 96",
    ),
]

TILES: list[Corruption] = [
    ("missing tile", lambda: with_loop(by_layer(), 0, 0, count=2), "2 tiles of 3 along OH cover 6 of 8"),
    ("one tile too many", lambda: with_loop(by_layer(), 1, 0, count=5), "but 4 cover all 8"),
    ("two loops of one dimension", lambda: with_loop(by_layer(), 1, 1, dim="OH"), "2 loops run over OH"),
    ("reduction cut", lambda: with_loop(by_layer(), 1, 1, dim="C", size=8), "along C, which is no parallel one"),
    ("no such dimension", lambda: with_loop(by_layer(), 1, 1, dim="Q"), "none of its dimensions"),
    (
        "chunk too small",
        lambda: with_work(by_layer(), 2, 0, chunk=1),
        "4 cores with chunks of 1 share a tile of 8 along D2",
    ),
    (
        "cores share a reduction",
        lambda: with_work(by_layer(), 0, 0, split="C"),
        "cores share C, which is no parallel one",
    ),
    ("too many cores", lambda: scheduled(by_layer(), cores=8), "8 cores of engine 'cpu', which has 4"),
    (
        "kernel with gaps in its operand",
        lambda: kernel_cut([("OH", 4, 2)], "OW", 2),
        "kernel kernels/conv2d_f32.c: its part 1x5x4x4 of 'x' (X) is not dense in buffer 0 of 1x5x8x4",
    ),
    (
        "kernel with gaps in its result",
        lambda: kernel_cut([("OH", 4, 2)], "OW", 2),
        "its part 1x4x2x16 of 'a' (Y) is not dense in buffer 2 of 1x4x8x16",
    ),
    ("kernel whose block is cut", lambda: kernel_cut([("F", 8, 2)]), "tiles of 8 along F do not suit its blocks of 16"),
    ("kernel that needs a dimension whole", lambda: with_kernel(by_layer(), 0, whole=("OH",)), "OH is cut to 1 of 8"),
]

INNER: list[Corruption] = [
    (
        "no room for kept lines",
        lambda: with_buffer(fused(), 0, 2, bytes=1536),
        "of 'a' has 1536 bytes, its tile of 1x4x8x16",
    ),
    (
        "no room for what is computed again",
        lambda: in_group(fused(), 0, lambda g: replace(g, keep={})),
        "of 'x' has 512",
    ),
    (
        "lines of another axis",
        lambda: in_group(fused(), 0, lambda g: replace(g, keep={"a": 2})),
        "the loop over D1 never moves",
    ),
    (
        "kept behind a longer axis",
        lambda: in_group(fused(), 0, lambda g: replace(g, loops=(TileLoop("D2", 2, 4),), keep={"a": 2})),
        "keeps lines of 'a' along axis 2, but axis 1 has extent 8",
    ),
    (
        "lines of a tensor from outside",
        lambda: in_group(fused(), 0, lambda g: replace(g, keep={"x": 1})),
        "keeps lines of 'x'",
    ),
    ("inner tensor with two slots", lambda: with_buffer(fused(), 0, 3, slots=2, offset=16384 - 2048), "has 2 slots"),
    ("inner tensor in two places", lambda: bound(fused(), 0, 2, A=None), "different places: buffer 3, its place"),
    (
        "inner tensor with kept lines shares bytes",
        lambda: with_buffer(fused(), 0, 4, offset=3328),
        "buffer 2 of 'a' in group 0 (L1 bytes 3328..5376) overlaps buffer 4 of 'c'",
    ),
    (
        "inner tensor that is read outside",
        lambda: read_outside(),
        "'a' stays in a buffer of the group, but group 1 reads it",
    ),
]

ORDER: list[Corruption] = [
    ("read before write", lambda: regrouped([0, 2, 1, 3]), "groups run steps 0, 2, 1, 4"),
    ("missing group", lambda: regrouped([0, 1, 3]), "step 2, Add 'c' is in no group"),
    ("group twice", lambda: regrouped([0, 1, 1, 2, 3]), "step 1 is in 2 groups"),
    ("stage too late", lambda: staged(by_layer(), start=2), "started before group 2 for groups 1 to 1"),
    (
        "stage ends too early",
        lambda: staged(by_layer(), first=0, last=0),
        "reads 'c1' (W) in L2 without a buffer in L1",
    ),
    ("stage too small", lambda: staged(by_layer(), bytes=9200), "copy of 'c1' in L1: copies 9200 bytes of 9216"),
    (
        "stage in use",
        lambda: staged(by_layer(), place=Place("L1", 4096)),
        "copy of 'c1' (L1 bytes 4096..13312) overlaps buffer 1 of 'b' in group 1",
    ),
    ("stage outside", lambda: staged(by_layer(), place=Place("L1", 24576)), "lies outside its 32768 bytes"),
    (
        "stage before its source",
        lambda: scheduled(
            by_layer(), stages=(*schedule_of(by_layer()).stages, Stage("b", "", Place("L1", 28672), 4096, 1, 2, 2))
        ),
        "copy of 'b' in L1: started before group 1, but group 1 makes the tensor",
    ),
    (
        "constant not among the direct ones",
        lambda: scheduled(by_layer(), direct=frozenset()),
        "reads 'c3' (B) in L2 without",
    ),
    (
        "direct tensor",
        lambda: scheduled(by_layer(), direct=frozenset({"a", "c3"})),
        "'a' is to be read in place, but is no",
    ),
    ("home that does not exist", lambda: scheduled(by_layer(), home="L7"), "home memory 'L7'"),
]


def read_outside() -> Plan:
    """Both convolutions fused, and the sum behind them reads the inner one's result."""
    made = by_layer()
    others = schedule_of(made).groups[2:]
    buffers = stacked(buffer("x", 1024), buffer("c0", 2304, 1), buffer("a", 4096, 1), buffer("b", 2048))
    works = (NodeWork(0, mapping(X=0, W=1, Y=2)), NodeWork(1, mapping(X=2, Y=3)))
    fused_pair = group(works, [("OH", 2, 4)], buffers)
    return assembled([fused_pair, *others], {}, (Stage("c1", "", Place("L1", 16384), 9216, 0, 0, 0),))


EARLY: list[Corruption] = [
    (
        "loaded before the first group",
        lambda: crossing(by_layer(), 0, 1, early=1),
        "load of buffer 1 of group 0: there is no such buffer or group",
    ),
    (
        "loaded before it is made",
        lambda: crossing(by_layer(), 1, 0, early=1),
        "group 1, Conv 'b': 'a' is loaded at 0 first beside, but is not there by then",
    ),
    (
        "loaded over what the group before works on",
        lambda: crossing(with_buffer(by_layer(), 2, 1, offset=0), 2, 1, early=1),
        "overlaps buffer 1 of 'a' in group 2",
    ),
    (
        "loaded early tile by tile",
        lambda: crossing(with_buffer(by_layer(), 2, 1, slots=1), 2, 1, early=1),
        "buffer 1 of 'a' is loaded early, but changes from step to step",
    ),
    (
        "loaded two groups before it is there",
        lambda: crossing(by_layer(), 2, 1, early=2),
        "group 2, Add 'c': 'a' is loaded at 0 first beside, but is not there by then",
    ),
]

LATE: list[Corruption] = [
    (
        "still stored when it is read",
        lambda: crossing(by_layer(), 0, 2, late=1),
        "group 1, Conv 'b': 'a' is loaded at 1 step-1 beside, but is not there by then",
    ),
]

KEPT: list[Corruption] = [
    (
        "kept tile by tile",
        lambda: crossing(with_buffer(by_layer(), 2, 1, slots=1), 2, 1, kept=1),
        "buffer 1 of 'a' is not loaded, but no group before leaves all of it in those bytes",
    ),
]

AHEAD: list[Corruption] = [
    (
        "ahead of nothing",
        lambda: ahead(in_group(by_layer(), 0, lambda g: replace(g, loops=()))),
        "runs ahead, but there is nothing that it could be ahead of",
    ),
    (
        "queued with one slot",
        lambda: ahead(with_buffer(by_layer(), 0, 0, slots=1)),
        "runs ahead, but its buffer 0",
    ),
    (
        "queued parts of results",
        lambda: ahead(with_work(with_loop(by_layer(), 0, 0, dim="C", size=2, count=2), 0, 0, sums=4096)),
        "runs ahead, but its results take several steps",
    ),
    (
        "ahead on the cores",
        lambda: in_group(by_layer(), 0, lambda g: replace(g, ahead=True)),
        "is for 'cpu', but the first node alone runs ahead",
    ),
    (
        "ahead with kept lines",
        lambda: ahead(fused()),
        "runs ahead, but lines of 'a' are kept",
    ),
    (
        "ahead with one slot",
        lambda: ahead(fused(keep=False)),
        "runs ahead, but its buffer",
    ),
]

CORRUPTIONS = [*PLACES, *BUFFERS, *TILES, *INNER, *ORDER, *EARLY, *LATE, *KEPT, *AHEAD]


@pytest.mark.parametrize(("broken", "message"), [c[1:] for c in CORRUPTIONS], ids=[c[0] for c in CORRUPTIONS])
def test_a_broken_plan_is_refused(broken: Callable[[], Plan], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        checked(broken())
    assert message in str(caught.value)


# What is allowed


def test_operands_walked_by_strides_need_not_be_dense() -> None:
    cut = kernel_cut([("OH", 4, 2)], "OW", 2)
    checked(with_kernel(cut, 0, strided=("X", "Y")))
    with pytest.raises(PlanError, match=r"of 'a' \(Y\) is not dense"):
        checked(with_kernel(cut, 0, strided=("X",)))


def test_kernels_take_parts_of_the_sizes_that_they_ask_for() -> None:
    """Of 8 columns, cores get 3, 3 and 2."""
    cut = with_kernel(kernel_cut([("OH", 4, 2)], "OW", 3), 0, strided=("X", "Y"))
    checked(with_kernel(cut, 0, when={"OW": ">= 2"}))
    with pytest.raises(PlanError, match="it asks for OW >= 3, where OW is 2"):
        checked(with_kernel(cut, 0, when={"OW": ">= 3"}))
    with pytest.raises(PlanError, match="it asks for OW % OH == 0 or OH > 4, where"):
        checked(with_kernel(cut, 0, when={"OW": "OW % OH == 0 or OH > 4"}))
