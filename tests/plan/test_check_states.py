"""The validator refuses plans in which a state is read after it has been overwritten, or shares its bytes."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder, platform
from tilewright.core.graph import Graph, Node, State
from tilewright.core.plan import Place, Plan
from tilewright.machine.target import Target, load_platform
from tilewright.passes import run_pipeline
from tilewright.plan import PlanError, PlanOptions, check, plan

PLATFORMS = (platform(), load_platform("scratchpad"))


def network() -> Graph:
    """y = (x + a) * b; a, b = a + y, b: the update of a reads what a reader of the old b has made."""
    b = Builder()
    names = [b.input(name, "float32[6,8]") for name in ("x", "a", "b")]
    y = b.op("Mul", b.op("MatMul", b.op("Add", names[0], names[1]), b.weights(8, 8)), names[2], name="y")
    graph = b.graph(y, b.op("Add", names[1], y, name="a_new"), b.op("Abs", b.op("Add", names[2], y), name="b_new"))
    zero = np.zeros((6, 8), np.float32)
    return replace(graph, states=(State("a", zero), State("b", zero)))


def planned(target: Target, graph: Graph | None = None) -> Plan:
    return plan(run_pipeline(graph or network(), target), target, PlanOptions(seconds=0.0))


def refused(made: Plan, reason: str) -> None:
    with pytest.raises(PlanError) as caught:
        check(made)
    assert any(reason in line for line in caught.value.violations), caught.value.violations


@pytest.mark.parametrize("target", PLATFORMS, ids=lambda p: p.name)
def test_states_are_updated_in_place(target: Target) -> None:
    made = planned(target)
    check(made)
    assert made.state_bytes == 2 * 6 * 8 * 4
    assert not any(node.op == "Copy" for node in made.graph.nodes)
    kept = [buffer for buffer in made.buffers if buffer.place.space == "state"]
    assert [(buffer.first, buffer.last) for buffer in kept] == [(0, len(made.graph.nodes))] * 2


@pytest.mark.parametrize("order", ["memory", "time", "given"])
def test_every_order_keeps_old_values_until_they_are_read(order: str) -> None:
    for target in PLATFORMS:
        graph = run_pipeline(network(), target)
        check(plan(graph, target, PlanOptions(seconds=0.0, order=order)))  # type: ignore[arg-type]


@pytest.mark.parametrize("target", PLATFORMS, ids=lambda p: p.name)
def test_a_state_that_is_read_behind_its_update(target: Target) -> None:
    """The writer of a state moves before a node that reads the old value."""
    b = Builder()
    x, s = b.input("x", "float32[6,8]"), b.input("s", "float32[6,8]")
    y = b.op("MatMul", s, b.weights(8, 8), name="y")
    graph = replace(b.graph(y, b.op("Abs", x, name="s_new")), states=(State("s", np.zeros((6, 8), np.float32)),))
    made = planned(target, graph)
    check(made)
    swapped = made.graph.nodes[::-1]
    assert [node.op for node in swapped] == ["Abs", "MatMul"]
    broken = replace(made, graph=replace(made.graph, nodes=swapped), choices=made.choices[::-1], scratch=_swapped(made))
    if made.schedule is not None:
        groups = [replace(g, works=tuple(replace(w, step=1 - w.step) for w in g.works)) for g in made.schedule.groups]
        broken = replace(broken, schedule=replace(made.schedule, groups=tuple(groups[::-1])))
    refused(broken, "overwritten by 's_new'" if made.schedule is not None else "but 's_new' was written there")


def _swapped(made: Plan) -> MappingProxyType[int, int]:
    return MappingProxyType({1 - step: offset for step, offset in made.scratch.items()})


@pytest.mark.parametrize("target", PLATFORMS, ids=lambda p: p.name)
def test_states_that_share_bytes_or_lie_outside(target: Target) -> None:
    made = planned(target)
    at = {name: place for name, place in made.places.items() if place.space == "state"}
    assert sorted(at) == ["a", "a_new", "b", "b_new"]
    shared = {**made.places, "b": at["a"], "b_new": at["a"]}
    refused(replace(made, places=MappingProxyType(shared)), "share bytes")
    outside = {**made.places, "b": Place("state", 4096), "b_new": Place("state", 4096)}
    refused(replace(made, places=MappingProxyType(outside)), "of 384 bytes")
    apart = {**made.places, "b_new": Place("state", at["a"].offset)}
    refused(replace(made, places=MappingProxyType(apart)), "its new value 'b_new' at")
    stranger = {**made.places, "y": Place("state", 0)}
    refused(replace(made, places=MappingProxyType(stranger)), "output 0 'y' is at")


def test_a_copy_where_an_update_cannot_be_in_place() -> None:
    """The new value is a product with the old one: no element of that may be overwritten before the last is there."""
    b = Builder()
    x, s = b.input("x", "float32[4,4]"), b.input("s", "float32[4,4]")
    graph = b.graph(b.op("Add", x, s, name="y"), b.op("MatMul", s, b.weights(4, 4), name="s_new"))
    graph = replace(graph, states=(State("s", np.zeros((4, 4), np.float32)),))
    for target in PLATFORMS:
        nodes: tuple[Node, ...] = planned(target, graph).graph.nodes
        assert [node.op for node in nodes].count("Copy") == 1
        assert nodes[-1].op == "Copy"
