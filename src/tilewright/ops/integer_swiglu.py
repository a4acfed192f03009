"""iSwiGLU: `clip(((G * table[G >> step]) >> 15) * U >> shift)`, the gate of a feed-forward layer on integers.

The table has 2^15 times the sigmoid; its middle is that of zero, and beyond its ends the ends count. Indices and
results are rounded half up.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT8, INT16
from tilewright.core.domain import WHOLE, Domain, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.integer_rules import point_domain


def _infer(call: Call) -> tuple[TensorType, ...]:
    g, u, table = call.type("G"), call.type("U"), call.type("table")
    if g.dtype != INT16 or u != g:
        raise call.error("type-mismatch", f"G {g} and U {u} must be int16 of one shape")
    if table.dtype != INT16 or table.rank != 1 or table.size < 2 or table.size % 2:
        raise call.error("type-mismatch", f"table must be an even number of int16, found {table}")
    for name in ("step", "shift"):
        if not 0 < call.int(name) < 31:
            raise call.error("bad-attribute", f"{name}={call.int(name)} must be 1 to 30")
    return (g.with_dtype(INT8),)


def _domain(call: Call) -> Domain:
    place = tuple(dim(name) for name in axis_names(call.type("G").rank))
    return point_domain(call, {"G": place, "U": place, "table": (WHOLE,)})


def _reference(call: Call, G: Array, U: Array, table: Array) -> Array:
    g, half, step, shift = G.astype(np.int64), len(table) // 2, call.int("step"), call.int("shift")
    index = np.clip(((g + (1 << step >> 1)) >> step) + half, 0, len(table) - 1)
    gated = (g * table[index]) >> 15
    return np.clip((gated * U + (1 << shift >> 1)) >> shift, INT8.lo, INT8.hi)


def _body(call: Call) -> Body:
    size, step, shift = call.type("table").size, call.int("step"), call.int("shift")
    index = f"tw_clamp(((G + {1 << step >> 1}) >> {step}) + {size // 2}, 0, {size - 1})"
    result = f"tw_clamp((gated * U + {1 << shift >> 1}) >> {shift}, {INT8.lo}, {INT8.hi})"
    return Body(MappingProxyType({"Y": result}), (("int32_t", "gated", f"((int32_t)G * table_at({index})) >> 15"),))


declare(
    Operator(
        "iSwiGLU",
        "G U table",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int16[3,40]", "int16[3,40]", np.arange(128).astype(np.int16) * 256, step=9, shift=20),
            example("int16[7]", "int16[7]", "int16[6]", step=12, shift=18),
        ),
        MappingProxyType({"step": REQUIRED, "shift": REQUIRED}),
        "elementwise",
        _body,
        doc=__doc__ or "",
    )
)
