"""What is left to the driver, and where cores meet."""

from __future__ import annotations

import pytest

from tilewright.codegen.roles import with_roles
from tilewright.core.expr import Expr, Var
from tilewright.core.plan import Place
from tilewright.core.program import (
    AwaitEngine,
    AwaitTransfers,
    Copy,
    Driven,
    For,
    If,
    Let,
    Mark,
    Meet,
    OnCores,
    Pointer,
    Routine,
    StartEngine,
    Statement,
)
from tilewright.core.program import Test as Comparison

WORK = OnCores("core", 8, ())
MARK = Mark(0, "work")
WAIT = AwaitTransfers(1)
SOMETIMES = (Comparison(Expr(((Var("t", 0, 3), 1),)), ">", 0),)


def copy(to: str, source: str) -> Copy:
    return Copy(0, Pointer(Place(to, 0), "void", False), Pointer(Place(source, 0), "void", True), 4, (), (), (), 3)


LOAD, WITHIN = copy("L1", "L2"), copy("L1", "L1")


def roles(*bodies: tuple[Statement, ...]) -> list[tuple[Statement, ...]]:
    return [r.body for r in with_roles([Routine(f"r{i}", "", body) for i, body in enumerate(bodies)], "L1")]


def test_cores_meet_once_where_nothing_is_waited_for() -> None:
    assert roles((WORK, MARK, WORK), (MARK, WORK)) == [(Meet(), WORK, MARK, WORK), (MARK, WORK)]


def test_what_drives_is_apart_and_cores_meet_behind_it() -> None:
    assert roles((LOAD, WAIT, WORK), (AwaitEngine("npu"), WORK)) == [
        (Driven((LOAD, WAIT)), Meet(), WORK),
        (Driven((AwaitEngine("npu"),)), Meet(), WORK),
    ]


def test_marks_are_passed_by_all() -> None:
    assert roles((LOAD, MARK, WAIT)) == [(Driven((LOAD,)), MARK, Driven((WAIT,)))]


def test_cores_copy_within_their_memory() -> None:
    assert roles((WITHIN, WORK)) == [(WITHIN, Meet(), WORK)]


@pytest.mark.parametrize(("inner", "meets"), [((MARK, WORK), False), ((WORK, WAIT), True), ((WAIT, WORK), True)])
def test_turns_of_a_loop_begin_as_the_one_before_ended(inner: tuple[Statement, ...], meets: bool) -> None:
    (body,) = roles((WORK, For("t", 0, 4, inner)))
    assert isinstance(body[2], For)
    assert (Meet() in body[2].body) == meets


def test_a_wait_that_may_not_come_counts() -> None:
    let = Let("v", 3)
    (body,) = roles((WORK, If(SOMETIMES, (let, WAIT)), WORK))
    assert body == (Meet(), WORK, Driven((If(SOMETIMES, (let, WAIT)),)), Meet(), WORK)


def test_work_that_may_not_come_does_not_count() -> None:
    (body,) = roles((If(SOMETIMES, (WORK,)), WORK))
    assert body == (If(SOMETIMES, (Meet(), WORK)), Meet(), WORK)


def test_another_engine_is_started_by_what_drives() -> None:
    (body,) = roles((WORK, StartEngine("npu", (), (LOAD,)), WORK))
    assert body == (Meet(), WORK, StartEngine("npu", (), (Driven((LOAD,)),)), Meet(), WORK)
