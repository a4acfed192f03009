"""Turns 1-D convolutions and pools into 2-D ones of height 1, so that the same kernels serve both."""

from __future__ import annotations

from tilewright.core.graph import Attr, Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, Rule, rewrite


def conv1d(graph: Graph, platform: Target) -> Graph:
    """The graph with a unit height in each 1-D convolution and pool."""
    del platform
    return rewrite(graph, RULES)


def _rule(*operands: int) -> Rule:
    """A rule that widens the first input and the kernels among the inputs."""

    def rule(edit: Edit, node: Node) -> bool:
        source, output = node.inputs[0], node.outputs[0]
        if len(edit.shape(source)) != 3 or node.outputs[1:] or node.attrs.get("channels_last"):
            return False
        inputs = [_tall(edit, name) if index in operands and name else name for index, name in enumerate(node.inputs)]
        (result,) = edit.emit_all(node.op, inputs, (None,), {key: _attribute(key, v) for key, v in node.attrs.items()})
        edit.reshape(result, edit.shape(output), output)
        return True

    return rule


def _tall(edit: Edit, name: str) -> str:
    """`[n, c, w]` as `[n, c, 1, w]`."""
    first, second, width = edit.shape(name)
    return edit.reshape(name, (first, second, 1, width))


def _attribute(key: str, value: Attr) -> Attr:
    """A list attribute with an entry for the height. An empty one is as good as none."""
    if not isinstance(value, tuple) or not value:
        return value
    numbers = tuple(int(v) for v in value)
    if key == "pads":
        return (0, numbers[0], 0, numbers[1])
    return (1, *numbers) if key in ("kernel_shape", "strides", "dilations") else value


RULES = {
    "Conv": _rule(0, 1),
    "FusedConv": _rule(0, 1, 3),
    "ConvInteger": _rule(0, 1),
    "QLinearConv": _rule(0, 3),
    "MaxPool": _rule(0),
    "AveragePool": _rule(0),
    "LpPool": _rule(0),
    "QLinearAveragePool": _rule(0),
}
