"""The validator refuses moves and runs that read too early or write what is still needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from plan.test_check_tiles import Corruption, ahead
from plan.tiled_plans import by_layer, moving, schedule_of, scheduled
from tilewright.core.moves import Move, Point
from tilewright.core.plan import Plan
from tilewright.plan import PlanError, check


def moves_of(made: Plan, change: Callable[[Move], Move | None]) -> Plan:
    schedule = schedule_of(made)
    found = (change(move) for move in schedule.moves)
    return scheduled(made, moves=tuple(move for move in found if move is not None))


def changed_in(made: Plan, kind: str, group: int, buffer: int, which: str = "", **changes: Any) -> Plan:
    """A plan with another move of a buffer."""

    def change(move: Move) -> Move:
        mine = (move.kind, move.group, move.buffer) == (kind, group, buffer) and which in ("", move.tiles)
        return replace(move, **changes) if mine else move

    return moves_of(moving(made), change)


def changed(kind: str, group: int, buffer: int, which: str = "", **changes: Any) -> Plan:
    """The plan layer by layer with another move of a buffer."""
    return changed_in(by_layer(), kind, group, buffer, which, **changes)


def without(kind: str, group: int, buffer: int) -> Plan:
    return moves_of(moving(by_layer()), lambda m: None if (m.kind, m.group, m.buffer) == (kind, group, buffer) else m)


def with_run(made: Plan, number: int, **changes: Any) -> Plan:
    runs = schedule_of(moving(made)).runs
    return scheduled(moving(made), runs=tuple(replace(r, **changes) if n == number else r for n, r in enumerate(runs)))


SOONER, AFTER = Point(0, "each", "before", -1), Point(0, "each", "after")
MOVES: list[Corruption] = [
    ("read before it is awaited", lambda: changed("load", 0, 0, wait=AFTER), "is read at 0 step now before it is"),
    (
        "loaded over what is read",
        lambda: changed("load", 0, 0, issue=Point(0, "each", "beside", -2)),
        "is loaded at 0 step-2 beside while node 0 reads what is there",
    ),
    (
        "awaited before it is loaded",
        lambda: changed("load", 0, 0, issue=Point(0, "each", "beside")),
        "is awaited at 0 step before before its load starts",
    ),
    ("not loaded", lambda: without("load", 1, 0), "is not loaded, but no group before leaves all of it"),
    ("half of it loaded", lambda: changed("load", 0, 0, tiles="rest"), "is an operand, but its moves are load rest"),
    ("loaded in no group", lambda: changed("load", 0, 0, issue=Point(-1, "first")), "there is no such buffer or group"),
    ("not stored", lambda: without("store", 0, 2), "is a result, but its moves are none"),
    (
        "last tile not stored",
        lambda: changed("store", 0, 2, "last", tiles="all"),
        "its moves are store but last, store",
    ),
    (
        "stored before it is made",
        lambda: changed("store", 0, 2, "but last", issue=Point(0, "each", "before")),
        "is stored at 0 step before before node 0 is done",
    ),
    (
        "stored beside its own step",
        lambda: changed("store", 0, 2, "but last", issue=Point(0, "each", "beside")),
        "stored",
    ),
    (
        "slots not awaited",
        lambda: changed("store", 0, 2, "but last", reuse=None),
        "is written again, but what was stored",
    ),
    (
        "slots awaited too late",
        lambda: changed("store", 0, 2, "but last", reuse=AFTER),
        "is written again at 0 step now",
    ),
    (
        "slots awaited before they are stored",
        lambda: changed("store", 0, 2, "but last", issue=Point(0, "each", "beside", 2)),
        "is written again at 0 step now",
    ),
    (
        "awaited before it is stored",
        lambda: changed("store", 0, 2, "last", wait=Point(0, "entry")),
        "is awaited at 0 entry before it is stored at 0 last after",
    ),
    ("awaited behind the last group", lambda: changed("store", 3, 1, wait=Point(4, "exit")), "no such buffer or group"),
    (
        "still stored when it is read, too",
        lambda: changed("store", 0, 2, wait=Point(1, "last", "ending")),
        "'a' is loaded at 1 step-1 beside, but is not there by then",
    ),
    (
        "loaded over what is stored",
        lambda: changed("load", 2, 0, behind=()),
        "is loaded over buffer 2, whose stores are not awaited",
    ),
    ("copy that nothing makes", lambda: without("stage", 1, 0), "copy of 'c1' in L1: no move fills it"),
    (
        "copy awaited too late",
        lambda: changed("stage", 1, 0, wait=Point(1, "exit")),
        "copy of 'c1' in L1: no move fills it from group 0 to the entry of group 1",
    ),
    ("node that does not run", lambda: scheduled(moving(by_layer()), runs=()), "0 runs of 4 nodes"),
    (
        "node that runs once",
        lambda: with_run(by_layer(), 0, start=Point(0, "first")),
        "does not run at each of its steps",
    ),
    (
        "node on the cores that runs ahead",
        lambda: with_run(by_layer(), 0, start=SOONER, wait=SOONER),
        "is for 'cpu', but the first node alone runs ahead",
    ),
    (
        "node that runs before its operand is loaded",
        lambda: with_run(ahead(by_layer()), 0, start=Point(0, "each", "before", -2)),
        "is read at 0 step-2 before before it is awaited at 0 step-1 before",
    ),
    (
        "node that is awaited too late",
        lambda: with_run(ahead(by_layer()), 0, wait=Point(0, "each", "after", 1)),
        "is stored at 0 step after before node 0 is done with it",
    ),
    (
        "node that is awaited when it is loaded over",
        lambda: changed_in(ahead(by_layer()), "load", 0, 0, issue=Point(0, "each", "before", -2)),
        "is loaded at 0 step-2 before while node 0 reads what is there",
    ),
]


@pytest.mark.parametrize(("broken", "message"), [c[1:] for c in MOVES], ids=[c[0] for c in MOVES])
def test_a_wrong_move_is_refused(broken: Callable[[], Plan], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        check(broken())
    assert message in str(caught.value)
