"""Kernels that begin before all that they read is there: what is planned for them, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from language_models import tiny
from plan.tiled_plans import schedule_of, scheduled
from tilewright.core.moves import Move, Point
from tilewright.core.plan import Plan
from tilewright.language.graphs import integer_graph
from tilewright.language.weight_bits import integer_model
from tilewright.machine.target import load_platform
from tilewright.passes import run_pipeline
from tilewright.plan import PlanError, check, plan


@cache
def decoder() -> Plan:
    """Each head has a core, and values of the cache come behind its keys."""
    platform = load_platform("siracusa")
    graph = integer_graph(integer_model(tiny(dim=128, context=64)))
    return plan(run_pipeline(graph, platform), platform)


def moves_of(made: Plan, operand: str) -> list[Move]:
    """Loads of an operand of attention."""
    groups, found = schedule_of(made).groups, list[Move]()
    for move in schedule_of(made).moves:
        if move.kind == "load" and groups[move.group].works[0].buffers.get(operand) == move.buffer:
            node = made.graph.nodes[groups[move.group].works[0].step]
            found += [move] if node.op == "iAttention" else []
    return found


def with_waits(made: Plan, operand: str, point: Callable[[Move], Point]) -> Plan:
    loads = moves_of(made, operand)
    return scheduled(made, moves=tuple(replace(m, wait=point(m)) if m in loads else m for m in schedule_of(made).moves))


def test_values_are_awaited_by_attention_itself() -> None:
    made = decoder()
    check(made)
    waits = [(move.wait.turn, move.wait.side, move.wait.group - move.group) for move in moves_of(made, "V")]
    assert waits == [("last", "inside", 0)] * 2
    assert all(move.wait.side != "inside" for move in moves_of(made, "K"))


def test_what_it_begins_with_is_loaded_before_them() -> None:
    schedule = schedule_of(decoder())
    for late in moves_of(decoder(), "V"):
        others = [m for m in schedule.moves if m.kind == "load" and m.group == late.group and m.buffer != late.buffer]
        assert all(m.issue.group <= late.issue.group for m in others)
        assert all(schedule.moves.index(m) < schedule.moves.index(late) for m in others)


def keys_too() -> Plan:
    return with_waits(decoder(), "K", lambda move: Point(move.group, "last", "inside"))


def later_than_that() -> Plan:
    return with_waits(decoder(), "V", lambda move: Point(move.group, "last", "ending"))


def by_another_group() -> Plan:
    return with_waits(decoder(), "V", lambda move: Point(move.group + 1, "last", "inside"))


@pytest.mark.parametrize("wrong", [keys_too, later_than_that, by_another_group])
def test_only_what_a_kernel_awaits_may_come_late(wrong: Callable[[], Any]) -> None:
    with pytest.raises(PlanError, match="before it is awaited"):
        check(wrong())
