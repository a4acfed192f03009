"""Operators in the arithmetic of ITA that ONNX has no words for: its softmax and its GELU.

Its linear layers are plain ones: MatMul, Add and RequantShift with one `mul` below 256 and `add` a multiple of `div`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT8, UINT8
from tilewright.core.domain import Domain, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.integer_rules import point_domain
from tilewright.ops.ita_rules import SUM_BITS, gelu, requantised, softmax
from tilewright.ops.rules import axis_domain

FACTORS = {"mult": 1 << 8, "shift": 24, "b": 1 << 15, "c": 1 << 15, "add": 1 << 7}
"""Attributes with the first number that its registers do not hold."""


def _bytes(call: Call) -> TensorType:
    x = call.type("x")
    if x.dtype != INT8 or x.rank == 0:
        raise call.error("type-mismatch", f"x must be int8 with an axis at least, found {x}")
    for name, most in FACTORS.items():
        value = call.int(name) if name in call.attrs else 0
        least = 0 if name in ("mult", "shift") else -most
        if not least <= value < most or (name == "b" and value > 0):
            raise call.error("bad-attribute", f"{name}={value} does not fit the register of the accelerator")
    return x


def _infer_softmax(call: Call) -> tuple[TensorType, ...]:
    return (_bytes(call).with_dtype(UINT8),)


def _rows(call: Call) -> Domain:
    return axis_domain(call, call.type("x").rank - 1, ("x",), ("y",))


def _softmax(call: Call, x: Array) -> Array:
    del call
    return softmax(x)


def _peaked() -> Array:
    """Rows whose maximum grows late, and one with more entries at the maximum than a byte can share."""
    rows = np.full((3, 300), -9, np.int8)
    rows[0] = np.arange(300) % 40 - 20
    rows[1, -1] = 127
    return rows


declare(
    Operator(
        "ITASoftmax",
        "x",
        "y",
        _infer_softmax,
        _rows,
        _softmax,
        (example("int8[2,3,64]"), example("int8[37]"), example(_peaked())),
        doc="Softmax as ITA computes it: each step below the maximum halves the result, in groups of 16 columns.",
    )
)


def _infer_gelu(call: Call) -> tuple[TensorType, ...]:
    return (_bytes(call),)


def _points(call: Call) -> Domain:
    return point_domain(call, {"x": tuple(dim(name) for name in axis_names(call.type("x").rank))})


def _gelu(call: Call, x: Array) -> Array:
    raw = gelu(x, call.int("b"), call.int("c"))
    return requantised(raw, call.int("mult"), call.int("shift"), call.int("add"))


def _gelu_body(call: Call) -> Body:
    b, c, mult, shift, add = (call.int(name) for name in ("b", "c", "mult", "shift", "add"))
    half, spare = 1 << shift >> 1, 32 - SUM_BITS
    curve = f"(x < 0 ? -curve : curve) + {c}"
    return Body(
        MappingProxyType({"y": "(int32_t)(scaled < -128 ? -128 : scaled > 127 ? 127 : scaled)"}),
        (
            ("int32_t", "beyond", f"(x < 0 ? -x : x) + {b}"),
            ("int32_t", "below", "beyond > 0 ? 0 : beyond"),
            ("int32_t", "curve", f"below * below + {c}"),
            ("int32_t", "raw", f"(int32_t)(((uint32_t)x * (uint32_t)({curve})) << {spare}) >> {spare}"),
            ("int64_t", "scaled", f"(((int64_t)raw * {mult} + {half}) >> {shift}) + {add}"),
        ),
    )


def _limit(call: Call, limits: Mapping[str, int]) -> int:
    del call, limits
    return 128


declare(
    Operator(
        "ITAGelu",
        "x",
        "y",
        _infer_gelu,
        _points,
        _gelu,
        (
            example("int8[3,64]", b=-80, c=-7091, mult=74, shift=20),
            example(np.arange(-128, 128).astype(np.int8), b=-41, c=-1847, mult=131, shift=19, add=-3),
            example(np.arange(-128, 128).astype(np.int8), b=-32768, c=32767, mult=255, shift=23, add=127),
        ),
        MappingProxyType({"b": REQUIRED, "c": REQUIRED, "mult": REQUIRED, "shift": REQUIRED, "add": 0}),
        "elementwise",
        _gelu_body,
        doc="GELU as ITA computes it on bytes: a polynomial, requantised. Its result has the sign of `c`.",
        limit=_limit,
    )
)
