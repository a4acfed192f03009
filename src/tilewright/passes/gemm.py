"""Turns Gemm into MatMul and Add, so that one family of kernels serves both.

A constant matrix is transposed and scaled at compile time; what is not known then is transposed or scaled by operators.
"""

from __future__ import annotations

import numpy as np

from tilewright.base.dtype import DType
from tilewright.core.graph import Array, Graph, Node
from tilewright.machine.target import Target
from tilewright.ops.rules import ELEMENT_TYPES
from tilewright.passes.edit import Edit, rewrite


def gemm(graph: Graph, platform: Target) -> Graph:
    """The graph with `alpha * A @ B + beta * C` as a MatMul and, where C is there, an Add."""
    del platform
    return rewrite(graph, {"Gemm": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    call = edit.call(node)
    output = node.outputs[0]
    kind = edit.types[output].dtype
    bias = node.inputs[2] if call.has("C") and not _is_zero(edit, node.inputs[2]) and call.float("beta") else ""
    if not call.float("alpha"):
        return False
    a = _turned(edit, node.inputs[0]) if call.int("transA") else node.inputs[0]
    b, turned = node.inputs[1], call.int("transB")
    if turned and b in edit.constants:
        b, turned = _turned(edit, b), 0
    alpha = call.float("alpha")
    if alpha != 1:
        b, alpha = _scaled_constant(edit, b, alpha)
    attributes = {"transB": 1} if turned else {}
    last = output if alpha == 1 and not bias else ""
    result = edit.emit("MatMul", (a, b), last, **attributes)
    if alpha != 1:
        result = _times(edit, result, alpha, "" if bias else output)
    if bias:
        edit.emit("Add", (result, _bias(edit, bias, call.float("beta"), kind)), output)
    return True


def _turned(edit: Edit, name: str) -> str:
    """Matrices with rows and columns exchanged."""
    rank = len(edit.shape(name))
    return edit.transpose(name, (*range(rank - 2), rank - 1, rank - 2))


def _is_zero(edit: Edit, name: str) -> bool:
    return edit.uniform(name) == 0


def _bias(edit: Edit, name: str, beta: float, kind: DType) -> str:
    """`beta * C` in the type of the result."""
    if edit.types[name].dtype != kind:
        array = edit.constants.get(name)
        if array is None:
            name = edit.emit("Cast", (name,), to=_type_number(kind))
        else:
            name = edit.constant(array.astype(kind.numpy), f"{name}_{kind}")
    if beta == 1:
        return name
    name, left = _scaled_constant(edit, name, beta)
    return name if left == 1 else _times(edit, name, left, "")


def _type_number(kind: DType) -> int:
    """The number by which Cast names an element type."""
    return next(number for number, listed in ELEMENT_TYPES.items() if listed == kind)


def _scaled_constant(edit: Edit, name: str, factor: float) -> tuple[str, float]:
    """A constant times a number where every product is exact, and the factor that is still to be applied."""
    array = edit.constants.get(name)
    if array is None:
        return name, factor
    product = _exact_product(array, factor)
    return (name, factor) if product is None else (edit.constant(product, f"{name}_scaled"), 1.0)


def _exact_product(array: Array, factor: float) -> Array | None:
    if array.dtype.kind in "iu":
        wide = array.astype(np.int64) * int(factor)
    else:
        wide = array.astype(np.float64) * factor
    narrow = wide.astype(array.dtype)
    return narrow if np.array_equal(narrow.astype(wide.dtype), wide) else None


def _times(edit: Edit, name: str, factor: float, output: str) -> str:
    number = edit.constant(np.array(factor, edit.types[name].dtype.numpy), f"{name}_factor")
    return edit.emit("Mul", (name, number), output)
