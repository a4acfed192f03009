"""Jobs are described and queued before the last wait that their start comes behind, transfers awaited before jobs."""

from __future__ import annotations

from msgspec.structs import replace

from tilewright.codegen.early import described_early, queued_behind, started_first, transfers_first
from tilewright.core.expr import Expr, Var
from tilewright.core.plan import Place
from tilewright.core.program import (
    AwaitEngine,
    AwaitTransfers,
    Copy,
    Driven,
    For,
    If,
    Invoke,
    Let,
    Mark,
    Meet,
    OnCores,
    Pointer,
    Routine,
    StartEngine,
    Statement,
)
from tilewright.core.program import Test as Holds

FIRST, SECOND = (StartEngine("npu", (Invoke(name, (), ""),), single=True) for name in ("first", "second"))
TOLD, GO = replace(SECOND, goes=False), replace(SECOND, body=())
DONE, LOADED, MARK = AwaitEngine("npu"), AwaitTransfers(1), Mark(0, "work")
LOAD = Copy(0, Pointer(Place("L1", 0), "void", False), Pointer(Place("L2", 0), "void", True), 4, (), (), (), 3)


def early(*bodies: tuple[Statement, ...], engine: str = "npu") -> list[tuple[Statement, ...]]:
    return [r.body for r in described_early([Routine(f"r{i}", "", body) for i, body in enumerate(bodies)], [engine])]


def cores(*beside: Statement) -> OnCores:
    return OnCores("core", 8, (), beside)


def test_beside_the_cores_that_come_before() -> None:
    assert early((cores(), MARK), (MARK, SECOND)) == [(cores(TOLD), MARK), (MARK, GO)]
    assert early((cores(LOAD, LOADED), SECOND)) == [(cores(LOAD, TOLD, LOADED), GO)]


def test_beside_the_job_before() -> None:
    assert early((FIRST, Driven((DONE,)), Meet(), cores(MARK, SECOND, DONE))) == [
        (FIRST, TOLD, Driven((DONE,)), Meet(), cores(MARK, GO, DONE))
    ]
    assert early((MARK, cores(FIRST, DONE)), (cores(SECOND),)) == [(MARK, cores(FIRST, TOLD, DONE)), (cores(GO),)]


def test_before_the_last_waits_of_what_drives() -> None:
    assert early((Driven((LOAD, LOADED)), Meet(), SECOND)) == [(Driven((LOAD, TOLD, LOADED)), Meet(), GO)]


def test_before_transfers_that_are_merely_started() -> None:
    assert early((cores(LOADED),), (Driven((LOAD,)), SECOND)) == [(cores(TOLD, LOADED),), (Driven((LOAD,)), GO)]


def test_only_where_something_is_waited_for() -> None:
    alone = (SECOND, DONE)
    at_once = (Driven((LOAD,)), MARK, SECOND)
    named = (cores(), Let("t", 3), SECOND)
    several = (cores(), replace(SECOND, body=(*SECOND.body, *SECOND.body)))
    assert early(at_once, alone, named, several) == [at_once, alone, named, several]
    assert early((cores(), SECOND), engine="other") == [(cores(), SECOND)]


def queued(*bodies: tuple[Statement, ...], engine: str = "npu") -> list[tuple[Statement, ...]]:
    return [r.body for r in queued_behind([Routine(f"r{i}", "", body) for i, body in enumerate(bodies)], [engine])]


def test_a_job_is_queued_behind_the_one_that_is_awaited() -> None:
    before = AwaitEngine("npu", recent=False)
    assert queued((FIRST, Driven((LOADED, DONE)), MARK), (MARK, Meet(), cores(MARK, SECOND, LOAD))) == [
        (FIRST, Driven((LOADED, before, MARK, SECOND, before)), MARK),
        (MARK, Meet(), cores(LOAD)),
    ]


def test_a_job_is_not_queued_behind_anything_else() -> None:
    loaded = (FIRST, Driven((DONE, LOADED)), Meet(), cores(SECOND))
    between = (FIRST, Driven((DONE,)), Driven((LOAD,)), cores(SECOND))
    later = (FIRST, Driven((DONE,)), Meet(), cores(LOAD, SECOND))
    worked = (FIRST, Driven((DONE,)), cores(), cores(SECOND))
    assert queued(loaded, between, later, worked) == [loaded, between, later, worked]
    alone = (FIRST, Driven((DONE,)), cores(SECOND))
    assert queued(alone, engine="other") == [alone]


def first(*bodies: tuple[Statement, ...]) -> list[tuple[Statement, ...]]:
    return [r.body for r in started_first([Routine(f"r{i}", "", body) for i, body in enumerate(bodies)])]


AWAITED, BEFORE = Driven((DONE,)), Driven((AwaitEngine("npu", recent=False),))


def test_a_group_starts_its_job_before_that_of_the_last_one_is_awaited() -> None:
    """The first wait, which is over at once, tells what the one behind the start waits for."""
    assert first((FIRST, AWAITED, MARK), (MARK, SECOND, Driven((LOAD,)), AWAITED), (MARK, FIRST, AWAITED)) == [
        (FIRST, BEFORE, MARK),
        # This one is told from what comes behind it already.
        (MARK, replace(SECOND, beside=(BEFORE,)), Driven((LOAD,))),
        (MARK, replace(FIRST, beside=(BEFORE,)), AWAITED),
    ]


def turns(*body: Statement, start: int = -1) -> For:
    """A loop that starts each step before it awaits the one before."""
    now = Expr(((Var("t", start, 3), 1),))
    started = If((Holds(now + 1, ">=", 0), Holds(now + 1, "<", 4)), (Driven((LOADED,)), FIRST))
    return For("t", start, 4, (started, Driven((If((Holds(now, "<", 3),), BEFORE.body),)), *body))


def test_so_does_a_loop() -> None:
    behind = (turns(), AWAITED)
    assert first((SECOND, AWAITED), behind, (MARK, SECOND, AWAITED)) == [
        (SECOND, BEFORE),
        (turns(),),
        (MARK, replace(SECOND, beside=(BEFORE,)), AWAITED),
    ]


def test_but_not_before_anything_else() -> None:
    loaded = (FIRST, AWAITED), (Driven((LOAD, LOADED)), SECOND)
    stored = (FIRST, Driven((DONE, LOAD))), (SECOND, AWAITED)
    other = (FIRST, AWAITED), (replace(SECOND, engine="other"), Driven((AwaitEngine("other"),)))
    worked = (FIRST, AWAITED, Meet(), cores()), (SECOND,)
    early = (FIRST, AWAITED), (turns(start=-2),), (turns(Driven((LOAD,)), start=-2),)
    for bodies in (loaded, stored, other, worked):
        assert first(*bodies) == [*bodies]
    assert first((FIRST, AWAITED), (For("t", -2, 4, (Driven((LOAD,)), *turns().body)),))[0] == (FIRST, AWAITED)
    assert first(*early)[0] == (FIRST, AWAITED)


def ordered(*bodies: tuple[Statement, ...]) -> list[tuple[Statement, ...]]:
    return [r.body for r in transfers_first([Routine(f"r{i}", "", body) for i, body in enumerate(bodies)])]


def test_transfers_are_awaited_before_jobs() -> None:
    assert ordered((cores(FIRST, MARK, DONE, LOADED, LOAD, LOADED),)) == [
        (cores(FIRST, LOADED, MARK, DONE, LOAD, LOADED),)
    ]
    assert ordered((Driven((LOAD, DONE)), MARK), (MARK, Driven((LOADED,)), Meet())) == [
        (Driven((LOAD, LOADED, DONE)), MARK),
        (MARK, Meet()),
    ]


def test_transfers_are_awaited_where_they_are_behind_anything_else() -> None:
    alone = (Driven((LOAD, LOADED)), Meet(), Driven((LOADED, DONE)))
    apart = (Driven((DONE,)), Meet(), Driven((LOADED,)))
    assert ordered(alone, apart) == [alone, apart]


def test_calls_that_start_jobs_on_their_way_stay() -> None:
    two = replace(SECOND, single=False)
    assert early((cores(), MARK), (MARK, two)) == [(cores(), MARK), (MARK, two)]


def test_what_depends_on_a_size_of_the_run_is_not_taken_for_a_start() -> None:
    """Whether a job is started there, and so what is told of it, is known when it runs."""
    some = If((Holds(Expr(((Var("size_0", 0, 64), 1),)), ">", 0),), (FIRST,))
    loop = For("t", 0, 4, (some, DONE))
    assert first((SECOND, AWAITED), (loop, AWAITED)) == [(SECOND, AWAITED), (loop, AWAITED)]
    # The wait before it may be told from another one, but not from one behind which a job may have been started.
    assert first((Driven((DONE,)), some, AWAITED), (MARK, SECOND, AWAITED)) == [
        (Driven((DONE,)), some, BEFORE),
        (MARK, replace(SECOND, beside=(BEFORE,)), AWAITED),
    ]


def test_jobs_beside_the_cores_count() -> None:
    cores = OnCores("core", 8, (), (FIRST,))
    assert first((AWAITED, cores, AWAITED), (MARK, SECOND, AWAITED)) == [
        (AWAITED, cores, BEFORE),
        (MARK, replace(SECOND, beside=(BEFORE,)), AWAITED),
    ]
