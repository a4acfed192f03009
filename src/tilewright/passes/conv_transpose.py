"""Turns transposed convolutions into plain ones, which have fast kernels.

With stride s, output `s*m + r` only meets the weights `s*t + r`: all s phases r are channels of one convolution over
the input with a kernel s times smaller, which are then laid next to each other. Padding cuts off the edges.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.core.domain import Affine
from tilewright.core.graph import Array, Attr, Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite

PHASES_LIMIT = 64 << 20
"""Bytes of weights that are mostly zeros: strides far beyond the kernel leave nothing to gain."""


def conv_transpose(graph: Graph, platform: Target) -> Graph:
    """The graph with convolutions in place of transposed ones that have constant weights."""
    del platform
    return rewrite(graph, {"ConvTranspose": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    weights, output = edit.constants.get(node.inputs[1]), node.outputs[0]
    if weights is None:
        return False
    call = edit.call(node)
    axes = [axis for axis in call.domain().access["X"][2:] if isinstance(axis, Affine)]
    rank, group = len(axes), call.int("group")
    strides = [axis.divisor for axis in axes]
    dilations = [max(1, *(-coefficient for _, coefficient in axis.terms)) for axis in axes]
    if weights.nbytes * prod(strides) > PHASES_LIMIT:
        return False
    phased = _phases(weights, group, strides, dilations)
    taps = phased.shape[2:]
    sizes = edit.shape(node.inputs[0])[2:]
    made = [strides[i] * (sizes[i] + taps[i] - 1) for i in range(rank)]
    ends = [axis.constant + extent for axis, extent in zip(axes, edit.shape(output)[2:], strict=True)]
    if len(axes) != weights.ndim - 2 or any(end > extent for end, extent in zip(ends, made, strict=True)):
        return False
    inputs = [node.inputs[0], edit.constant(phased, f"{node.inputs[1]}_phases")]
    if call.has("B"):
        bias = edit.constants.get(node.inputs[2])
        if bias is None:
            return False
        spread = np.tile(bias.reshape(group, 1, -1), (1, prod(strides), 1)).reshape(-1)
        inputs.append(edit.constant(spread, f"{node.inputs[2]}_phases"))
    pads = tuple(extent - 1 for extent in taps)
    attributes: dict[str, Attr] = {"group": group, "pads": pads * 2, "kernel_shape": taps}
    (result,) = edit.emit_all("Conv", inputs, (None,), attributes)
    result = _interleaved(edit, result, group, strides)
    starts = [axis.constant for axis in axes]
    lists = [edit.integers(values, f"{output}_{i}") for i, values in enumerate((starts, ends, range(2, rank + 2)))]
    edit.emit("Slice", (result, *lists), output)
    return True


def _phases(weights: Array, group: int, strides: list[int], dilations: list[int]) -> Array:
    """Weights `[C, F/g, k...]` as those of a convolution, `[g * phases * F/g, C/g, k/s...]`."""
    channels, features, *kernel = weights.shape
    rank = len(kernel)
    reach = [(kernel[i] - 1) * dilations[i] + 1 for i in range(rank)]
    taps = [-(-reach[i] // strides[i]) for i in range(rank)]
    spread = np.zeros((channels, features, *(taps[i] * strides[i] for i in range(rank))), weights.dtype)
    spread[(slice(None), slice(None), *(slice(0, reach[i], dilations[i]) for i in range(rank)))] = weights
    pairs = [extent for i in range(rank) for extent in (taps[i], strides[i])]
    parts = spread.reshape(group, channels // group, features, *pairs)
    # The window of a convolution runs the other way round.
    parts = np.flip(parts, tuple(range(3, 3 + 2 * rank, 2)))
    order = (0, *range(4, 4 + 2 * rank, 2), 2, 1, *range(3, 3 + 2 * rank, 2))
    shape = (group * prod(strides) * features, channels // group, *taps)
    return np.ascontiguousarray(parts.transpose(order).reshape(shape))


def _interleaved(edit: Edit, name: str, group: int, strides: list[int]) -> str:
    """Channels `[g, s..., F/g]` with the phases s laid next to each other along the spatial axes."""
    batch, channels, *sizes = edit.shape(name)
    rank, phases = len(strides), prod(strides)
    if phases == 1:
        return name
    apart = edit.reshape(name, (batch, group, *strides, channels // phases // group, *sizes))
    pairs = [axis for i in range(rank) for axis in (3 + rank + i, 2 + i)]
    turned = edit.transpose(apart, (0, 1, 2 + rank, *pairs))
    return edit.reshape(turned, (batch, channels // phases, *(n * s for n, s in zip(sizes, strides, strict=True))))
