"""ArgMax and ArgMin: where along an axis the largest or smallest element is."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT64
from tilewright.core.domain import Domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.reduce import reduced_shape, reduction_domain


def _axis(call: Call) -> int:
    return call.axis("axis", call.type("data").rank)


def _infer(call: Call) -> tuple[TensorType, ...]:
    data, axis = call.type("data"), _axis(call)
    if data.shape[axis] == 0:
        raise call.error("shape-mismatch", f"axis {axis} of {data} is empty, so it has no largest or smallest element")
    return (TensorType(INT64, reduced_shape(data.shape, (axis,), keep=bool(call.int("keepdims")))),)


def _domain(call: Call) -> Domain:
    return reduction_domain(call, (_axis(call),), keep=bool(call.int("keepdims")))


def _argreduce(name: str, symbol: str, sign: int) -> None:
    def reference(call: Call, data: Array) -> Array:
        axis, last = _axis(call), bool(call.int("select_last_index"))
        ordered = np.flip(data, axis) if last else data
        found = np.argmax(ordered, axis) if sign > 0 else np.argmin(ordered, axis)
        return data.shape[axis] - 1 - found if last else found

    def body(call: Call) -> Body:
        index = f"D{_axis(call)}"
        better = f"data {symbol}{'=' if call.int('select_last_index') else ''} best"
        return Body(
            MappingProxyType({"reduced": "where"}),
            ((call.type("data").dtype.compute, "best", "0"), ("int", "where", "0")),
            f"if ({index} == 0 || {better}) {{ best = data; where = {index}; }}",
        )

    ties = np.array([[2, 2, 1], [3, 1, 3], [0, 0, 0]], np.float32)
    declare(
        Operator(
            name,
            "data",
            "reduced",
            _infer,
            _domain,
            reference,
            (
                example("float32[2,3,4]"),
                example("float32[2,3,4]", axis=1),
                example("float32[2,3,4]", axis=-1, keepdims=0),
                example(ties, axis=1),
                example(ties, axis=1, select_last_index=1),
                example("float64[3,4]", axis=1),
                example("float16[3,4]", axis=1),
                example("int8[3,40]", axis=1),
                example("uint8[3,4]", axis=0),
                example("int32[3,4]", axis=1),
            ),
            MappingProxyType({"axis": 0, "keepdims": 1, "select_last_index": 0}),
            "reduce",
            body,
        )
    )


_argreduce("ArgMax", ">", 1)
_argreduce("ArgMin", "<", -1)
