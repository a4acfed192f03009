"""Task order: hand-made graphs, random ones against all permutations, large ones within bounds."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plan.checker import best_order_peak, order_problems
from support import assert_linear, lines_run
from tilewright.errors import TilewrightError
from tilewright.plan.order import OrderedTask, order

NONE: frozenset[str] = frozenset()


def chain(length: int) -> list[OrderedTask]:
    return [OrderedTask(f"t{i}", (f"x{i}",), (f"x{i + 1}",)) for i in range(length)]


def random_tasks(seed: int, count: int, *, reach: int) -> tuple[list[OrderedTask], dict[str, int]]:
    chance = random.Random(seed)
    tasks: list[OrderedTask] = []
    sizes = {"in": chance.randrange(1, 50)}
    for index in range(count):
        pool = ["in", *(name for task in tasks[-reach:] for name in task.makes)]
        needs = tuple(dict.fromkeys(chance.choice(pool) for _ in range(chance.choice((1, 1, 2, 3)))))
        makes = tuple(f"x{index}.{k}" for k in range(chance.choice((1, 1, 1, 2))))
        sizes |= {name: chance.randrange(0, 50) for name in makes}
        tasks.append(OrderedTask(f"t{index}", needs, makes))
    return tasks, sizes


def test_no_tasks() -> None:
    found = order([], {"kept": 7}, frozenset({"kept"}))
    assert (found.names, found.peak, found.optimal) == ((), 7, True)


def test_the_branch_that_shrinks_runs_first() -> None:
    tasks = [
        OrderedTask("wide", ("in",), ("a",)),
        OrderedTask("narrow", ("in",), ("b",)),
        OrderedTask("shrink", ("b",), ("c",)),
        OrderedTask("join", ("a", "c"), ("out",)),
    ]
    found = order(tasks, {"in": 10, "a": 50, "b": 40, "c": 1, "out": 1}, NONE)
    assert found.names == ("narrow", "shrink", "wide", "join")
    assert (found.peak, found.optimal) == (61, True)


def test_kept_buffers_never_die() -> None:
    found = order(chain(4), {f"x{i}": 10 for i in range(5)}, frozenset({"x0", "x2"}))
    assert (found.peak, found.optimal) == (40, True)


def test_a_result_that_nobody_needs_dies_at_once() -> None:
    tasks = [OrderedTask("a", ("in",), ("unused", "x")), OrderedTask("b", ("x",), ("y",))]
    assert order(tasks, {"in": 1, "unused": 100, "x": 2, "y": 50}, NONE).peak == 103


def test_buffers_without_a_size_still_order_tasks() -> None:
    tasks = [OrderedTask("last", ("view",), ()), OrderedTask("first", (), ("view",))]
    assert order(tasks, {}, NONE).names == ("first", "last")


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 7), st.integers(1, 7), st.booleans())
def test_small_graphs_are_ordered_as_well_as_by_brute_force(seed: int, count: int, reach: int, kept: bool) -> None:
    tasks, sizes = random_tasks(seed, count, reach=reach)
    keep = frozenset({tasks[-1].makes[0], "in"}) if kept else NONE
    random.Random(seed).shuffle(tasks)
    found = order(tasks, sizes, keep)
    assert order_problems(tasks, sizes, keep, found) == []
    assert (found.peak, found.optimal) == (best_order_peak(tasks, sizes, keep), True)


@pytest.mark.parametrize("seed", range(3))
def test_too_many_states_leave_a_valid_order(seed: int) -> None:
    tasks, sizes = random_tasks(seed, 80, reach=40)
    found = order(tasks, sizes, NONE, states=200)
    assert order_problems(tasks, sizes, NONE, found) == []
    assert found == order(tasks, sizes, NONE, states=200)
    assert found.peak <= order(tasks, sizes, NONE, states=0).peak


def residual_blocks(count: int) -> tuple[list[OrderedTask], dict[str, int]]:
    tasks: list[OrderedTask] = []
    sizes = {"x0": 64}
    for i in range(count):
        x, y = f"x{i}", f"x{i + 1}"
        tasks += [
            OrderedTask(f"expand{i}", (x,), (f"e{i}",)),
            OrderedTask(f"act{i}", (f"e{i}",), (f"f{i}",)),
            OrderedTask(f"pool{i}", (f"f{i}",), (f"g{i}",)),
            OrderedTask(f"gate{i}", (f"g{i}",), (f"h{i}",)),
            OrderedTask(f"scale{i}", (f"f{i}", f"h{i}"), (f"p{i}",)),
            OrderedTask(f"project{i}", (f"p{i}",), (f"q{i}",)),
            OrderedTask(f"short{i}", (x,), (f"s{i}",)),
            OrderedTask(f"add{i}", (f"q{i}", f"s{i}"), (y,)),
        ]
        sizes |= {f"e{i}": 384, f"f{i}": 384, f"g{i}": 2, f"h{i}": 2, f"p{i}": 384, f"q{i}": 64, f"s{i}": 64, y: 64}
    return tasks, sizes


def test_a_network_of_residual_blocks_is_proven() -> None:
    tasks, sizes = residual_blocks(60)
    found = order(tasks, sizes, NONE)
    assert order_problems(tasks, sizes, NONE, found) == []
    assert (found.peak, found.optimal) == (64 + 384 + 384 + 2, True)


def long_chain(length: int) -> tuple[list[OrderedTask], dict[str, int]]:
    return chain(length), {f"x{i}": 10 + (i * 7919) % 90 for i in range(length + 1)}


def test_a_long_chain_stays_as_it_is() -> None:
    tasks, sizes = long_chain(400)
    found = order(tasks, sizes, NONE)
    assert (found.names, found.optimal) == (tuple(task.name for task in tasks), True)


@pytest.mark.parametrize(("made", "least"), [(residual_blocks, 15), (long_chain, 100)])
def test_work_grows_with_the_tasks(made: Callable[[int], tuple[list[OrderedTask], dict[str, int]]], least: int) -> None:
    networks = [made(count) for count in (least, 2 * least, 4 * least)]
    assert_linear([lines_run(lambda n=network: order(*n, NONE)) for network in networks])


def test_error_cyclic_graph() -> None:
    with pytest.raises(TilewrightError) as raised:
        order(
            [OrderedTask("a", ("y",), ("x",)), OrderedTask("b", ("x",), ("y",)), OrderedTask("c", (), ("z",))], {}, NONE
        )
    assert (raised.value.code, raised.value.reasons) == ("cyclic-graph", ("a, b",))


def test_error_bad_task() -> None:
    with pytest.raises(TilewrightError) as raised:
        order([OrderedTask("a", (), ("x",)), OrderedTask("b", (), ("x",))], {}, NONE)
    assert (raised.value.code, raised.value.what) == ("bad-task", "'a' and 'b' make the same buffer")
