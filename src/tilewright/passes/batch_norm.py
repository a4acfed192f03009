"""Takes batch normalisation with known statistics into the weights before it, or makes it a product and a sum."""

from __future__ import annotations

import numpy as np

from tilewright.core.graph import Array, Graph, Node
from tilewright.core.op import Call
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite


def batch_norm(graph: Graph, platform: Target) -> Graph:
    """The graph with each BatchNormalization of known statistics folded or spelled out."""
    del platform
    return rewrite(graph, {"BatchNormalization": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    call = edit.call(node)
    parameters = [edit.constants.get(name) for name in node.inputs[1:]]
    known = [array.astype(np.float64) for array in parameters if array is not None]
    if call.int("training_mode") or len(known) < 4:
        return False
    scale, bias, mean, variance = known
    factor = scale / np.sqrt(variance + call.float("epsilon"))
    offset = bias - mean * factor
    return _into_weights(edit, node, factor, offset) or _as_product(edit, node, factor, offset)


def _into_weights(edit: Edit, node: Node, factor: Array, offset: Array) -> bool:
    """Scales the weights of the convolution or product that only this node reads."""
    source, output = node.inputs[0], node.outputs[0]
    before = edit.producer(source, "Conv", "ConvTranspose", "MatMul", "Add")
    if before is None or not edit.single(source):
        return False
    if before.op == "Add":
        return _into_biased_product(edit, before, output, factor, offset)
    weights = edit.constants.get(before.inputs[1])
    if weights is None or (before.op == "MatMul" and not _is_linear(edit, before)):
        return False
    call = edit.call(before)
    if before.op == "MatMul":
        product = edit.emit_all("MatMul", (before.inputs[0], _columns(edit, before, factor)), (None,), before.attrs)
        edit.emit("Add", (product[0], _typed(edit, offset, source, output)), output)
        return True
    if call.has("B"):
        own = edit.constants.get(before.inputs[2])
        if own is None:
            return False
        offset = offset + factor * own.astype(np.float64)
    scaled = _typed(edit, _scaled_kernel(call, weights, factor), before.inputs[1], f"{output}_W")
    edit.emit_all(
        before.op, (before.inputs[0], scaled, _typed(edit, offset, source, f"{output}_B")), (output,), before.attrs
    )
    return True


def _scaled_kernel(call: Call, weights: Array, factor: Array) -> Array:
    """The kernel with each output channel scaled; those of ConvTranspose lie on axis 1, group by group."""
    wide = weights.astype(np.float64)
    if call.op.name == "Conv":
        return wide * factor.reshape(-1, *(1,) * (wide.ndim - 1))
    group = call.int("group")
    grouped = wide.reshape(group, wide.shape[0] // group, *wide.shape[1:])
    return (grouped * factor.reshape(group, 1, -1, *(1,) * (wide.ndim - 2))).reshape(wide.shape)


def _is_linear(edit: Edit, product: Node) -> bool:
    """Whether a product is `[rows, features] @ constant`, so that its columns are the channels."""
    return len(edit.shape(product.outputs[0])) == 2 and len(edit.shape(product.inputs[1])) == 2


def _columns(edit: Edit, product: Node, factor: Array) -> str:
    weights = edit.constants[product.inputs[1]].astype(np.float64)
    scaled = weights * (factor[:, None] if edit.call(product).int("transB") else factor)
    return _typed(edit, scaled, product.inputs[1], f"{product.inputs[1]}_scaled")


def _into_biased_product(edit: Edit, add: Node, output: str, factor: Array, offset: Array) -> bool:
    """`(x @ W + b) * factor + offset` as `x @ (W * factor) + (b * factor + offset)`."""
    source, bias = add.inputs
    product, known = edit.producer(source, "MatMul"), edit.constants.get(bias)
    if product is None or known is None or product.inputs[1] not in edit.constants or not edit.single(source):
        return False
    if not _is_linear(edit, product) or edit.shape(source) != edit.shape(output):
        return False
    shifted = _typed(edit, known.astype(np.float64) * factor + offset, bias, f"{bias}_shifted")
    result = edit.emit_all("MatMul", (product.inputs[0], _columns(edit, product, factor)), (None,), product.attrs)
    edit.emit("Add", (result[0], shifted), output)
    return True


def _as_product(edit: Edit, node: Node, factor: Array, offset: Array) -> bool:
    source, output = node.inputs[0], node.outputs[0]
    rank = len(edit.shape(source))
    per_channel = (1, -1, *(1,) * (rank - 2)) if rank > 1 else (-1,)
    scaled = edit.emit("Mul", (source, _typed(edit, factor.reshape(per_channel), source, f"{output}_factor")))
    edit.emit("Add", (scaled, _typed(edit, offset.reshape(per_channel), source, f"{output}_offset")), output)
    return True


def _typed(edit: Edit, array: Array, like: str, hint: str) -> str:
    """A new constant with the element type of another tensor."""
    return edit.constant(array.astype(edit.types[like].dtype.numpy), hint)
