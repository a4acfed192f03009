"""Nodes with their kernels, and what is asked about them again and again: operations, numbers, steps behind them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from tilewright.core.domain import Domain
from tilewright.core.graph import Graph, Node
from tilewright.core.matching import binding_names
from tilewright.core.op import Call, call_node
from tilewright.core.tiles import Member, member
from tilewright.machine.kernel import Kernel, Number, formula, named
from tilewright.machine.target import Target
from tilewright.price.operations import Counts, NestCounts, behind, gives_bytes, nest_counts, step_counts
from tilewright.price.operations import cycles as operation_cycles

SCALED = {"SHIFTS": ("tw_sum_rounded",), "SCALES": ("tw_scale", "tw_scale_untied")}
"""What scales sums of integers back with a product and a shift, or with a float, by the name of it in formulas."""


class Task(Struct, frozen=True, eq=False, dict=True):
    """A node of a group with what is asked about it again and again."""

    member: Member
    kernel: Kernel | None
    call: Call
    graph: Graph

    @cached_property
    def nest(self) -> NestCounts:
        """Operations where it is a loop nest."""
        return nest_counts(self.graph, self.member.node)

    @cached_property
    def steps(self) -> Counts:
        """Operations of what is fused behind it, for each result."""
        return step_counts(self.graph, self.member.node)

    @cached_property
    def to_bytes(self) -> bool:
        """Whether all that is fused behind it is to scale sums back to bytes."""
        return gives_bytes(self.graph, self.member.node)

    @cached_property
    def domain(self) -> Domain:
        """That of the call: kernels name sizes and strides of its operands, packed or not."""
        return self.call.domain()

    @cached_property
    def known(self) -> Mapping[str, Number]:
        return binding_names(self.call)

    @cached_property
    def path(self) -> str:
        """Which of the paths through its kernel it takes."""
        if self.kernel is None:
            return ""
        with named(self.kernel, "path"):
            return str(formula(self.kernel.path_taken, self.known))

    @cached_property
    def padding(self) -> Mapping[str, tuple[str, int, str]]:
        """Which numbers say how far it reaches out of an operand's axis."""
        return self.call.op.padding(self.call) if self.call.op.padding is not None else {}

    def holds(self, graph: Graph) -> bool:
        """Whether it is the same in another graph that has its node."""
        return alike(self.member.node, self.graph, graph)


def alike(node: Node, one: Graph, other: Graph) -> bool:
    """Whether the tensors of a node have the same types and values in two graphs."""
    return one is other or all(
        one.types.get(name) == other.types.get(name) and one.constants.get(name) is other.constants.get(name)
        for name in (*node.reads, *node.outputs)
    )


def task(graph: Graph, node: Node, kernel: Kernel | None) -> Task:
    """Nodes that were asked about last are known: plans ask for their costs again and again."""
    key = (id(node), id(kernel))
    found, known = _TASKS.pop(key, (None, None))
    if found is None or (known is not graph and not found.holds(graph)):
        found = Task(member(graph, node, kernel), kernel, call_node(graph, node), graph)
    _TASKS[key] = found, graph
    if len(_TASKS) > MOST_TASKS:
        del _TASKS[next(iter(_TASKS))]
    return found


MOST_TASKS = 2048
_TASKS: dict[tuple[int, int], tuple[Task, Graph]] = {}
"""By the identity of node and kernel, which is theirs as long as the task has them, with the graph that was asked about
last; what was asked for last is last."""


def step_names(platform: Target, mine: Task) -> dict[str, Number]:
    """What formulas ask about the steps behind a kernel."""
    count = int(mine.steps.get("step", 0))
    scaled = {name: int(sum(mine.steps.get(s, 0) for s in steps) == 1 and count <= 2) for name, steps in SCALED.items()}
    loads = int(mine.steps.get("load", 0) + mine.steps.get("lookup", 0))
    return {
        **scaled,
        "BYTES": int(mine.to_bytes),
        "STEPS": count,
        "LOADS": loads,
        "FUSED": _fused_cycles(platform, mine),
    }


def _fused_cycles(platform: Target, mine: Task) -> float:
    """Cycles of what is fused behind a kernel, for each result."""
    if mine.kernel is None or platform.beside(mine.kernel) is not None:
        return 0.0
    if not platform.fused:
        # Formulas in one are about the kernel alone there.
        return operation_cycles(mine.steps, platform.operations) if mine.kernel.terms else 0.0
    alone = not mine.domain.reduction
    return operation_cycles({behind(name, alone=alone): n for name, n in mine.steps.items()}, platform.fused)
