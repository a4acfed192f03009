"""Recognises HardSwish: `x * clip(x + 3, 0, 6) / 6`, also as x times a HardSigmoid."""

from __future__ import annotations

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.match import close, factors_of, operands, plus_number, product_of


def hard_swish(graph: Graph, platform: Target) -> Graph:
    """The graph with each HardSwish as one operator."""
    del platform
    if not any(node.op in ("Clip", "HardSigmoid") for node in graph.nodes):
        return graph
    return rewrite(graph, {"Mul": _rule, "Div": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    return (node.op == "Mul" and _gated(edit, node)) or _clipped(edit, node)


def _gated(edit: Edit, node: Node) -> bool:
    for x, gate in operands(node):
        sigmoid = edit.producer(gate, "HardSigmoid")
        if sigmoid is None or sigmoid.inputs[0] != x:
            continue
        call = edit.call(sigmoid)
        if close(call.float("alpha"), 1 / 6) and close(call.float("beta"), 0.5):
            edit.emit("HardSwish", (x,), node.outputs[0])
            return True
    return False


def _clipped(edit: Edit, node: Node) -> bool:
    """x times `clip(x + 3, 0, 6)`, divided by 6 in any place."""
    for gate in factors_of(edit, node):
        clip = edit.producer(gate, "Clip")
        shifted = plus_number(edit, clip.inputs[0]) if clip and _bounds(edit, clip) == (0.0, 6.0) else None
        if shifted is None or shifted[1] != 3 or edit.types[shifted[0]] != edit.types[node.outputs[0]]:
            continue
        x = shifted[0]
        found = product_of(edit, node, frozenset({x, gate}))
        if found and close(found[0], 1 / 6) and found[1] == tuple(sorted((x, gate))):
            edit.emit("HardSwish", (x,), node.outputs[0])
            return True
    return False


def _bounds(edit: Edit, clip: Node) -> tuple[float | None, ...]:
    return tuple(edit.uniform(name) for name in clip.inputs[1:])
