"""Append: a table with rows written into it from row P on, along one axis; P is limited to `least` and to what fits.

It is what a cache that grows becomes: `Concat(past, R)` with a table as large as it may get. Over a state (`in_place`)
it writes just the new rows, and reads no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT32
from tilewright.core.domain import WHOLE, Axis, Domain, axis_names, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, rows = call.type("X"), call.type("R")
    axis = call.axis("axis", x.rank)
    same = rows.rank == x.rank and rows.dtype == x.dtype and rows.shape[axis] <= x.shape[axis]
    if not same or (*rows.shape[:axis], *rows.shape[axis + 1 :]) != (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise call.error("shape-mismatch", f"{rows} are no rows of {x} along axis {axis}")
    if call.type("P").size != 1 or call.type("P").dtype != INT32:
        raise call.error("type-mismatch", f"P must be one int32, found {call.type('P')}")
    return (x,)


def _domain(call: Call) -> Domain:
    shape = call.shape("X")
    names = axis_names(len(shape))
    axis = call.axis("axis", len(shape))
    full: list[Axis] = [dim(name) for name in names]
    rows: list[Axis] = [WHOLE if number == axis else place for number, place in enumerate(full)]
    access = {"X": full, "R": rows, "P": [WHOLE] * call.type("P").rank, "Y": full}
    return domain(dict(zip(names, shape, strict=True)), access, {name: call.shape(name) for name in access}, "Y")


def _reference(call: Call, X: Array, R: Array, P: Array) -> Array:
    axis, result = call.axis("axis", X.ndim), X.copy()
    first = min(max(int(P.reshape(-1)[0]), call.int("least")), X.shape[axis] - R.shape[axis])
    place = [slice(None)] * X.ndim
    place[axis] = slice(first, first + R.shape[axis])
    result[tuple(place)] = R
    return result


def _body(call: Call) -> Body:
    shape = call.shape("X")
    axis, names = call.axis("axis", len(shape)), axis_names(len(shape))
    count = call.shape("R")[axis]
    place = ", ".join("nearest" if number == axis else name for number, name in enumerate(names))
    value = "P" if not call.type("P").rank else f"P_at({', '.join('0' * call.type('P').rank)})"
    row = ("int", "row", f"tw_max({call.int('least')}, tw_min({value}, {shape[axis] - count}))")
    new = (call.type("R").dtype.compute, "new", f"R_at({place})")
    if call.int("in_place"):  # no others than the new rows are written
        return Body(MappingProxyType({"Y": "new"}), (row, ("int", "nearest", f"{names[axis]} - row"), new))
    # Something is loaded in any case: some compilers get loads under a condition wrong.
    nearest = ("int", "nearest", f"tw_max(0, tw_min({names[axis]} - row, {count - 1}))")
    inside = f"{names[axis]} >= row && {names[axis]} < row + {count}"
    return Body(MappingProxyType({"Y": f"{inside} ? new : X"}), (row, nearest, new))


def _numbers(call: Call) -> Mapping[str, int]:
    """For kernels: the axis, how many rows there are, and the last place where they may begin."""
    axis, rows = call.axis("axis", call.type("X").rank), call.shape("R")
    return {
        "along": axis,
        "rank": len(rows),
        "count": rows[axis],
        "row_bytes": rows[-1] * call.type("R").dtype.bytes,
        "last": call.shape("X")[axis] - rows[axis],
    }


declare(
    Operator(
        "Append",
        "X R P",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[5,3]", "float32[1,3]", np.asarray(2, np.int32), axis=0),
            example("int8[2,6,3]", "int8[2,2,3]", np.asarray([9], np.int32), axis=1),
            example("float32[4]", "float32[2]", np.asarray(-3, np.int32), axis=-1, least=1),
            example("int8[3,4,12]", "int8[3,4,8]", np.asarray(4, np.int32), axis=2),
        ),
        MappingProxyType({"axis": REQUIRED, "least": 0, "in_place": 0}),
        "elementwise",
        _body,
        numbers=_numbers,
        appends=True,
    )
)
