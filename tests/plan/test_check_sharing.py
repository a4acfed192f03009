"""The validator accepts tensors that share bytes and epilogues that are cut, and nothing beyond what is safe."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from passes.build import Builder
from plan.tiled_plans import GENERIC, buffer, by_layer, checked, group, scheduled, stacked
from tilewright.core.graph import Result, Step
from tilewright.core.plan import Choice, NodeWork, Place, Plan, TileBuffer
from tilewright.core.tiles import member
from tilewright.machine.kernel import Kernel
from tilewright.plan import PlanError


def chain(ops: tuple[str, ...], offsets: tuple[int, ...], kernels: dict[int, Kernel] | None = None) -> Plan:
    """Operators of one operand behind each other in one group, cut into rows of 64 bytes, two at a step."""
    b = Builder()
    name = b.input("x", "float32[8,16]")
    for number, op in enumerate(ops):
        name = b.op(op, name, name=f"t{number}" if number < len(ops) - 1 else "y")
    graph, chosen = b.graph(name), kernels or {}
    members = [member(graph, node, chosen.get(i)) for i, node in enumerate(graph.nodes)]
    buffers = [TileBuffer(n, at, 128, 1) for n, at in zip(("x", *graph.producer()), offsets, strict=True)]
    works = [NodeWork(i, {use.key: i + use.writes for use in m.uses}) for i, m in enumerate(members)]
    loops = [(members[-1].domain.parallel[0], 2, 4)]
    made = scheduled(by_layer(), groups=(group(works, loops, tuple(buffers)),), stages=(), direct=frozenset[str]())
    choices = tuple(Choice("cpu", chosen.get(i)) for i in range(len(ops)))
    return replace(made, graph=graph, choices=choices, places={"x": Place("input"), "y": Place("output")})


SOFTMAX = replace(next(k for k in GENERIC.kernels if k.path.name == "softmax_f32.c"), scratch="0")
MOVING = replace(SOFTMAX, inplace="")


def test_inner_tensors_share_bytes_when_not_needed_at_once() -> None:
    checked(chain(("Exp", "Softmax", "Softmax", "Softmax"), (0, 128, 256, 128, 384), {1: MOVING, 2: MOVING, 3: MOVING}))


def test_inner_tensors_needed_at_once_do_not_share_bytes() -> None:
    with pytest.raises(PlanError, match=r"'t0' in group 0 \(L1 bytes 128..256\) overlaps buffer 2 of 't1'"):
        checked(chain(("Exp", "Softmax", "Softmax"), (0, 128, 128, 384), {1: MOVING, 2: MOVING}))


def test_element_wise_operators_replace_their_operands() -> None:
    checked(chain(("Exp", "Tanh", "Exp"), (0, 0, 128, 128)))


def test_kernels_replace_the_operand_that_they_allow() -> None:
    checked(chain(("Exp", "Softmax"), (0, 128, 128), {1: SOFTMAX}))
    with pytest.raises(PlanError, match="overlaps buffer 2 of 'y'"):
        checked(chain(("Exp", "Softmax"), (0, 128, 128), {1: MOVING}))


def epilogue(kind: str, axis: int) -> Plan:
    """A kernel whose epilogue adds an operand, cut along an axis of its result."""
    b = Builder()
    h = b.op("Softmax", b.input("x", "float32[4,8,4]"), name="h")
    graph = b.graph(b.op("Add", h, b.input("z", kind), name="y"))
    node = replace(graph.nodes[0], outputs=("y",), epilogue=(Step("Add", (Result(0), "z"), graph.types["y"]),))
    graph = graph.with_nodes([node])
    mine = member(graph, node, MOVING)
    loops = [(tuple(mine.domain.dims)[axis], 1, graph.types["y"].shape[axis])]
    buffers = stacked(*(buffer(use.tensor, 512) for use in mine.uses))
    work = NodeWork(0, {use.key: i for i, use in enumerate(mine.uses)})
    made = scheduled(by_layer(), groups=(group([work], loops, buffers),), stages=(), direct=frozenset[str]())
    places = {"x": Place("input"), "z": Place("input", 0, 1), "y": Place("output")}
    return replace(made, graph=graph, choices=(Choice("cpu", MOVING),), places=places)


@pytest.mark.parametrize("kind", ["float32[1]", "float32[4]", "float32[4,8,4]"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scalars_rows_and_results_are_cut_anywhere(kind: str, axis: int) -> None:
    checked(epilogue(kind, axis))


def test_other_epilogue_operands_are_cut_along_the_first_axis_only() -> None:
    checked(epilogue("float32[8,1]", 0))
    with pytest.raises(PlanError, match=r"cuts axis 1 of its result, but 'z' \(s0_B\) allows axis 0 only"):
        checked(epilogue("float32[8,1]", 1))
