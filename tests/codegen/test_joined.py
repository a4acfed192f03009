"""Transfers that go together: neighbours on both sides are one, and a channel is awaited once."""

from __future__ import annotations

import numpy as np

from passes.build import Builder
from tilewright.api import Options, run_model
from tilewright.codegen.constant_rows import constant_rows
from tilewright.codegen.joined import joined
from tilewright.codegen.lower import lower
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.core.plan import Place
from tilewright.core.program import AwaitTransfers, Copy, Driven, Mark, OnCores, Pointer, Routine, Statement
from tilewright.machine.target import Sizes


def load(to: int, source: int, size: int, channel: int = 3) -> Copy:
    near, home = Pointer(Place("L1", to), "void", False), Pointer(Place("constant", source), "void", True)
    return Copy(channel, near, home, size, (), (), (), 2)


def in_routine(*statements: Statement) -> tuple[Statement, ...]:
    return joined([Routine("group_0", "", statements)])[0].body


def test_neighbours_on_both_sides_are_one_transfer() -> None:
    assert in_routine(load(0, 64, 32), load(32, 96, 16), load(48, 112, 8)) == (load(0, 64, 56),)
    beside = OnCores("core", 8, (), (load(0, 64, 32), load(32, 96, 16)))
    assert in_routine(beside) == (OnCores("core", 8, (), (load(0, 64, 48),)),)


def test_others_are_not() -> None:
    """There is a gap on one side, they lie the other way round, or are awaited apart; what is between them counts."""
    for other in (load(32, 112, 16), load(40, 96, 16), load(-16, 48, 16), load(32, 96, 16, channel=4)):
        assert in_routine(load(0, 64, 32), other) == (load(0, 64, 32), other)
    apart = (load(0, 64, 32), AwaitTransfers(3), load(32, 96, 16))
    assert in_routine(*apart) == apart
    rows = Copy(3, load(32, 0, 8).to, load(0, 96, 8).source, 8, (2,), (8,), (16,), 2)
    assert in_routine(load(0, 64, 32), rows) == (load(0, 64, 32), rows)


def test_a_channel_is_awaited_once() -> None:
    waits = (AwaitTransfers(3), AwaitTransfers(4), AwaitTransfers(3))
    assert in_routine(Driven(waits)) == (Driven(waits[:2]),)
    started = (AwaitTransfers(3), load(0, 0, 8), AwaitTransfers(3))
    assert in_routine(Driven(started)) == (Driven(started),)
    marked = (AwaitTransfers(3), Mark(0, "now"), AwaitTransfers(4))
    assert in_routine(Driven(marked)) == (Driven(marked),)


def scaled(columns: int, layers: int = 3) -> Graph:
    """Products whose sums are scaled back by factors of each column."""
    b, random = Builder(), np.random.default_rng(1)
    x = b.input("x", f"int8[4,{columns}]")
    for _ in range(layers):
        sums = b.op("MatMul", x, random.integers(-99, 99, (columns, columns)).astype(np.int8))
        mul, add = (random.integers(1, 900, columns).astype(np.int32) for _ in range(2))
        x = b.op("RequantShift", sums, mul, add, div=1 << 16, n_levels=256, axis=-1)
    return b.graph(x)


def right(columns: int) -> str:
    """The chip computes what the reference does; the program."""
    graph = scaled(columns)
    x = np.arange(4 * columns).astype(np.int8).reshape(4, columns)
    ran = run_model(graph, Options(platform="siracusa", sizes=Sizes(without=("neureka",))), inputs=[x])
    np.testing.assert_array_equal(ran.outputs[0], interpret(graph, [x])[0])
    rows = constant_rows(lower(ran.compiled.plan, "network"))
    assert any(len(row.constants) > 1 for row in rows)
    assert sum(len(row.constants) for row in rows) == len(ran.compiled.program.constants)
    return ran.compiled.files["network.c"].decode()


def test_constants_that_are_arrays_are_members_of_one_object() -> None:
    assert "TW_CONSTANT struct {" in right(48)


def test_constants_of_a_binary_lie_in_a_row() -> None:
    assert "TW_CONSTANT" not in right(200)
