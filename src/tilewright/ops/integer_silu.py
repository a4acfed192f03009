"""iSiLU: `(G * table[G >> step]) >> 15`, a gate on integers.

The table has 2^15 times the sigmoid; its middle is that of zero, and beyond its ends the ends count. Indices are
rounded half up.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT16
from tilewright.core.domain import WHOLE, Domain, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.integer_rules import point_domain


def _infer(call: Call) -> tuple[TensorType, ...]:
    g, table = call.type("G"), call.type("table")
    if g.dtype != INT16:
        raise call.error("type-mismatch", f"G {g} must be int16")
    if table.dtype != INT16 or table.rank != 1 or table.size < 2 or table.size % 2:
        raise call.error("type-mismatch", f"table must be an even number of int16, found {table}")
    if not 0 < call.int("step") < 31:
        raise call.error("bad-attribute", f"step={call.int('step')} must be 1 to 30")
    return (g,)


def _domain(call: Call) -> Domain:
    place = tuple(dim(name) for name in axis_names(call.type("G").rank))
    return point_domain(call, {"G": place, "table": (WHOLE,)})


def _reference(call: Call, G: Array, table: Array) -> Array:
    g, half, step = G.astype(np.int64), len(table) // 2, call.int("step")
    index = np.clip(((g + (1 << step >> 1)) >> step) + half, 0, len(table) - 1)
    return np.clip((g * table[index]) >> 15, INT16.lo, INT16.hi)


def _body(call: Call) -> Body:
    size, step = call.type("table").size, call.int("step")
    index = f"tw_clamp(((G + {1 << step >> 1}) >> {step}) + {size // 2}, 0, {size - 1})"
    # Only the lowest number times the lowest is too large.
    result = f"tw_min(((int32_t)G * table_at({index})) >> 15, {INT16.hi})"
    return Body(MappingProxyType({"Y": result}))


declare(
    Operator(
        "iSiLU",
        "G table",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int16[3,40]", np.arange(128).astype(np.int16) * 256, step=9),
            example("int16[7]", "int16[6]", step=12),
        ),
        MappingProxyType({"step": REQUIRED}),
        "elementwise",
        _body,
        doc=__doc__ or "",
    )
)
