"""What a plan says about each layer, as rows for tables and pages."""

from __future__ import annotations

from math import prod

from msgspec import Struct

from tilewright.core.domain import Domain, Whole
from tilewright.core.graph import Graph, Node
from tilewright.core.op import call_node, is_view
from tilewright.core.plan import Choice, Plan, Rejection

LOOP_NEST = "loop nest"
"""What stands in place of a kernel's file where none was taken."""


class LayerRow(Struct, frozen=True):
    """One step of the network that computes something."""

    step: int
    """Index of the node in the plan's graph: the time of the memory map."""
    name: str
    op: str
    """The operator and what is fused behind it."""
    code: str
    """The kernel's file, or that the loop nest is used."""
    rejected: tuple[Rejection, ...]
    output: str
    macs: int
    output_bytes: int
    weight_bytes: int
    """Bytes of the constants it reads, before a kernel packs them."""


def layers(plan: Plan) -> tuple[LayerRow, ...]:
    """A row for every step that computes something; views only rename bytes."""
    return tuple(_layer(plan, step, node) for step, node in enumerate(plan.graph.nodes) if not is_view(node))


def _layer(plan: Plan, step: int, node: Node) -> LayerRow:
    choice = plan.choices[step]
    kind = plan.graph.types[node.made[0]]
    return LayerRow(
        step,
        node.label,
        " + ".join([node.op, *(fused.op for fused in node.epilogue)]),
        code_of(choice),
        choice.rejected,
        str(kind),
        multiply_accumulates(call_node(plan.graph, node).domain()),
        kind.bytes,
        _constant_bytes(plan.graph, node),
    )


def code_of(choice: Choice) -> str:
    """The kernel's file, or that the loop nest is used, with the turns that are joined."""
    if choice.kernel:
        return choice.kernel.path.name
    return LOOP_NEST if choice.unroll == 1 else f"{LOOP_NEST} x {choice.unroll}"


def _constant_bytes(graph: Graph, node: Node) -> int:
    return sum(graph.types[name].bytes for name in node.reads if name in graph.constants)


def multiply_accumulates(domain: Domain) -> int:
    """Products that are summed, from the access maps alone.

    Inputs are joined from left to right, as a chain of contractions would be; a join counts where both sides share a
    reduced dimension, unless they are indexed alike (values with their positions). Inputs with a WHOLE axis are left
    out: what they are multiplied with is not in the maps (recurrent layers).
    """
    inputs = [name for name in domain.access if name not in domain.outputs and not _has_whole(domain, name)]
    reduced = set(domain.reduction)
    joined: set[str] = set()
    total = 0
    for index, name in enumerate(inputs):
        dims = set(domain.relevant(name))
        if joined & dims & reduced and joined != dims:
            total += prod(domain.dims[d] for d in joined | dims)
        elif joined:
            continue
        later = {d for other in inputs[index + 1 :] for d in domain.relevant(other)}
        joined = {d for d in joined | dims if d not in reduced or d in later}
    return total


def _has_whole(domain: Domain, operand: str) -> bool:
    return any(isinstance(axis, Whole) for axis in domain.access[operand])
