"""Biases become part of what requantisations add: `(x + bias) * mul + add` is `x * mul + (bias * mul + add)`.

The sum is the same number, so rounding does not matter. Those that round half to even keep their bias: products alone
are scaled faster there.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tilewright.core.graph import Array, Graph, Node
from tilewright.machine.target import Target
from tilewright.ops.requant_shift import broadcastable
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.requant_limits import Magnitudes


def biases(graph: Graph, platform: Target) -> Graph:
    """The graph with constant biases of convolutions and products in the requantisations behind them."""
    del platform
    if not any(node.op == "RequantShift" for node in graph.nodes):
        return graph
    limits = Magnitudes(graph)
    for node in graph.nodes:
        limits.add(node)
    return rewrite(graph, {"RequantShift": partial(_rule, limits)})


def _rule(limits: Magnitudes, edit: Edit, node: Node) -> bool:
    call, (x, mul, add) = edit.call(node), node.inputs
    above, factor, offset = edit.producer(x, "Conv", "Add"), edit.constants.get(mul), edit.constants.get(add)
    if above is None or factor is None or offset is None or not edit.single(x):
        return False
    if call.int("half_to_even") or call.int("x_limit") or limits.of(x) >= 1 << 31:
        return False  # what is promised of a sum with its bias need not hold without, and what wraps is another number
    bias = _bias(edit, above)
    if bias is None:
        return False
    total = broadcastable(call, "add", offset) + bias * broadcastable(call, "mul", factor)
    if total.size > max(offset.size, bias.size) or np.abs(total).max(initial=0) >= 1 << 31:
        return False
    both = edit.constant(total.astype(np.int32), f"{add}_biased")
    edit.emit_all("RequantShift", (_without_bias(edit, above), mul, both), node.outputs, node.attrs)
    return True


def _bias(edit: Edit, node: Node) -> Array | None:
    """The constant that a node adds to sums of products, in a shape that broadcasts to its result."""
    if node.op == "Add":
        known = [edit.constants[name] for name in node.inputs if name in edit.constants]
        sums = _without_constants(edit, node)
        plain = edit.producer(sums, "MatMul") and edit.types[sums] == edit.types[node.outputs[0]]
        return known[0].astype(np.int64) if len(known) == 1 and plain else None
    bias = edit.constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
    behind = 0 if node.attrs.get("channels_last") else len(edit.shape(node.outputs[0])) - 2
    return None if bias is None else bias.astype(np.int64).reshape(-1, *(1,) * behind)


def _without_constants(edit: Edit, node: Node) -> str:
    return next((name for name in node.inputs if name not in edit.constants), "")


def _without_bias(edit: Edit, node: Node) -> str:
    """The sums of products alone."""
    if node.op == "Add":
        return _without_constants(edit, node)
    return edit.emit_all(node.op, node.inputs[:2], (None,), node.attrs)[0]
