"""Takes constant padding into the convolution or pool behind it."""

from __future__ import annotations

from tilewright.core.graph import Attr, Graph, Node
from tilewright.core.op import Call
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite


def pad(graph: Graph, platform: Target) -> Graph:
    """The graph without paddings that the window behind them can have itself."""
    del platform
    if not any(node.op == "Pad" for node in graph.nodes):
        return graph
    return rewrite(
        graph, {"Conv": _into_conv, "FusedConv": _into_conv, "AveragePool": _into_average, "MaxPool": _into_max}
    )


def _into_conv(edit: Edit, node: Node) -> bool:
    """Padding by the value that the convolution's own padding has, or by any where it has none."""
    found = _padding(edit, node)
    if found is None:
        return False
    source, widths, value = found
    call = edit.call(node)
    own = _own_pads(call, len(widths) // 2)
    if own is None or (any(own) and value != call.int("x_zero_point")):
        return False
    attributes: dict[str, Attr] = {"pads": _sum(own, widths)}
    if value:
        if edit.types[source].dtype.is_float:
            return False
        attributes["x_zero_point"] = int(value)
    _replace(edit, node, source, attributes)
    return True


def _into_average(edit: Edit, node: Node) -> bool:
    """Zeros that count: they were elements of the input, so own padding must count as well, or not be there."""
    found = _padding(edit, node)
    if found is None or found[2] != 0:
        return False
    source, widths, _ = found
    call = edit.call(node)
    own = _own_pads(call, len(widths) // 2)
    if own is None or (any(own) and not call.int("count_include_pad")) or not _narrow(call, _sum(own, widths)):
        return False
    _replace(edit, node, source, {"pads": _sum(own, widths), "count_include_pad": 1})
    return True


def _into_max(edit: Edit, node: Node) -> bool:
    """Padding by the smallest value there is never wins."""
    found = _padding(edit, node)
    if found is None or node.outputs[1:]:
        return False
    source, widths, value = found
    kind = edit.types[source].dtype
    call = edit.call(node)
    own = _own_pads(call, len(widths) // 2)
    if own is None or value != (float("-inf") if kind.is_float else kind.lo) or not _narrow(call, _sum(own, widths)):
        return False
    _replace(edit, node, source, {"pads": _sum(own, widths)})
    return True


def _padding(edit: Edit, node: Node) -> tuple[str, tuple[int, ...], float] | None:
    """What is padded, by how much before and after each spatial axis, and with what number."""
    before = edit.producer(node.inputs[0], "Pad")
    if before is None or node.attrs.get("channels_last"):
        return None
    call = edit.call(before)
    value = edit.uniform(before.inputs[2]) if call.has("constant_value") else 0.0
    rank = call.type("data").rank
    axes = edit.ints(before.inputs[3]) if call.has("axes") else tuple(range(rank))
    listed = edit.ints(before.inputs[1])
    if call.text("mode") != "constant" or value is None or axes is None or listed is None or min(listed) < 0:
        return None
    widths = {axis % rank: (listed[i], listed[i + len(axes)]) for i, axis in enumerate(axes)}
    if any(widths.get(axis, (0, 0)) != (0, 0) for axis in (0, 1)):
        return None
    spatial = [widths.get(axis, (0, 0)) for axis in range(2, rank)]
    return before.inputs[0], (*(w[0] for w in spatial), *(w[1] for w in spatial)), value


def _own_pads(call: Call, rank: int) -> tuple[int, ...] | None:
    """The padding a node states; None where it depends on the extents."""
    mode = call.text("auto_pad") or "NOTSET"
    if mode == "VALID":
        return (0,) * (2 * rank)
    return (call.ints("pads") or (0,) * (2 * rank)) if mode == "NOTSET" else None


def _narrow(call: Call, pads: tuple[int, ...]) -> bool:
    """Whether a pool may have this padding: not by a whole window (there would be windows without any element), nor
    with ceil_mode, which drops windows that start in padding but keeps those that start in elements."""
    kernel = call.ints("kernel_shape")
    return not call.int("ceil_mode") and all(width < size for width, size in zip(pads, kernel * 2, strict=True))


def _sum(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _replace(edit: Edit, node: Node, source: str, attributes: dict[str, Attr]) -> None:
    kept = {key: value for key, value in node.attrs.items() if key != "auto_pad"}
    edit.emit_all(node.op, (source, *node.inputs[1:]), node.outputs, {**kept, **attributes})
