"""iPowers: what a softmax weighs with, before the division: `Y = table[min(max - X, last)]` over the last axis.

`total` is the sum of each row. Dividing what the weights are summed up with by it, and not each weight, keeps all their
bits for long rows. With `causal`, the rows of the axis before are the last ones of as many positions as the last axis
has, and what lies behind its own position counts nothing.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT32, UINT8
from tilewright.core.domain import WHOLE, Axis, Domain, at, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, Operator, declare, example
from tilewright.ops.integer_rules import need_integers
from tilewright.ops.rules import split_axis


def _infer(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, "X")
    x, table = call.type("X"), call.type("table")
    if x.rank < 2 or x.dtype.bits > 32:
        raise call.error("shape-mismatch", f"X {x} needs two axes of at most 32 bits")
    if table.dtype != UINT8 or table.rank != 1 or not table.size:
        raise call.error("type-mismatch", f"table must be a row of uint8, found {table}")
    return (x.with_dtype(UINT8), TensorType(INT32, (*x.shape[:-1], 1)))


def _domain(call: Call) -> Domain:
    shape = call.shape("X")
    names, products = split_axis(len(shape), len(shape) - 1)
    names = (*names[:-2], "ROW", "AXIS")
    row: tuple[Axis, ...] = tuple(dim(name) for name in names)
    access = {"X": row, "table": (WHOLE,), "Y": row, "total": (*row[:-1], at(0))}
    return Domain(
        MappingProxyType(dict(zip(names, shape, strict=True))),
        MappingProxyType(access),
        MappingProxyType({operand: call.shape(operand) for operand in access}),
        ("Y", "total"),
        frozenset({"AXIS", "ROW"} if call.int("causal") else {"AXIS"}),
        MappingProxyType({"OUTER": products["OUTER"][:-1]}),
    )


def _reference(call: Call, X: Array, table: Array) -> tuple[Array, ...]:
    x, rows, count = X.astype(np.int64), int(X.shape[-2]), int(X.shape[-1])
    last: Array = np.arange(count - rows, count) if call.int("causal") else np.full(rows, count)
    hidden: Array = np.arange(count)[None] > last[:, None]
    top = np.where(hidden, call.type("X").dtype.lo, x).max(axis=-1, keepdims=True, initial=call.type("X").dtype.lo)
    weights = np.where(hidden, 0, table[np.clip(top - x, 0, len(table) - 1)])
    return weights, weights.astype(np.int64).sum(axis=-1, keepdims=True)


_TABLE = np.asarray(255 * 0.5 ** (np.arange(64) / 8) + 0.5, np.uint8)

declare(
    Operator(
        "iPowers",
        "X table",
        "Y total",
        _infer,
        _domain,
        _reference,
        (
            example("int8[2,3,16]", _TABLE, wanted=2),
            example("int16[4,9]", _TABLE, wanted=2),
            example("int8[2,3,7]", _TABLE, causal=1, wanted=2),
            example("int32[5,5]", _TABLE, causal=1, wanted=2),
        ),
        MappingProxyType({"causal": 0}),
        doc=__doc__ or "",
        any_length=True,
    )
)
