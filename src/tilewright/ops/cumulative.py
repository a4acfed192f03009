"""CumSum and CumProd: running totals along an axis."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Domain
from tilewright.core.graph import Array
from tilewright.core.op import Call, Operator, declare, example
from tilewright.ops.rules import axis_domain, same_type


def _axis(call: Call) -> int:
    rank, value = call.type("x").rank, call.value("axis")
    axis = int(value.reshape(-1)[0]) if value.size == 1 else rank
    if not -rank <= axis < rank:
        raise call.error("bad-attribute", f"axis {value.tolist()} is outside a tensor of rank {rank}")
    return axis % rank


def _domain(call: Call) -> Domain:
    return axis_domain(call, _axis(call), ("x",), ("y",))


def _cumulative(name: str, function: Callable[..., Array], neutral: int) -> None:
    def reference(call: Call, x: Array, _axis_value: Array) -> Array:
        axis = _axis(call)
        wide = x.astype(np.float64) if call.type("x").dtype.is_float else x
        ordered = np.flip(wide, axis) if call.int("reverse") else wide
        total = function(ordered, axis=axis, dtype=wide.dtype)
        if call.int("exclusive") and total.shape[axis]:
            first = np.full_like(np.take(total, [0], axis), neutral)
            total = np.concatenate([first, np.take(total, range(total.shape[axis] - 1), axis)], axis)
        return np.flip(total, axis) if call.int("reverse") else total

    declare(
        Operator(
            name,
            "x axis",
            "y",
            same_type,
            _domain,
            reference,
            (
                example("float32[2,3,4]", np.array(1)),
                example("float32[2,3,4]", np.array(-1)),
                example("float32[5]", np.array(0), exclusive=1),
                example("float32[5]", np.array(0), reverse=1),
                example("float32[2,5]", np.array([0], np.int32), reverse=1, exclusive=1),
                example("float64[2,5]", np.array(1)),
                example("float16[2,5]", np.array(1)),
                example("int32[2,5]", np.array(1), exclusive=1),
                example("int64[2,5]", np.array(1), reverse=1),
                example("uint32[2,5]", np.array(0)),
                example("uint64[2,5]", np.array(0)),
            ),
            MappingProxyType({"exclusive": 0, "reverse": 0}),
            compile_time=frozenset({"axis"}),
        )
    )


_cumulative("CumSum", np.cumsum, 0)
_cumulative("CumProd", np.cumprod, 1)
