"""Activations on integers: iGELU, iHardswish, iLeakyReLU, and Lookup, which is any function of one narrow integer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT8, INT32, UINT8
from tilewright.core.domain import WHOLE, Domain, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.integer_rules import integer_compute, magnitude, need_integers, point_domain


def _point(call: Call) -> Domain:
    return point_domain(call, {"x": tuple(dim(n) for n in axis_names(call.type("x").rank))})


def _int32(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, "x")
    return (call.type("x").with_dtype(INT32),)


def _infer_gelu(call: Call) -> tuple[TensorType, ...]:
    if call.int("b") >= 0:
        raise call.error("bad-attribute", f"b={call.int('b')} must be negative")
    return _int32(call)


def _gelu(call: Call, x: Array) -> Array:
    b, one = call.int("b"), call.int("one")
    wide = x.astype(np.int64)
    distance = np.minimum(np.abs(wide), -b) + b
    erf = np.sign(wide) * (one - distance * distance)
    return wide * ((one + erf) >> 1)


def _gelu_limit(call: Call, limits: Mapping[str, int]) -> int:
    one, furthest = call.int("one"), call.int("b") ** 2
    erf = max(abs(one), abs(one - furthest))
    return limits["x"] * ((abs(one) + erf + 1) // 2)


def _gelu_body(call: Call) -> Body:
    b, one = call.int("b"), call.int("one")
    wide = integer_compute(magnitude(call.type("x").dtype) * (abs(one) + b * b + 1) + abs(b))
    return Body(
        # The sign of zero does not matter: the result is zero anyway.
        MappingProxyType({"y": "value * ((one + (value < 0 ? -erf : erf)) >> 1)"}),
        (
            (wide, "value", f"({wide})x"),
            (wide, "beyond", "(value < 0 ? -value : value) + b"),
            (wide, "distance", "beyond > 0 ? 0 : beyond"),
            (wide, "erf", "one - distance * distance"),
        ),
        constants=((wide, "b", str(b)), (wide, "one", str(one))),
    )


declare(
    Operator(
        "iGELU",
        "x",
        "y",
        _infer_gelu,
        _point,
        _gelu,
        (
            example("int8[3,40]", b=-40, one=1743),
            example("int32[50]", b=-300, one=90000),
            example("uint8[9]", b=-40.0, one=1743.0),
        ),
        MappingProxyType({"b": REQUIRED, "one": REQUIRED}),
        "elementwise",
        _gelu_body,
        doc="GELU by a second-order polynomial on integers; the result is int32.",
        limit=_gelu_limit,
    )
)


def _hardswish(call: Call, x: Array) -> Array:
    wide = x.astype(np.int64)
    return wide * (np.clip(wide + call.int("three"), 0, call.int("six")) * call.int("one_over_six"))


def _hardswish_limit(call: Call, limits: Mapping[str, int]) -> int:
    return limits["x"] * abs(call.int("six") * call.int("one_over_six"))


def _hardswish_body(call: Call) -> Body:
    three, six, sixth = call.int("three"), call.int("six"), call.int("one_over_six")
    wide = integer_compute(magnitude(call.type("x").dtype) * max(1, abs(six * sixth)) + abs(three))
    limited = "(shifted < 0 ? 0 : shifted > six ? six : shifted)"
    if wide == "int32_t" and six >= 0:
        limited = "tw_clamp(shifted, 0, six)"
    return Body(
        MappingProxyType({"y": f"({wide})x * ({limited} * one_over_six)"}),
        ((wide, "shifted", f"({wide})x + three"),),
        constants=((wide, "three", str(three)), (wide, "six", str(six)), (wide, "one_over_six", str(sixth))),
    )


declare(
    Operator(
        "iHardswish",
        "x",
        "y",
        _int32,
        _point,
        _hardswish,
        (
            example("int8[2,3,20]", one_over_six=33, three=765, six=1530),
            example("int32[30]", one_over_six=4.0, three=300.0, six=600.0),
        ),
        MappingProxyType({"one_over_six": REQUIRED, "three": REQUIRED, "six": REQUIRED}),
        "elementwise",
        _hardswish_body,
        doc="`x * (clip(x + three, 0, six) * one_over_six)`; the result is int32.",
        limit=_hardswish_limit,
    )
)


def _infer_leaky(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, "x")
    if not 0 <= call.int("shift") < 32:
        raise call.error("bad-attribute", f"shift={call.int('shift')} must be 0 to 31")
    return (call.type("x"),)


def _leaky(call: Call, x: Array) -> Array:
    dtype, wide = call.type("x").dtype, x.astype(np.int64)
    return np.where(wide < 0, np.clip((wide * call.int("mul")) >> call.int("shift"), dtype.lo, dtype.hi), wide)


def _leaky_limit(call: Call, limits: Mapping[str, int]) -> int:
    return max(limits["x"], ((limits["x"] * abs(call.int("mul"))) >> call.int("shift")) + 1)


def _leaky_body(call: Call) -> Body:
    dtype, mul, shift = call.type("x").dtype, call.int("mul"), call.int("shift")
    if dtype.lo == 0:
        return Body(MappingProxyType({"y": "x"}))
    wide = integer_compute(magnitude(dtype) * max(1, abs(mul)))
    inside = "scaled" if 0 <= mul <= 1 << shift else "scaled < lo ? lo : scaled > hi ? hi : scaled"
    limits = () if inside == "scaled" else ((wide, "lo", str(dtype.lo)), (wide, "hi", str(dtype.hi)))
    return Body(
        MappingProxyType({"y": f"x < 0 ? ({inside}) : ({wide})x"}),
        ((wide, "scaled", f"(({wide})x * mul) >> shift"),),
        constants=((wide, "mul", str(mul)), ("int", "shift", str(shift)), *limits),
    )


declare(
    Operator(
        "iLeakyReLU",
        "x",
        "y",
        _infer_leaky,
        _point,
        _leaky,
        (
            example("int8[3,40]", mul=1, shift=3),
            example("int8[50]", mul=-300, shift=4),
            example("int32[20]", mul=77, shift=8),
            example("uint8[9]", mul=1.0, shift=2.0),
        ),
        MappingProxyType({"mul": REQUIRED, "shift": REQUIRED}),
        "elementwise",
        _leaky_body,
        doc="`x` where that is not negative, else `(mul * x) >> shift` in the limits of the type.",
        limit=_leaky_limit,
    )
)


def _infer_lookup(call: Call) -> tuple[TensorType, ...]:
    x, table = call.type("X"), call.type("table")
    if x.dtype not in (INT8, UINT8):
        raise call.error("type-mismatch", f"X must be int8 or uint8, found {x.dtype}")
    if table.shape != (256,):
        raise call.error("shape-mismatch", f"table must have 256 entries, found the shape {list(table.shape)}")
    return (x.with_dtype(table.dtype),)


def _lookup_domain(call: Call) -> Domain:
    return point_domain(call, {"X": tuple(dim(n) for n in axis_names(call.type("X").rank)), "table": (WHOLE,)})


def _lookup(call: Call, X: Array, table: Array) -> Array:
    return table[X.astype(np.int64) - call.type("X").dtype.lo]


def _lookup_body(call: Call) -> Body:
    lowest = call.type("X").dtype.lo
    lanes = f"tw_lanes_entry(table, X, {-lowest})" if call.type("table").dtype in (INT8, UINT8) else ""
    return Body(MappingProxyType({"Y": f"table_at((int)X{f' + {-lowest}' if lowest else ''})"}), lanes=lanes)


declare(
    Operator(
        "Lookup",
        "X table",
        "Y",
        _infer_lookup,
        _lookup_domain,
        _lookup,
        (
            example("int8[3,7]", "int8[256]"),
            example("uint8[20]", "int16[256]"),
            example("int8[2,2,5]", "float32[256]"),
        ),
        kind="elementwise",
        body=_lookup_body,
        doc="`table[X - lo]` with lo the smallest value of X's type: any function of 256 values.",
    )
)
