"""Allocation: hand-made cases, properties judged by an independent checker, exact optima of small instances."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plan.checker import least_peak, least_spill, problems
from support import assert_linear, lines_run
from tilewright.errors import TilewrightError
from tilewright.plan.addresses.allocate import BufferRequest, Placement, allocate
from tilewright.plan.addresses.packing import smallest_gap


def cut_block(seed: int, *, pieces: int, height: int, width: int) -> list[BufferRequest]:
    """A full rectangle of time and bytes cut into pieces, so that a packing without any gap exists."""
    chance = random.Random(seed)
    rectangles = [(0, width, height)]
    while len(rectangles) < pieces:
        first, last, size = rectangles.pop(chance.randrange(len(rectangles)))
        if chance.random() < 0.5 and last - first > 1:
            at = chance.randrange(first + 1, last)
            rectangles += [(first, at, size), (at, last, size)]
        elif size > 1:
            at = chance.randrange(1, size)
            rectangles += [(first, last, at), (first, last, size - at)]
        else:
            rectangles.append((first, last, size))
    chance.shuffle(rectangles)
    return [BufferRequest(f"b{i}", size, first, last, align=1) for i, (first, last, size) in enumerate(rectangles)]


# Bytes live at once are 18 at most, but the pinned buffer leaves 8 bytes below it, too few for "b": 12 + 10 + 4.
GAP = [
    BufferRequest("pinned", 4, 0, 9, align=4, pin=8),
    BufferRequest("b", 10, 2, 6, align=1),
    BufferRequest("c", 4, 5, 9, align=1),
    BufferRequest("d", 4, 0, 3, align=1),
    BufferRequest("e", 6, 6, 8, align=1),
]


# Exactly 6 bytes are live at any time, so a packing into 6 could have no hole anywhere; there is none below 7.
STAIRS = [
    BufferRequest(f"b{i}", size, first, last, align=1)
    for i, (size, first, last) in enumerate(
        zip(
            (1, 1, 3, 2, 4, 1, 1, 1, 2, 3, 3),
            (0, 1, 0, 0, 3, 2, 4, 3, 5, 4, 6),
            (1, 2, 3, 3, 4, 5, 5, 6, 6, 8, 8),
            strict=True,
        )
    )
]


def test_nothing_needs_nothing() -> None:
    result = allocate([])
    assert (result.peak, result.lower_bound, result.status) == (0, 0, "optimal")


def test_lifetimes_are_half_open() -> None:
    result = allocate([BufferRequest("a", 64, 0, 1), BufferRequest("b", 64, 1, 2)])
    assert result.peak == 64
    assert result.offsets == {"a": Placement("arena", 0), "b": Placement("arena", 0)}


def test_the_topmost_buffer_is_not_rounded() -> None:
    result = allocate([BufferRequest("a", 10, 0, 2), BufferRequest("b", 20, 0, 2)])
    assert (result.peak, result.status) == (36, "optimal")


def test_a_small_buffer_fills_an_alignment_gap() -> None:
    buffers = [
        BufferRequest("a", 40, 0, 1, align=64),
        BufferRequest("b", 40, 0, 1, align=64),
        BufferRequest("c", 24, 0, 1, align=8),
    ]
    result = allocate(buffers)
    assert problems(buffers, result) == []
    assert (result.peak, result.status) == (104, "optimal")


def test_empty_buffers_take_no_place() -> None:
    result = allocate([BufferRequest("a", 0, 0, 9), BufferRequest("b", 32, 0, 9), BufferRequest("c", 0, 0, 9, pin=16)])
    assert (result.peak, result.offsets["c"].offset) == (32, 16)


def test_pinned_buffers_stay_and_others_go_around() -> None:
    buffers = [
        BufferRequest("a", 32, 0, 4, pin=32),
        BufferRequest("b", 32, 0, 4),
        BufferRequest("c", 48, 1, 3),
        BufferRequest("d", 32, 4, 5),
    ]
    result = allocate(buffers)
    assert problems(buffers, result) == []
    assert (result.peak, result.status, result.offsets["d"].offset) == (112, "optimal", 0)


def test_aliases_share_storage_and_unite_lifetimes() -> None:
    buffers = [
        BufferRequest("whole", 64, 3, 5),
        BufferRequest("low", 32, 0, 4, alias="whole"),
        BufferRequest("high", 32, 2, 4, alias="whole", alias_offset=32),
        BufferRequest("part", 16, 2, 6, alias="high", alias_offset=16),
        BufferRequest("other", 64, 5, 6),
        BufferRequest("later", 64, 6, 7),
    ]
    result = allocate(buffers)
    assert problems(buffers, result) == []
    base = result.offsets["whole"].offset
    assert result.offsets["part"].offset == base + 48
    assert (result.peak, result.status) == (128, "optimal")


def test_a_pin_on_an_alias_holds_the_whole_storage() -> None:
    result = allocate([BufferRequest("a", 64, 0, 2), BufferRequest("b", 16, 0, 2, alias="a", alias_offset=16, pin=80)])
    assert result.offsets["a"].offset == 64


@pytest.mark.parametrize(("buffers", "least"), [(GAP, 22), (STAIRS, 7)])
def test_a_gap_that_no_packing_closes_is_proven(buffers: list[BufferRequest], least: int) -> None:
    result = allocate(buffers)
    assert problems(buffers, result) == []
    assert least == least_peak(buffers)
    assert (result.peak, result.lower_bound, result.status) == (least, least, "optimal")


def test_a_capacity_that_no_packing_meets_is_refused_after_search() -> None:
    least = least_peak(GAP)
    with pytest.raises(TilewrightError) as raised:
        allocate(GAP, capacity=least - 1)
    assert raised.value.what == f"bank 'arena' needs at least {least} bytes, {least - 1} given"
    assert raised.value.reasons[-1] == f"the smallest size known to work is {least} bytes"


@pytest.mark.parametrize("seed", range(6))
def test_a_cut_block_is_put_together_again(seed: int) -> None:
    buffers = cut_block(seed, pieces=40, height=4096, width=64)
    result = allocate(buffers)
    assert problems(buffers, result) == []
    assert (result.peak, result.status) == (4096, "optimal")


def test_the_same_seed_gives_the_same_result() -> None:
    buffers = cut_block(11, pieces=60, height=65536, width=100)
    first, second = (allocate(buffers, seconds=1.0, seed=4) for _ in range(2))
    assert first == second


def test_search_ends_when_the_capacity_is_met() -> None:
    result = allocate(GAP, capacity=24)
    assert problems(GAP, result, {"arena": 24}) == []
    assert (result.peak, result.lower_bound, result.status) == (22, 18, "feasible")


def test_work_without_search_grows_with_the_network() -> None:
    def network(count: int) -> list[BufferRequest]:
        return [BufferRequest(f"t{i}", (i * 37 % 63 + 1) * 1024, i, i + (2, 2, 2, 3, 5)[i % 5]) for i in range(count)]

    networks = [network(count) for count in (100, 200, 400)]
    assert problems(networks[-1], allocate(networks[-1], seconds=0.0)) == []
    assert_linear([lines_run(lambda n=n: allocate(n, seconds=0.0)) for n in networks])


def test_the_smallest_gap_with_room_is_taken() -> None:
    taken = [(20, 30), (0, 4), (12, 20), (25, 28)]
    assert [smallest_gap(size, taken, 40) for size in (1, 8, 9, 10, 11)] == [4, 4, 30, 30, None]
    assert smallest_gap(3, [], 3) == 0


def test_banks_are_taken_in_the_order_named() -> None:
    buffers = [BufferRequest(name, 64, 0, 2, bank=("fast", "slow")) for name in "abc"]
    result = allocate([*buffers, BufferRequest("d", 16, 0, 2, bank=("slow",))], capacity={"fast": 128})
    assert sorted(place.bank for place in result.offsets.values()) == ["fast", "fast", "slow", "slow"]
    assert (result.peaks, result.status) == ({"fast": 128, "slow": 80}, "optimal")


def test_banks_without_capacity_hold_every_first_choice() -> None:
    result = allocate([BufferRequest(name, 64, 0, 2, bank=("fast", "slow")) for name in "abc"])
    assert result.peaks == {"fast": 192, "slow": 0}


small_buffers = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(1, 4), st.sampled_from((1, 1, 2, 4)), st.booleans()),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(small_buffers)
def test_small_optima_are_those_of_brute_force(rows: list[tuple[int, int, int, int, bool]]) -> None:
    buffers = [
        BufferRequest(f"b{i}", size, first, first + length, align=align, pin=8 if pinned and i == 0 else None)
        for i, (size, first, length, align, pinned) in enumerate(rows)
    ]
    result = allocate(buffers)
    assert problems(buffers, result) == []
    assert (result.peak, result.status) == (least_peak(buffers), "optimal")


@settings(max_examples=40, deadline=None)
@given(small_buffers, st.integers(1, 8), st.integers(1, 12))
def test_small_banks_are_those_of_brute_force(
    rows: list[tuple[int, int, int, int, bool]], fast: int, slow: int
) -> None:
    buffers = [
        BufferRequest(f"b{i}", size, first, first + length, align=align, bank=("fast", "slow") if free else ("slow",))
        for i, (size, first, length, align, free) in enumerate(rows)
    ]
    capacity = {"fast": fast, "slow": slow}
    expected = least_spill(buffers, capacity)
    if expected is None:
        with pytest.raises(TilewrightError, match="does-not-fit"):
            allocate(buffers, capacity=capacity)
        return
    result = allocate(buffers, capacity=capacity)
    assert problems(buffers, result, capacity) == []
    spilled = sum(b.size for b in buffers if b.bank and len(b.bank) > 1 and result.offsets[b.name].bank == "slow")
    assert spilled == expected


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 30))
def test_no_allocation_is_wrong(seed: int, count: int) -> None:
    chance = random.Random(seed)
    buffers: list[BufferRequest] = []
    for index in range(count):
        first, size = chance.randrange(40), chance.randrange(300)
        last, align = first + chance.randrange(1, 20), chance.choice((1, 4, 16, 64))
        alias = chance.choice(buffers).name if buffers and chance.random() < 0.2 else None
        offset = 64 * chance.randrange(3) if alias else 0
        buffers.append(BufferRequest(f"b{index}", size, first, last, align, alias=alias, alias_offset=offset))
    result = allocate(buffers, seconds=0.02)
    assert problems(buffers, result) == []
    assert (result.status == "optimal") == (result.peak == result.lower_bound)


def published(path: Path) -> tuple[list[BufferRequest], int]:
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    buffers = [
        BufferRequest(row["id"], int(row["size"]), int(row["lower"]), int(row["upper"]), align=1) for row in rows
    ]
    return buffers, int(path.name.split(".")[-2])


@pytest.mark.cases
def test_published_instances_meet_their_capacities(cases: Path) -> None:
    """With the usual effort, which is counted in steps of the search."""
    paths = sorted((cases / "minimalloc").glob("*.csv"))
    assert paths
    for path in paths:
        buffers, capacity = published(path)
        live = max(sum(b.size for b in buffers if b.first <= at.first < b.last) for at in buffers)
        result = allocate(buffers, capacity=capacity)
        assert problems(buffers, result, {"arena": capacity}) == [], path.name
        assert live < capacity or result.status == "optimal", path.name
