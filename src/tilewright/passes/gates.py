"""Gates and their partners become one product, whose sums are scaled back and multiplied at once.

That is done where the platform has a kernel for it: columns of both weights take turns.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tilewright.base.dtype import INT8, INT16, INT32
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.ops.integer_rules import limits, power_of_two
from tilewright.ops.requant_shift import levels_of
from tilewright.passes.edit import Edit, rewrite

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
        or not _is_plain(edit, node)
    ):
        return False
    for gate_side, partner_side in (product.inputs, product.inputs[::-1]):
        opened = edit.producer(gate_side, "iSiLU")
        if opened is not None and edit.single(gate_side):
            gate, partner = _scaled(edit, opened.inputs[0]), _scaled(edit, partner_side)
            if gate is not None and partner is not None:
                return _fused(platform, edit, node, opened, (gate, partner))
    return False


def _is_plain(edit: Edit, node: Node) -> bool:
    """Whether it only shifts, rounds half up and keeps 8 bits."""
    call, (mul, add) = edit.call(node), (edit.uniform(name) for name in node.inputs[1:])
    return (
        (mul, add) == (1, 0)
        and not call.int("half_to_even")
        and not call.int("zero_point")
        and limits(levels_of(call), call.int("signed") != 0) == (INT8.lo, INT8.hi)
        and power_of_two(call, "div") > 0
    )


def _scaled(edit: Edit, name: str) -> tuple[Node, Node] | None:
    """The product with a known matrix that is scaled back to 16 bits, and what scales it; None for anything else."""
    scaled = edit.producer(name, "RequantShift")
    product = edit.producer(scaled.inputs[0], "MatMul") if scaled is not None else None
    numbers = REGISTRY["RequantShift"].numbers
    if scaled is None or product is None or not all(edit.single(n.outputs[0]) for n in (scaled, product)):
        return None
    weights, columns = edit.constants.get(product.inputs[1]), edit.shape(product.outputs[0])[-1:]
    fits = (
        weights is not None
        and weights.ndim == 2
        and len(product.inputs) == 2
        and len(edit.shape(product.outputs[0])) == 2
        and not any(product.attrs.values())
        and edit.types[scaled.outputs[0]].dtype == INT16
        and all(edit.types[name].dtype == INT32 and edit.shape(name) == columns for name in scaled.inputs[1:])
        and all(name in edit.constants for name in scaled.inputs[1:])
        and edit.types[product.outputs[0]].dtype == INT32
        and numbers is not None
        and "column_shift" in numbers(edit.call(scaled))
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
    call = edit.call(whole)
    names = binding_names(call)
    if all(why_not(kernel, call, whole, edit.graph, names, {}) for kernel in platform.kernels_of(FUSED)):
        return False
    edit.emit_all(FUSED, whole.inputs, whole.outputs, whole.attrs)
    return True
