"""What a plan says about each layer, as rows for tables."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.core.op import REGISTRY, call_node
from tilewright.core.plan import Plan


@dataclass(frozen=True)
class Layer:
    """One step of the network."""

    name: str
    op: str
    """The operator and what is fused behind it."""
    code: str
    """The kernel's file, or that the loop nest is used."""
    output: str
    macs: int
    output_bytes: int


def layers(plan: Plan) -> tuple[Layer, ...]:
    """A row for every step that computes something."""
    rows: list[Layer] = []
    for node, choice in zip(plan.graph.nodes, plan.choices, strict=True):
        op = REGISTRY[node.op]
        if op.kind == "view" and not node.epilogue:
            continue
        domain = call_node(plan.graph, node).domain()
        contraction = op.kind == "reduce" and len(node.inputs) > 1
        kind = plan.graph.types[node.outputs[0]]
        rows.append(
            Layer(
                node.name or node.outputs[0],
                " + ".join([node.op, *(step.op for step in node.epilogue)]),
                choice.kernel.path.name if choice.kernel else "loop nest",
                str(kind),
                domain.points() if contraction else 0,
                kind.bytes,
            )
        )
    return tuple(rows)
