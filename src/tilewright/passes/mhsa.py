"""Takes MHSA apart: products, requantisations and a softmax, with heads as the first axis."""

from __future__ import annotations

import numpy as np

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.ops.mhsa import by_head, factor, sizes_of, softmax_attributes
from tilewright.passes.edit import Edit, rewrite


def mhsa(graph: Graph, platform: Target) -> Graph:
    """The graph without MHSA."""
    del platform
    return rewrite(graph, {"MHSA": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    call = edit.call(node)
    sizes = sizes_of(call)
    operands = dict(zip(call.operands, node.inputs, strict=True))

    def product(left: str, right: str, step: str, output: str = "") -> str:
        sums = edit.emit("MatMul", (left, right))
        if f"{step}_bias" in operands:
            bias = by_head(f"{step}_bias", call.value(f"{step}_bias"), sizes)
            sums = edit.emit("Add", (sums, edit.constant(np.ascontiguousarray(bias), f"{node.label}_{step}_bias")))
        mul, add = (
            edit.constant(factor(call, f"{step}_requant_{what}").astype(np.int32), f"{node.label}_{step}_{what}")
            for what in ("mul", "add")
        )
        div = int(call.float(f"{step}_requant_div"))
        return edit.emit("RequantShift", (sums, mul, add), output, div=div, n_levels_out=256, signed=1)

    def projected(name: str) -> str:
        x = edit.reshape(operands[name], edit.shape(operands[name])[-2:])
        weight = np.ascontiguousarray(by_head(f"w{name}_weight", call.value(f"w{name}_weight"), sizes))
        return product(x, edit.constant(weight, f"{node.label}_w{name}"), f"w{name}")

    query, key, value = (projected(name) for name in "qkv")
    scores = product(query, edit.transpose(key, (0, 2, 1)), "preattn")
    (weights,) = edit.emit_all(call.text("softmax"), (scores,), (None,), softmax_attributes(call))
    mixed = product(weights, value, "postattn")
    back = np.ascontiguousarray(by_head("wo_weight", call.value("wo_weight"), sizes))
    product(mixed, edit.constant(back, f"{node.label}_wo"), "wo", node.outputs[0])
    return True
