"""Softmax on integers, over the last axis: iSoftmax (a polynomial), ITAMax and ITAPartialMax (powers of two)."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT32, smallest_integer
from tilewright.core.domain import Domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Operator, declare, example
from tilewright.ops.integer_rules import levels_dtype, need_integers
from tilewright.ops.rules import axis_domain


def _row_check(call: Call) -> TensorType:
    need_integers(call, "x")
    x = call.type("x")
    if x.rank == 0:
        raise call.error("shape-mismatch", "a scalar has no last axis")
    if call.int("n_levels") > 1 << 16:
        raise call.error("bad-attribute", f"n_levels={call.int('n_levels')} is more than 65536")
    return x


def _unsigned(call: Call) -> tuple[TensorType, ...]:
    return (_row_check(call).with_dtype(levels_dtype(call, call.int("n_levels"), signed=False)),)


def _domain(call: Call) -> Domain:
    return axis_domain(call, call.type("x").rank - 1, ("x",), ("y",))


def _infer_softmax(call: Call) -> tuple[TensorType, ...]:
    if call.int("log2") < 1:
        raise call.error("bad-attribute", f"log2={call.int('log2')} must be positive")
    return _unsigned(call)


def _softmax(call: Call, x: Array) -> Array:
    a, b, c, log2 = (call.int(name) for name in ("coeffA", "coeffB", "coeffC", "log2"))
    below = x.astype(np.int64) - x.max(axis=-1, keepdims=True, initial=call.type("x").dtype.lo)
    halvings = np.clip(-below // log2, 0, 31)
    rest = below + halvings * log2
    powers = (a * (rest + b) ** 2 + c) >> halvings
    total = powers.sum(axis=-1, keepdims=True)
    return np.where(total == 0, 0, powers * (call.int("n_levels") - 1) // np.where(total == 0, 1, total))


declare(
    Operator(
        "iSoftmax",
        "x",
        "y",
        _infer_softmax,
        _domain,
        _softmax,
        (
            example("int8[2,3,16]", coeffA=1, coeffB=173, coeffC=15599, log2=127, n_levels=256),
            example("int32[4,9]", coeffA=1.0, coeffB=60.0, coeffC=900.0, log2=44.0, n_levels=256.0),
            example("uint8[7]", coeffA=1, coeffB=17, coeffC=155, log2=12, n_levels=256),
        ),
        MappingProxyType(
            {"coeffA": REQUIRED, "coeffB": REQUIRED, "coeffC": REQUIRED, "log2": REQUIRED, "n_levels": 256}
        ),
        doc="Softmax by halvings and a second-order polynomial.",
    )
)


def _halvings(top: Array, x: Array) -> Array:
    """How often 256 is halved for an element that lies below the maximum."""
    return np.minimum((top - x + 16) >> 5, 31)


def _ita_max(call: Call, x: Array) -> Array:
    wide = x.astype(np.int64)
    shift = _halvings(wide.max(axis=-1, keepdims=True, initial=call.type("x").dtype.lo), wide)
    total = (256 >> shift).sum(axis=-1, keepdims=True)
    return ((call.int("n_levels") - 1) * 256 // np.maximum(total, 1)) >> shift


declare(
    Operator(
        "ITAMax",
        "x",
        "y",
        _unsigned,
        _domain,
        _ita_max,
        (
            example("int8[2,3,16]", n_levels=256),
            example("uint8[9]", n_levels=256.0),
            example("int32[4,7]", n_levels=16),
        ),
        MappingProxyType({"n_levels": 256}),
        doc="Softmax by halvings only: every 32 below the maximum halve the result.",
    )
)


TERM_BITS = 8
"""An entry at the maximum adds two to this power to the sum, where nobody says otherwise."""


def _infer_partial(call: Call) -> tuple[TensorType, ...]:
    x = _row_check(call)
    if call.int("group_width") < 1:
        raise call.error("bad-attribute", f"group_width={call.int('group_width')} must be positive")
    if x.dtype.lo < INT32.lo or x.dtype.hi > INT32.hi:
        raise call.error("type-mismatch", f"x must have at most 32 bits, found {x.dtype}")
    bits = call.int("term_bits")
    if not TERM_BITS <= bits <= 16 or x.shape[-1] << bits > INT32.hi:
        raise call.error("bad-attribute", f"term_bits={bits} must be 8 to 16, and sums of a row have 32 bits")
    return (x.with_dtype(smallest_integer(0, call.int("n_levels") // 2 - 1)),)


def _ita_partial_max(call: Call, x: Array) -> Array:
    wide, width, one = x.astype(np.int64), call.int("group_width"), 1 << call.int("term_bits")
    top = np.full((*x.shape[:-1], 1), -128, np.int64)
    total = np.zeros_like(top)
    for start in range(0, x.shape[-1], width):
        group = wide[..., start : start + width]
        highest = group.max(axis=-1, keepdims=True)
        rescale = np.where(highest > top, _halvings(highest, top), 0)
        top = np.maximum(top, highest)
        total = (total >> rescale) + (one >> _halvings(top, group)).sum(axis=-1, keepdims=True)
    inverse = (call.int("n_levels") // 2 - 1) * one // np.maximum(total, 1)
    return inverse >> _halvings(top, wide)


declare(
    Operator(
        "ITAPartialMax",
        "x",
        "y",
        _infer_partial,
        _domain,
        _ita_partial_max,
        (
            example("int8[2,3,16]", group_width=4, n_levels=256),
            example("int8[3,10]", group_width=4, n_levels=256.0, term_bits=10),
            example("uint8[9]", group_width=16, n_levels=256),
        ),
        MappingProxyType({"group_width": REQUIRED, "n_levels": 256, "term_bits": TERM_BITS}),
        doc=(
            "ITAMax group by group, as a streaming unit does it: a growing maximum halves the running sum. An entry at "
            "the maximum adds `2^term_bits` to it: 8 in Deeploy's operator, 10 in units of ITA with a head each."
        ),
    )
)
