"""Range: numbers from `start` to before `limit` in steps of `delta`, all known at compile time."""

from __future__ import annotations

from math import ceil, isfinite
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import c_table, grid
from tilewright.ops.rules import one_dtype

OPERANDS = ("start", "limit", "delta")

ENDLESS = 2.0**63
"""More elements than any tensor has."""


def _count(call: Call) -> tuple[int | float, int, int | float]:
    """The first value, how many there are, and the step."""
    for name in OPERANDS:
        if call.type(name).size != 1:
            raise call.error("shape-mismatch", f"'{name}' must be one number, found {call.type(name)}")
    whole = int if call.type("start").dtype.is_integer else float
    start, limit, delta = (whole(call.value(name).reshape(-1)[0]) for name in OPERANDS)
    if delta == 0:
        raise call.error("bad-value", "delta must not be zero")
    if not all(map(isfinite, (start, limit, delta))):
        raise call.error("bad-value", f"there is no range from {start} to {limit} in steps of {delta}")
    if isinstance(start, int):
        return start, max(0, -int((limit - start) // -delta)), delta
    steps = (limit - start) / delta
    return start, max(0, ceil(min(steps, ENDLESS))), delta


def _values(call: Call) -> Array:
    start, count, delta = _count(call)
    return start + np.arange(count) * delta


def _infer(call: Call) -> tuple[TensorType, ...]:
    return (TensorType(one_dtype(call, OPERANDS), (_count(call)[1],)),)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    return domain(sizes, {"output": access}, {"output": call.shape("output")}, "output")


def _reference(call: Call, *_: Array) -> Array:
    return _values(call)


def _body(call: Call) -> Body:
    values = _values(call)
    if not values.size:
        return Body(MappingProxyType({"output": "0"}))
    return Body(
        MappingProxyType({"output": "VALUE[D0]"}), constants=(c_table(call.outputs[0].dtype.compute, "VALUE", values),)
    )


declare(
    Operator(
        "Range",
        "start limit delta",
        "output",
        _infer,
        _domain,
        _reference,
        (
            example(*(np.array(v, np.float32) for v in (1, 5, 0.75))),
            example(np.array(10), np.array(3), np.array(-2)),
            example(np.array(10, np.int16), np.array(15, np.int16), np.array(1, np.int16)),
        ),
        body=_body,
        compile_time=frozenset(OPERANDS),
    )
)
