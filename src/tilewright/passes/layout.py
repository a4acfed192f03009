"""Puts convolutions and pools into the layout the platform wants: channels last, with Transposes around each.

The `transposes` pass then removes those that meet.
"""

from __future__ import annotations

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, Rule, rewrite


def layout(graph: Graph, platform: Target) -> Graph:
    """The graph with `channels_last` set wherever the platform prefers that."""
    return rewrite(graph, RULES) if platform.channels_last else graph


def _rule(*operands: int, ranks: tuple[int, ...] = (4,)) -> Rule:
    """A rule for an operator whose inputs `operands` have channels."""

    def rule(edit: Edit, node: Node) -> bool:
        rank = len(edit.shape(node.inputs[0]))
        if rank not in ranks or node.outputs[1:] or node.attrs.get("channels_last"):
            return False
        last = (0, *range(2, rank), 1)
        first = (0, rank - 1, *range(1, rank - 1))
        inputs = [
            edit.transpose(name, last) if index in operands and name else name for index, name in enumerate(node.inputs)
        ]
        (result,) = edit.emit_all(node.op, inputs, (None,), {**node.attrs, "channels_last": 1})
        edit.transpose(result, first, node.outputs[0])
        return True

    return rule


GLOBAL = (3, 4, 5)

RULES = {
    "Conv": _rule(0),
    "FusedConv": _rule(0, 3),
    "ConvInteger": _rule(0),
    "QLinearConv": _rule(0),
    "MaxPool": _rule(0),
    "AveragePool": _rule(0),
    "LpPool": _rule(0),
    "QLinearAveragePool": _rule(0),
    "GlobalAveragePool": _rule(0, ranks=GLOBAL),
    "GlobalMaxPool": _rule(0, ranks=GLOBAL),
    "GlobalLpPool": _rule(0, ranks=GLOBAL),
    "QLinearGlobalAveragePool": _rule(0, ranks=GLOBAL),
}
