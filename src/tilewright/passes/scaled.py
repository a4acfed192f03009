"""Sums that are scaled back with a factor for each column, as kernels for what follows take them."""

from __future__ import annotations

from tilewright.base.dtype import INT32, DType
from tilewright.core.graph import Node
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.ops.integer_rules import limits
from tilewright.ops.requant_shift import levels_of
from tilewright.passes.edit import Edit


def scaled_sums(edit: Edit, name: str, dtype: DType) -> Node | None:
    """The RequantShift that a tensor of some type comes from, where nothing else reads it and products fit 32 bits."""
    scaled = edit.producer(name, "RequantShift")
    if scaled is None or not edit.single(name) or edit.types[name].dtype != dtype:
        return None
    columns, numbers = edit.shape(scaled.inputs[0])[-1:], REGISTRY[scaled.op].numbers
    fits = (
        all(edit.types[given].dtype == INT32 for given in scaled.inputs)
        and all(edit.shape(given) == columns for given in scaled.inputs[1:])
        and numbers is not None
        and "column_shift" in numbers(edit.call(scaled))
    )
    return scaled if fits else None


def only_shifts(edit: Edit, node: Node, dtype: DType) -> bool:
    """Whether a RequantShift shifts, rounds half up, keeps the bits of some type, and does nothing else."""
    call, (mul, add) = edit.call(node), (edit.uniform(name) for name in node.inputs[1:])
    return (
        (mul, add) == (1, 0)
        and not call.int("half_to_even")
        and not call.int("zero_point")
        and limits(levels_of(call), call.int("signed") != 0) == (dtype.lo, dtype.hi)
    )


def emitted(platform: Target, edit: Edit, whole: Node) -> bool:
    """Whether the platform has a kernel for a node, which then takes the place of those that it does the work of."""
    call = edit.call(whole)
    names = binding_names(call)
    if all(why_not(kernel, call, whole, edit.graph, names, {}) for kernel in platform.kernels_of(whole.op)):
        return False
    edit.emit_all(whole.op, whole.inputs, whole.outputs, whole.attrs)
    return True
