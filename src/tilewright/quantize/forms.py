"""Quantised forms: the integers, scale and zero point that stand for a tensor of real numbers."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import INT8, DType
from tilewright.core.graph import Array, Graph, Node


class Scheme(Struct, frozen=True):
    """How real numbers map to integers: `real = scale * (integer - zero)`, one scale for all or one along an axis."""

    dtype: DType
    scale: Array
    zero: int
    axis: int | None = None

    @property
    def per_tensor(self) -> bool:
        return self.axis is None

    @property
    def step(self) -> float:
        """The scale of a per-tensor scheme, widened from float32 without rounding."""
        return float(self.scale.reshape(-1)[0])

    def same(self, other: Scheme) -> bool:
        return (
            self.dtype == other.dtype
            and self.zero == other.zero
            and self.axis == other.axis
            and np.array_equal(self.scale, other.scale)
        )


class Form(Struct, frozen=True):
    """A tensor of integers and what they mean."""

    tensor: str
    scheme: Scheme


def scheme_of(graph: Graph, node: Node, dtype: DType) -> Scheme | None:
    """The scheme of a (de)quantising node; None where it is no constant, infinite, blocked or has several zeros."""
    scale = graph.constants.get(node.inputs[1])
    zero_name = node.inputs[2] if len(node.inputs) > 2 else ""
    zeros = graph.constants.get(zero_name) if zero_name else np.zeros(1, np.int64)
    if scale is None or zeros is None or scale.dtype != np.float32 or node.attrs.get("block_size"):
        return None
    values = {*zeros.astype(np.int64).reshape(-1).tolist()}
    # A range that is infinite (a mask with -inf) gives a scale that no integer arithmetic can follow.
    if len(values) != 1 or not scale.size or not np.all(np.isfinite(scale)):
        return None
    axis = None
    if scale.size > 1:
        given = node.attrs.get("axis", 1)
        axis = int(given) if isinstance(given, (int, float)) else 1
    return Scheme(dtype, scale.reshape(-1) if axis is not None else scale.reshape(()), values.pop(), axis)


def quantised(values: Array, scheme: Scheme) -> Array:
    """Real numbers as integers of a per-tensor scheme, exactly as QuantizeLinear does it."""
    with np.errstate(all="ignore"):
        scaled = np.rint(values.astype(np.float32) / scheme.scale.astype(np.float32)) + np.float32(scheme.zero)
    low, high = scheme.dtype.lo, scheme.dtype.hi
    return np.clip(np.nan_to_num(scaled, nan=low, posinf=high, neginf=low), low, high).astype(scheme.dtype.numpy)


def codes(dtype: DType) -> Array:
    """All values of an 8-bit type in the order of a lookup table."""
    return np.arange(dtype.lo, dtype.hi + 1).astype(dtype.numpy)


def dequantised(values: Array, scheme: Scheme) -> Array:
    """Integers of a per-tensor scheme as the float32 numbers they stand for."""
    return (values.astype(np.float32) - np.float32(scheme.zero)) * scheme.scale.astype(np.float32)


def narrowed(weights: Array) -> tuple[Array, int]:
    """Weights as int8 and a number to add to each, as a zero point far from the middle asks for one more bit.

    Where neither fits, the weights stay as they are, which only the loop nest takes.
    """
    low, high = int(weights.min(initial=0)), int(weights.max(initial=0))
    offset = 0 if INT8.lo <= low and high <= INT8.hi else high - INT8.hi
    if offset > INT8.hi or low - offset < INT8.lo:
        return weights, 0
    return (weights - offset).astype(np.int8), offset
