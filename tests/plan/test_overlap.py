"""Groups that another engine computes while the cores do others: when that is planned, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder
from plan.tiled_plans import schedule_of, scheduled
from tilewright.core.graph import Graph
from tilewright.core.moves import Point, Run
from tilewright.core.plan import Plan
from tilewright.core.plan_text import print_plan
from tilewright.core.residencies import residencies
from tilewright.core.states import in_order
from tilewright.machine.target import Sizes, load_platform, resize
from tilewright.passes import run_pipeline
from tilewright.plan import PlanError, PlanOptions, check, plan
from tilewright.plan.interleave import interleaved


def scaled(b: Builder, sums: str) -> str:
    return b.op("RequantShift", sums, np.asarray(3, np.int32), np.asarray(-5000, np.int32), div=1 << 14)


def pointwise(b: Builder, x: str, channels: int, features: int) -> str:
    return scaled(b, b.op("Conv", x, b.weights(features, channels, 1, 1, dtype="int8"), kernel_shape=(1, 1)))


def branches() -> Graph:
    """Two convolutions, one behind the other, beside a pool; all of the same image."""
    b = Builder()
    x = b.op("Transpose", b.input("x", "int8[1,16,16,64]"), perm=(0, 3, 1, 2))
    first = pointwise(b, pointwise(b, x, 64, 64), 64, 32)
    second = b.op("MaxPool", x, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    y = b.op("Concat", first, second, axis=1)
    return b.graph(b.op("Transpose", y, perm=(0, 2, 3, 1)))


def outputs() -> Graph:
    """The same image, and two results that are stored."""
    b = Builder()
    x = b.op("Transpose", b.input("x", "int8[1,16,16,64]"), perm=(0, 3, 1, 2))
    found = (pointwise(b, x, 64, 64), b.op("MaxPool", x, kernel_shape=(3, 3), pads=(1, 1, 1, 1)))
    return b.graph(*(b.op("Transpose", each, perm=(0, 2, 3, 1)) for each in found))


def fork() -> Graph:
    """Two convolutions of what a third one makes; the cores need both at once."""
    b = Builder()
    x = pointwise(b, b.op("Transpose", b.input("x", "int8[1,16,16,32]"), perm=(0, 3, 1, 2)), 32, 32)
    both = (b.op("Transpose", pointwise(b, x, 32, 32), perm=(0, 2, 3, 1)) for _ in range(2))
    left, right = (b.op("Reshape", each, np.asarray([256, 32], np.int64)) for each in both)
    return b.graph(b.op("MatMul", left, b.op("Transpose", right, perm=(1, 0))))


def queue() -> Graph:
    """Two long convolutions of an image and a short pool of it; another pool needs one of them."""
    b = Builder()
    x = b.op("Transpose", b.input("x", "int8[1,16,16,64]"), perm=(0, 3, 1, 2))
    weights = (b.weights(64, 64, 3, 3, dtype="int8") for _ in range(2))
    soon, late = (scaled(b, b.op("Conv", x, w, kernel_shape=(3, 3), pads=(1, 1, 1, 1))) for w in weights)
    pools = (b.op("MaxPool", each, kernel_shape=(3, 3), pads=(1, 1, 1, 1)) for each in (x, soon))
    return b.graph(b.op("Transpose", b.op("Concat", *pools, late, axis=1), perm=(0, 2, 3, 1)))


@cache
def planned(
    overlap: Literal["auto", "off"] = "auto", l1: int = 229_376, network: Callable[[], Graph] = branches
) -> Plan:
    platform = resize(load_platform("siracusa"), Sizes({"L1": l1}))
    return plan(run_pipeline(network(), platform), platform, PlanOptions(overlap=overlap))


def beside(made: Plan) -> list[Run]:
    """Runs that go on beside later groups."""
    return [run for run in schedule_of(made).runs if run.wait.group > run.group]


def test_a_branch_is_computed_beside_another() -> None:
    made = planned()
    check(made)
    first, second = beside(made)
    assert (first.engine, first.start, first.wait) == ("neureka", second.start, second.wait)
    assert first.start.side == "beside"
    assert first.wait.side == "ending"
    pool = made.graph.nodes[schedule_of(made).groups[first.start.group].works[0].step]
    assert pool.op == "MaxPool"
    assert schedule_of(made).cycles < schedule_of(planned("off")).cycles


def test_what_two_groups_need_is_awaited_once() -> None:
    check(planned(network=fork))


def test_what_is_needed_later_is_started_when_what_is_needed_sooner_is_done() -> None:
    made = planned(network=queue)
    check(made)
    soon, late = beside(made)
    assert soon.wait.group < late.start.group <= late.wait.group


def test_the_group_behind_has_other_bytes() -> None:
    """Its loads may then be started beside the last group that such a run goes on beside."""
    groups = schedule_of(planned()).groups
    for run in beside(planned()):
        for mine in groups[run.group].buffers:
            for other in groups[run.wait.group + 1].buffers:
                assert mine.tensor == other.tensor or mine.end <= other.offset or other.end <= mine.offset


def test_text_and_residencies_say_it() -> None:
    made = planned()
    first, *_ = beside(made)
    assert f"start {first.start.group} first beside, wait {first.wait.group} last ending" in print_plan(made)
    known = residencies(made)
    for buffer in range(len(schedule_of(made).groups[first.group].buffers)):
        assert known.all[known.tiles[first.group, buffer]].until >= first.wait.group


def test_it_can_be_left() -> None:
    assert not beside(planned("off"))


@pytest.mark.parametrize("l1", [24_000, 40_000, 64_000, 100_000])
def test_plans_for_little_memory_are_right(l1: int) -> None:
    """Whether or not there are bytes for it."""
    made = planned(l1=l1)
    check(made)
    assert schedule_of(made).cycles <= schedule_of(planned("off", l1)).cycles


# What the validator refuses


def with_run(made: Plan, which: Run, **changes: Any) -> Plan:
    runs = tuple(replace(run, **changes) if run == which else run for run in schedule_of(made).runs)
    return scheduled(made, runs=runs)


def awaited_by_the_reader() -> Plan:
    """The result is awaited beside the group that reads it."""
    made = planned()
    return with_run(made, beside(made)[-1], wait=Point(len(schedule_of(made).groups) - 1, "last", "ending"))


def started_after_its_reader() -> Plan:
    """The second job reads what the first one makes."""
    made = planned()
    first, second = beside(made)
    return with_run(made, first, start=Point(second.start.group + 1, "first", "beside"), wait=second.wait)


def on_the_cores() -> Plan:
    made = planned()
    return with_run(made, beside(made)[0], engine="")


def beside_no_work() -> Plan:
    made = planned()
    first = beside(made)[0]
    return with_run(made, first, start=Point(first.group + 1, "first", "beside"))


def over_what_it_writes() -> Plan:
    """A result of the group beside which it is computed has its bytes."""
    made = planned(network=outputs)
    (run,) = beside(made)
    groups = list(schedule_of(made).groups)
    mine, other = groups[run.group].buffers, groups[run.start.group]
    result = next(b for b in mine if b.tensor in made.graph.outputs)
    buffers = tuple(replace(b, offset=result.offset) if b.tensor in made.graph.outputs else b for b in other.buffers)
    groups[run.start.group] = replace(other, buffers=buffers)
    return scheduled(made, groups=tuple(groups))


def stored_before_it_is_made() -> Plan:
    made = planned(network=outputs)
    (run,) = beside(made)
    start = Point(run.wait.group, "first", "beside")
    stores = ("store", run.group)
    moves = tuple(replace(m, issue=start) if (m.kind, m.group) == stores else m for m in schedule_of(made).moves)
    return scheduled(made, moves=moves)


def read_before_it_is_loaded() -> Plan:
    """The cores find what is loaded for the other engine, but do not wait for it."""
    made = planned()
    run = beside(made)[0]
    loads = ("load", run.group)
    moves = tuple(replace(m, wait=run.start) if (m.kind, m.group) == loads else m for m in schedule_of(made).moves)
    return scheduled(made, moves=moves)


REFUSED: list[tuple[Callable[[], Plan], str]] = [
    (awaited_by_the_reader, "is not there by then"),
    (started_after_its_reader, "starts in group"),
    (on_the_cores, "is not all that another engine does"),
    (beside_no_work, "in which no core works at every step"),
    (over_what_it_writes, "overlaps"),
    (stored_before_it_is_made, "before node 0 is done with it"),
    (read_before_it_is_loaded, "is not awaited by then"),
]


@pytest.mark.parametrize(("broken", "message"), REFUSED, ids=[broken.__name__ for broken, _ in REFUSED])
def test_a_wrong_overlap_is_refused(broken: Callable[[], Plan], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        check(broken())
    assert message in str(caught.value)


# The order


def chains() -> Graph:
    """Two chains of three nodes that meet; nodes with `m` are for an engine."""
    b = Builder()
    x = b.input("x", "float32[4,4]")
    ends: list[str] = []
    for name in "ab":
        y = x
        for op, kind in (("MatMul", "m"), ("Relu", "r"), ("MatMul", "n")):
            operands = (y, b.weights(4, 4)) if op == "MatMul" else (y,)
            y = b.op(op, *operands, name=f"{name}{kind}")
        ends.append(y)
    return b.graph(b.op("Add", *ends, name="y"))


def named(graph: Graph) -> list[str]:
    return [node.outputs[0] for node in graph.nodes]


def order(cycles: dict[str, float]) -> list[str] | None:
    graph = chains()
    engines = ["array" if node.op == "MatMul" else "" for node in graph.nodes]
    found = interleaved(graph, engines, [cycles[node.op] for node in graph.nodes])
    if found is None:
        return None
    assert named(in_order(found.graph)) == named(found.graph)
    assert found.beside <= {node.outputs[0] for node in graph.nodes if node.op == "MatMul"}
    return named(found.graph)


def test_one_chain_goes_on_while_the_other_is_computed_elsewhere() -> None:
    found = order({"MatMul": 10, "Relu": 10, "Add": 1})
    assert found is not None
    # The engine computes the head of b while the cores compute the middle of a, and the end of a beside that of b.
    assert found.index("am") < found.index("bm") < found.index("ar") < found.index("an") < found.index("br")


def test_an_engine_begins_with_what_has_most_behind_it() -> None:
    b = Builder()
    x = b.input("x", "float32[4,4]")
    short, long = (b.op("MatMul", x, b.weights(4, 4), name=name) for name in ("short", "long"))
    graph = b.graph(b.op("Add", short, b.op("Relu", long, name="r"), name="y"))
    engines = ["array" if node.op == "MatMul" else "" for node in graph.nodes]
    found = interleaved(graph, engines, [10.0] * len(graph.nodes))
    assert found is not None
    assert named(found.graph) == ["long", "short", "r", "y"]


def test_an_order_that_saves_little_is_none() -> None:
    assert order({"MatMul": 0.01, "Relu": 100, "Add": 100}) is None
    graph = chains()
    assert interleaved(graph, [""] * len(graph.nodes), [1.0] * len(graph.nodes)) is None


def test_views_stay_behind_what_they_show() -> None:
    b = Builder()
    x = b.input("x", "float32[4,4]")
    view = b.op("Reshape", x, [2, 8], name="v")
    left = b.op("MatMul", b.op("Reshape", view, [4, 4], name="w"), b.weights(4, 4), name="l")
    right = b.op("Relu", x, name="r")
    graph = b.graph(b.op("Add", b.op("Reshape", left, [4, 4], name="u"), right, name="y"))
    engines = ["array" if node.op == "MatMul" else "" for node in graph.nodes]
    found = interleaved(graph, engines, [0.0 if node.op == "Reshape" else 5.0 for node in graph.nodes])
    assert found is not None
    assert named(found.graph) == ["v", "w", "l", "u", "r", "y"]
    assert found.beside == {"l"}
