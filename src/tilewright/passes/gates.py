"""Gates and their partners become one product, whose sums are scaled back and multiplied at once.

That is done where the platform has a kernel for it: columns of both weights take turns.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tilewright.base.dtype import INT8, INT16, INT32
from tilewright.core.graph import Array, Graph, Node
from tilewright.machine.target import Target
from tilewright.ops.integer_rules import power_of_two
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.scaled import emitted, only_shifts, scaled_sums

FUSED = "RequantGate"


def gates(graph: Graph, platform: Target) -> Graph:
    """The graph with two products, their RequantShifts, iSiLU, Mul and its RequantShift as two nodes."""
    if not platform.kernels_of(FUSED) or not any(node.op == "iSiLU" for node in graph.nodes):
        return graph
    return rewrite(graph, {"RequantShift": partial(_gated, platform)})


def _gated(platform: Target, edit: Edit, node: Node) -> bool:
    product = edit.producer(node.inputs[0], "Mul")
    if (
        product is None
        or edit.types[product.outputs[0]].dtype != INT32
        or not edit.single(product.outputs[0])
        or not only_shifts(edit, node, INT8)
        or not power_of_two(edit.call(node), "div")
    ):
        return False
    for gate_side, partner_side in (product.inputs, product.inputs[::-1]):
        opened = edit.producer(gate_side, "iSiLU")
        if opened is not None and edit.single(gate_side):
            gate, partner = _scaled(edit, opened.inputs[0]), _scaled(edit, partner_side)
            if gate is not None and partner is not None:
                return _fused(platform, edit, node, opened, (gate, partner))
    return False


def _scaled(edit: Edit, name: str) -> tuple[Node, Node] | None:
    """The product with a known matrix that is scaled back to 16 bits, and what scales it; None for anything else."""
    scaled = scaled_sums(edit, name, INT16)
    product = edit.producer(scaled.inputs[0], "MatMul") if scaled is not None else None
    if scaled is None or product is None or not edit.single(product.outputs[0]):
        return None
    weights = edit.constants.get(product.inputs[1])
    fits = (
        weights is not None
        and weights.ndim == 2
        and len(product.inputs) == 2
        and len(edit.shape(product.outputs[0])) == 2
        and not any(product.attrs.values())
        and all(name in edit.constants for name in scaled.inputs[1:])
    )
    return (product, scaled) if fits else None


def _fused(
    platform: Target, edit: Edit, node: Node, opened: Node, pairs: tuple[tuple[Node, Node], tuple[Node, Node]]
) -> bool:
    (gates_of, gate), (partners_of, partner) = pairs
    if gates_of.inputs[0] != partners_of.inputs[0] or edit.shape(gate.outputs[0]) != edit.shape(partner.outputs[0]):
        return False

    def in_turn(names: tuple[str, str], hint: str) -> str:
        one, other = (edit.constants[name] for name in names)
        both: Array = np.stack([one, other], axis=-1)
        return edit.constant(both.reshape(*one.shape[:-1], -1), hint)

    name = node.outputs[0]
    weights = in_turn((gates_of.inputs[1], partners_of.inputs[1]), f"{name}_weights")
    mul, add = (in_turn((gate.inputs[i], partner.inputs[i]), f"{name}_{what}") for i, what in ((1, "mul"), (2, "add")))
    sums = edit.emit("MatMul", (gates_of.inputs[0], weights))
    attributes = {
        "step": opened.attrs["step"],
        "div": gate.attrs["div"],
        "partner_div": partner.attrs["div"],
        "product_div": node.attrs["div"],
    }
    whole = Node(FUSED, (sums, mul, add, opened.inputs[1]), node.outputs, attributes, node.label)
    return emitted(platform, edit, whole)
