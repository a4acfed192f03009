"""Moves and runs: the points at which they happen, what is done in which order, and the textual form of plans."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from passes.build import Builder, platform
from plan.tiled_plans import by_layer, crossing, fused, moving, schedule_of, scheduled
from support import Golden
from tilewright.core.actions import ORDER, MoveAction, Section, actions
from tilewright.core.moves import Move, Point, Side
from tilewright.core.plan import Group, Plan, TileBuffer
from tilewright.core.plan_text import print_plan
from tilewright.machine.parts import Device
from tilewright.plan import plan
from tilewright.plan.points import Crossing, points
from tilewright.timeline.parts import Facts


def with_buffer(made: Plan, number: int, index: int, **changes: Any) -> Plan:
    groups = list(schedule_of(made).groups)
    buffers = groups[number].buffers
    groups[number] = replace(
        groups[number], buffers=tuple(replace(b, **changes) if n == index else b for n, b in enumerate(buffers))
    )
    return scheduled(made, groups=tuple(groups))


def beside(made: Plan, number: int, change: Callable[[Group], Group]) -> Plan:
    """The first node of a group on another engine, a step ahead of the others."""
    engines = {**made.platform.engines, "array": Device(name="array", memory="L1")}
    groups = list(schedule_of(made).groups)
    step = groups[number].works[0].step
    groups[number] = change(replace(groups[number], ahead=True))
    choices = tuple(replace(c, engine="array") if n == step else c for n, c in enumerate(made.choices))
    other = replace(made, platform=replace(made.platform, engines=MappingProxyType(engines)), choices=choices)
    return scheduled(other, groups=tuple(groups))


PLANS: dict[str, Callable[[], Plan]] = {
    "by_layer": by_layer,
    "fused": fused,
    "prefetched": lambda: crossing(by_layer(), 3, 0, early=2),
    "drained_late": lambda: crossing(by_layer(), 1, 1, late=1),
    "ahead": lambda: beside(fused(keep=False), 0, lambda g: g),
    "queued": lambda: beside(by_layer(), 0, lambda g: g),
}

SORTED: tuple[Section, ...] = ("entry", "ahead", "before", "ending", "after", "exit")


@pytest.mark.parametrize("name", PLANS)
def test_text(name: str, golden: Golden) -> None:
    golden(f"plans/{name}.txt", print_plan(moving(PLANS[name]())))


def test_text_of_a_plan_on_whole_tensors(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,4]")
    total = b.op("Add", x, x, name="sum")
    graph = b.graph(b.op("MatMul", b.op("Reshape", total, [4, 2], name="v"), b.weights(2, 3), name="y"))
    golden("plans/whole.txt", print_plan(plan(graph, platform())))


def of(made: Plan, kind: str, group: int, buffer: int) -> list[Move]:
    moves = schedule_of(moving(made)).moves
    return [move for move in moves if (move.kind, move.group, move.buffer) == (kind, group, buffer)]


def test_loads_run_as_far_ahead_as_there_are_slots() -> None:
    sides: dict[int, Side] = {1: "before", 2: "beside", 3: "beside"}
    for slots, side in sides.items():
        (load,) = of(with_buffer(by_layer(), 0, 0, slots=slots), "load", 0, 0)
        assert load.issue == Point(0, "each", side, 1 - slots)
        assert load.wait == Point(0, "each")


def test_a_prefetch_is_the_first_part_of_a_load() -> None:
    first, rest = of(PLANS["prefetched"](), "load", 3, 0)
    assert (first.tiles, first.issue, first.wait) == ("first", Point(1, "first", "beside"), Point(2, "last", "ending"))
    assert (rest.tiles, rest.issue.group) == ("rest", 3)


def test_what_is_left_there_is_not_moved() -> None:
    assert of(crossing(with_buffer(by_layer(), 2, 1, slots=1), 2, 1, kept=1), "load", 2, 1) == []


def test_the_last_store_is_left_to_the_group_behind() -> None:
    most, last = of(PLANS["drained_late"](), "store", 1, 1)
    assert (most.tiles, most.issue) == ("but last", Point(1, "each", "beside", 1))
    assert (last.tiles, last.issue, last.wait) == ("last", Point(2, "first", "beside"), Point(2, "last", "ending"))


def test_an_engine_is_started_a_step_ahead() -> None:
    run = schedule_of(moving(PLANS["ahead"]())).runs[0]
    assert (run.engine, run.start.shift, run.wait) == ("array", -1, Point(0, "each", "ending", -1))
    queue = schedule_of(moving(PLANS["queued"]())).runs[0]
    assert queue.start.shift < queue.wait.shift == 0


@pytest.mark.parametrize("name", PLANS)
def test_everything_is_done_in_order(name: str) -> None:
    """Every move is started and awaited; in a section, things that are ordered by kind are."""
    schedule = schedule_of(moving(PLANS[name]()))
    found = actions(len(schedule.groups), schedule.moves, schedule.runs)
    every = [action for each in found for section in each.sections.values() for action in section]
    done = [(action.what, action.move) for action in every if isinstance(action, MoveAction)]
    for move in schedule.moves:
        kinds = {what for what, other in done if other is move}
        assert kinds & {"load", "prefetch", "store", "hand on", "stage"}
        assert kinds & {"arrived", "prefetched", "drain", "drain late", "staged"} or move.tiles == "but last"
    for each in found:
        for section in SORTED:
            ranks = [ORDER[section].index(action.what) for action in each.at(section)]
            assert ranks == sorted(ranks)


def test_an_engine_is_started_before_loads_that_it_does_not_need() -> None:
    schedule = schedule_of(moving(PLANS["ahead"]()))
    done = actions(len(schedule.groups), schedule.moves, schedule.runs)[0].at("beside")
    started = next(place for place, action in enumerate(done) if action.what == "start")
    loads = [(place, action) for place, action in enumerate(done) if action.what == "load"]
    assert loads
    for place, action in loads:
        assert isinstance(action, MoveAction)
        needed = action.point.shift == -1 and action.move.wait == done[started].point
        assert (place < started) == needed


@pytest.mark.parametrize("by_cores", [False, True])
def test_results_are_stored_before_cores_copy_to_their_place(by_cores: bool) -> None:
    """Cores copy what lies in their own memory at the start of a turn, for the step after it."""
    total = schedule_of(by_layer()).groups[2]
    facts = Facts(4, {0: 0, 1: 0}, {2: 4}, [0], frozenset({0}) if by_cores else frozenset(), [""])
    moves, _ = points([total], [facts], (), {})
    store = next(move for move in moves if move.kind == "store")
    assert store.issue == (Point(0, "each", "after") if by_cores else Point(0, "each", "beside", 1))


def test_constants_in_a_row_are_one_transfer() -> None:
    """Those that nobody else loads, and whose end is where the next one begins behind the engine, too."""
    names, sizes = ("a", "b", "c", "shared"), {"a": 32, "b": 16, "c": 8, "shared": 16}
    offsets = {"b": 64, "a": 32, "c": 80, "shared": 88}
    buffers = tuple(TileBuffer(name, offsets[name], sizes[name], 1) for name in names)
    first, last = (Group((), (), mine, {}) for mine in ((TileBuffer("shared", 0, 16, 1),), buffers))
    facts = [Facts(1, dict.fromkeys(range(len(g.buffers)), 0), {}, [0], frozenset(), [""]) for g in (first, last)]
    early = {(1, buffer): Crossing(early=1) for buffer in range(len(names))}

    def joining(constants: dict[str, int]) -> list[tuple[str, bool]]:
        moves, _ = points([first, last], facts, (), early, constants=constants)
        return [(buffers[move.buffer].tensor, move.joins) for move in moves if move.group == 1]

    assert joining(sizes) == [("a", False), ("b", True), ("c", True), ("shared", False)]
    assert not any(joins for _, joins in joining({}))
    assert joining({**sizes, "b": 40})[1] == ("b", False)
