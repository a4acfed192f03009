"""RequantGate: sums of gates and of their partners become products of 8 bits at once.

`X[S, 2 * F]` has a gate and its partner in turn. It is RequantShift with a factor for each column and `n_levels` of
2^16, with `div` for gates and `partner_div` for partners, iSiLU of the gates, their product with the partners, and of
that RequantShift with `product_div` and `n_levels` of 2^8. Sums times their factors fit 32 bits.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT8, INT16, INT32
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Example, Operator, declare, example, parse_type
from tilewright.ops.integer_rules import power_of_two
from tilewright.ops.sampling import between

SHIFTS = ("div", "partner_div", "product_div")


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, table = call.type("X"), call.type("table")
    if x.dtype != INT32 or x.rank != 2 or x.shape[1] % 2:
        raise call.error("shape-mismatch", f"X {x} must be rows of int32 in pairs")
    for name in ("mul", "add"):
        if call.type(name) != TensorType(INT32, x.shape[1:]):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} must be an int32 for each column")
    if table.dtype != INT16 or table.rank != 1 or table.size < 2 or table.size % 2:
        raise call.error("type-mismatch", f"table must be an even number of int16, found {table}")
    if not 0 < call.int("step") < 16 or any(power_of_two(call, name) < 1 for name in SHIFTS):
        raise call.error("bad-attribute", f"step={call.int('step')} must be 1 to 15, and {', '.join(SHIFTS)} even")
    return (TensorType(INT8, (x.shape[0], x.shape[1] // 2)),)


def _domain(call: Call) -> Domain:
    rows, columns = call.outputs[0].shape
    column = dim("F") * 2 + dim("E")
    access: dict[str, list[Axis]] = {
        "X": [dim("S"), column],
        "mul": [column],
        "add": [column],
        "table": [WHOLE],
        "Y": [dim("S"), dim("F")],
    }
    shapes = {name: call.shape(name) for name in access}
    return domain({"S": rows, "F": columns, "E": 2}, access, shapes, "Y", whole="E")


def _reference(call: Call, X: Array, mul: Array, add: Array, table: Array) -> Array:
    sums, half, step = X.astype(np.int64) * mul + add, len(table) // 2, call.int("step")
    shifts = {name: power_of_two(call, name) for name in SHIFTS}
    gate, partner = (
        np.clip((sums[:, part::2] + (1 << shift >> 1)).astype(np.int32) >> shift, INT16.lo, INT16.hi).astype(np.int64)
        for part, shift in enumerate((shifts["div"], shifts["partner_div"]))
    )
    index = np.clip(((gate + (1 << step >> 1)) >> step) + half, 0, len(table) - 1)
    opened = np.clip((gate * table[index]) >> 15, INT16.lo, INT16.hi)
    shift = shifts["product_div"]
    return np.clip((opened * partner + (1 << shift >> 1)) >> shift, INT8.lo, INT8.hi)


def _body(call: Call) -> Body:
    gate, partner, product = (power_of_two(call, name) for name in SHIFTS)
    size, step = call.type("table").size, call.int("step")
    total = f"(uint32_t)X * (uint32_t)mul + (uint32_t)add + (E ? {1 << partner >> 1}u : {1 << gate >> 1}u)"
    update = "\n".join(
        (
            f"const int32_t scaled = tw_clamp((int32_t)({total}) >> (E ? {partner} : {gate}), {INT16.lo}, {INT16.hi});",
            "if (E) partner = scaled;",
            "else gate = scaled;",
        )
    )
    index = f"tw_clamp(((gate + {1 << step >> 1}) >> {step}) + {size // 2}, 0, {size - 1})"
    opened = f"tw_min((gate * table_at({index})) >> 15, {INT16.hi})"
    result = f"tw_clamp(({opened} * partner + {1 << product >> 1}) >> {product}, {INT8.lo}, {INT8.hi})"
    return Body(MappingProxyType({"Y": result}), (("int32_t", "gate", "0"), ("int32_t", "partner", "0")), update)


def _table(call: Call) -> dict[str, int]:
    """How far from 0 the table goes, in gates, and the least that is in it: kernels know what they may leave out."""
    table = call.known("table")
    lowest = INT16.lo if table is None else int(table.min())
    return {"reach": call.type("table").size // 2 << call.int("step"), "lowest": lowest}


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example of other sizes, with a table that is known, as language models have them."""
    rows, columns = round(between(1, 64, random)), 2 * round(between(1, 256, random))
    factors, table = (f"int32[{columns}]",) * 2, spec.inputs[3]
    if isinstance(table, str):
        table = np.linspace(0, INT16.hi, parse_type(table).size).astype(np.int16)
    return replace(spec, inputs=(f"int32[{rows},{columns}]", *factors, table))


_TABLE = np.arange(128).astype(np.int16) * 256

declare(
    Operator(
        "RequantGate",
        "X mul add table",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example(
                "int32[3,10]", "int32[10]", "int32[10]", _TABLE, step=9, div=16, partner_div=1 << 8, product_div=1 << 12
            ),
            example(
                "int32[2,4]", "int32[4]", "int32[4]", "int16[6]", step=13, div=8, partner_div=2, product_div=1 << 20
            ),
        ),
        MappingProxyType(dict.fromkeys(("step", *SHIFTS), REQUIRED)),
        "other",
        _body,
        doc=__doc__ or "",
        numbers=_table,
        sample=_sampled,
    )
)
