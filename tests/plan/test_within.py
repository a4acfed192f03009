"""Operands loaded straight to their place in a result: what the planner makes of it, and what the validator refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder
from plan.tiled_plans import buffer, by_layer, checked, crossing, group, mapping, schedule_of, scheduled, stacked
from tilewright.api import Options, plan_model, run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.codegen.lower import lower
from tilewright.core.graph import Graph, Result, Step
from tilewright.core.interpret import interpret
from tilewright.core.op import parse_type
from tilewright.core.plan import Choice, Group, NodeWork, Place, Plan, TileBuffer
from tilewright.core.program import Copy, Driven, If, OnCores, Statement
from tilewright.machine.target import Sizes, load_platform
from tilewright.plan import PlanError
from tilewright.sim import EmulatedMachine, Moment

# The validator


def joined(*rows: int, op: str = "Concat") -> Graph:
    """Blocks of so many rows side by side; a row has 32 bytes."""
    b = Builder()
    names = [b.input(f"x{i}", f"float32[4,{count},8]") for i, count in enumerate(rows)]
    return b.graph(b.op(op, *names, name="y", **({"axis": 1} if op == "Concat" else {})))


def around(graph: Graph, *groups: Group, kernel: Choice | None = None) -> Plan:
    """A plan of such a graph with these groups."""
    made = scheduled(by_layer(), groups=groups, stages=(), direct=frozenset[str]())
    places = {name: Place("input", index=index) for index, name in enumerate(graph.inputs)}
    return replace(made, graph=graph, choices=(kernel or Choice("cpu", None),), places={**places, "y": Place("output")})


def within(*there: bool, rows: Sequence[int] = (6, 2), loops: Sequence[tuple[str, int, int]] = (("D0", 2, 2),)) -> Plan:
    """Two blocks at a step, of which some operands lie within the result."""
    size = 64 * sum(rows)
    own = [buffer(f"x{i}", 64 * count) for i, count in enumerate(rows)]
    y, *others = stacked(buffer("y", size), *(b for b, inside in zip(own, there, strict=True) if not inside))
    left = iter(others)
    parts = [
        TileBuffer(b.tensor, 0, size, 2, within=len(rows)) if t else next(left) for b, t in zip(own, there, strict=True)
    ]
    keys = {f"inputs{i}": i for i in range(len(rows))}
    work = NodeWork(0, mapping(**keys, concat_result=len(rows)))
    return around(joined(*rows), group([work], loops, (*parts, y)))


def changed(made: Plan, number: int, **changes: int) -> Plan:
    """The plan with another buffer."""
    only = schedule_of(made).groups[0]
    buffers = tuple(replace(b, **changes) if i == number else b for i, b in enumerate(only.buffers))
    return scheduled(made, groups=(replace(only, buffers=buffers),))


def test_operands_may_lie_within_the_result() -> None:
    for there in ((True, False), (False, True), (True, True)):
        checked(within(*there))
    for ends in ((True, True, False), (True, False, True), (False, True, True), (False, False, True)):
        checked(within(*ends, rows=(3, 4, 5)))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda: changed(within(True, False), 0, offset=64), "has 2 x 512 bytes at 64, that 2 x 512 bytes at 0"),
        (lambda: changed(within(True, False), 0, bytes=384), "has 2 x 384 bytes at 0, that 2 x 512 bytes at 0"),
        (lambda: changed(within(True, False), 0, slots=1), "has 1 x 512 bytes at 0"),
        (lambda: crossing(within(True, False), 0, 0, kept=1), "is not loaded there"),
        (lambda: changed(within(True, False), 0, within=9), "that is none that could hold others"),
        (lambda: changed(within(True, False), 0, within=0), "that is none that could hold others"),
        (lambda: changed(within(True, False), 0, within=1), "that is not the result of the last node alone"),
        (lambda: changed(within(True, False), 2, within=1), "that is none that could hold others"),
        (lambda: within(False, True, False, rows=(3, 2, 3)), "what is left along axis 1 is more than one part"),
        (
            lambda: within(True, False, loops=[("AXIS", 4, 2)]),
            "tiles cut axis 1, along which operands lie within the result",
        ),
        (lambda: changed(within(False, False), 0, offset=0), "overlaps buffer 2 of 'y'"),
    ],
)
def test_broken_parts_are_refused(broken: Callable[[], Plan], reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        checked(broken())


def test_kernels_have_to_expect_what_is_there() -> None:
    made = within(True, False)
    copying = next(k for k in load_platform("cortex-m4").kernels if k.op == "Concat")
    only = schedule_of(made).groups[0]
    with pytest.raises(PlanError, match=r"kernel kernels/concat\.c copies inputs0"):
        checked(around(made.graph, only, kernel=Choice("cpu", copying, {"T": "float32"})))
    checked(around(made.graph, only, kernel=Choice("cpu", replace(copying, within=("inputs0",)), {"T": "float32"})))


def test_results_have_to_be_made_of_operands() -> None:
    """A sum reads all of an operand that is as large as it is."""
    y, x1 = stacked(buffer("y", 256), buffer("x1", 256))
    work = NodeWork(0, mapping(A=0, B=1, Y=2))
    made = around(joined(2, 2, op="Add"), group([work], [("D0", 2, 2)], (replace(y, tensor="x0", within=2), x1, y)))
    with pytest.raises(PlanError, match="the result is not made of operands as they are"):
        checked(made)
    step = Step("Relu", (Result(0),), parse_type("float32[4,8,8]"))
    made = within(True, False)
    fused = replace(made, graph=made.graph.with_nodes([replace(made.graph.nodes[0], epilogue=(step,))]))
    with pytest.raises(PlanError, match="the result is not made of operands as they are"):
        checked(fused)


def test_an_operand_is_read_there_by_nothing_else() -> None:
    b = Builder()
    x = b.input("x0", "float32[4,4,8]")
    graph = b.graph(b.op("Concat", x, x, name="y", axis=1))
    y = buffer("y", 512)
    work = NodeWork(0, mapping(inputs0=0, inputs1=0, concat_result=1))
    with pytest.raises(PlanError, match="the last node does not load it for one operand alone"):
        checked(around(graph, group([work], [("D0", 2, 2)], (replace(y, tensor="x0", within=1), y))))


def test_bytes_of_a_result_are_taken_when_the_first_part_is_loaded() -> None:
    """A group before has something there while an operand of the next one comes."""
    b = Builder()
    x0, x1 = b.input("x0", "float32[4,6,8]"), b.input("x1", "float32[4,2,8]")
    graph = b.graph(b.op("Concat", x0, b.op("Exp", x1, name="e"), name="y", axis=1))
    places = {"x0": Place("input"), "x1": Place("input", index=1), "e": Place("L2"), "y": Place("output")}

    def made(offset: int) -> Plan:
        exp = TileBuffer("x1", offset, 256, 1), TileBuffer("e", offset, 256, 1)
        first = group([NodeWork(0, mapping(X=0, Y=1))], [], exp)
        y = TileBuffer("y", 0, 1024, 1)
        parts = (replace(y, tensor="x0", within=2), TileBuffer("e", 1024, 256, 1), y)
        second = group([NodeWork(1, mapping(inputs0=0, inputs1=1, concat_result=2))], [], parts)
        whole = replace(around(graph, first, second), choices=(Choice("cpu", None),) * 2, places=places)
        return crossing(whole, 1, 0, early=1)

    checked(made(1280))
    with pytest.raises(PlanError, match="overlaps buffer 0 of 'x0' in group 1"):
        checked(made(768))


# Planner and generated code


def cache(*shapes: str, computed: Sequence[int], axis: int) -> Graph:
    """Operands side by side, of which some are computed; the result leaves and is read again."""
    b = Builder()
    names = [b.input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    y = b.op("Concat", *(b.op("Neg", n) if i in computed else n for i, n in enumerate(names)), name="y", axis=axis)
    return b.graph(y, b.op("Abs", y))


def inside(made: Plan) -> list[str]:
    return [b.tensor for g in schedule_of(made).groups for b in g.buffers if b.within >= 0]


def ran(graph: Graph, options: Options, machine: EmulatedMachine | None = None, flags: tuple[str, ...] = ()) -> Plan:
    """Runs a network, whose outputs must be those of the references."""
    rng = np.random.default_rng(3)
    kinds = [graph.types[name] for name in graph.inputs]
    fed = [rng.integers(-100, 100, kind.shape).astype(kind.dtype.name) for kind in kinds]
    found = run_model(graph, options, inputs=fed, expected=interpret(graph, fed), machine=machine, flags=flags)
    assert found.right
    return found.compiled.plan


def copies(statements: Sequence[Statement]) -> Iterator[Copy]:
    for statement in statements:
        match statement:
            case Copy():
                yield statement
            case If(body=body) | Driven(body=body):
                yield from copies(body)
            case OnCores(beside=beside):
                yield from copies(beside)
            case _:
                pass


def test_rows_are_loaded_to_their_place() -> None:
    graph = cache("int8[8,5,3]", "int8[8,2,3]", "int8[8,4,3]", computed=[1], axis=1)
    _, made = plan_model(graph, Options("scratchpad"))
    assert {"x0", "x2"} <= {*inside(made)}
    loads = [copy for routine in lower(made).routines for copy in copies(routine.body) if copy.to.place.space == "L1"]
    rows = {(copy.bytes, copy.counts, copy.to_strides, copy.source_strides) for copy in loads}
    assert rows >= {(15, (8,), (33,), (15,)), (12, (8,), (33,), (12,))}


@pytest.mark.sample(every=3, by=("moment",))
@pytest.mark.parametrize("moment", ["start", "wait", "random"])
@pytest.mark.parametrize(
    ("computed", "there"), [([0], ["x1", "x2"]), ([1], ["x0", "x2"]), ([0, 2], []), ([], ["x0", "x1", "x2"])]
)
def test_scratchpads(computed: list[int], there: list[str], moment: Moment) -> None:
    """What is left between two computed operands is copied by the cores, and nothing where all are loaded."""
    graph = cache("int8[8,5,3]", "int8[8,2,3]", "int8[8,4,3]", computed=computed, axis=1)
    flags = (*STRICT, *SANITIZE, "-O0")
    assert {*inside(ran(graph, Options("scratchpad"), EmulatedMachine(moment, 1), flags))} >= {*there}


def test_tiles_of_scratchpads() -> None:
    """Tiles along the dimension in front, one after the other in two slots."""
    graph = cache("int32[64,5,4]", "int32[64,2,4]", computed=[1], axis=1)
    made = ran(graph, Options("scratchpad", sizes=Sizes({"L1": 1500})), EmulatedMachine("wait", 1))
    tiled = [g for g in schedule_of(made).groups if any(b.within >= 0 for b in g.buffers)]
    assert tiled
    assert all(g.loops for g in tiled)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    ("l1", "home", "there"),
    [(4_000, "L2", ["x0"]), (131_072, "L2", ["x0"]), (4_000, "L3", ["x0"]), (131_072, "L3", [])],
)
def test_cache_on_siracusa(l1: int, home: str, there: list[str]) -> None:
    """Rows of 512 bytes with a stride of 516, and 4 bytes of each are left to the cores.

    In L3, with room for all of it, tiles that are copied while others are loaded take fewer cycles.
    """
    graph = cache("int8[1,16,128,4]", "int8[1,16,1,4]", computed=[1], axis=2)
    made = ran(graph, Options("siracusa", sizes=Sizes({"L1": l1}, home, without=("neureka",))))
    assert inside(made)[:1] == there
