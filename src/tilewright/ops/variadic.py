"""Max, Min, Sum and Mean: element-wise over any number of inputs that broadcast together."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, example
from tilewright.ops.rules import broadcast_type, elementwise, number

_FLOATS = (
    example("float32[2,3,4]", "float32[2,3,4]"),
    example("float32[2,1,4]", "float32[3,1]", "float32[]"),
    example("float32[5]"),
    example("float64[4]", "float64[1]", "float64[4]", "float64[4]"),
    example("float16[4]", "float16[1]"),
)
_INTEGERS = tuple(
    example(*(f"{kind}{shape}" for shape in ("[3,4]", "[4]", "[3,1]")[:count]))
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
    for count in (2, 3)
)


def _extreme(name: str, symbol: str, function: Callable[[Array, Array], Array]) -> None:
    def better(call: Call, left: str, right: str) -> str:
        # A NaN on either side is the result, as in numpy.
        keep_nan = f" || {left} != {left}" if call.outputs[0].dtype.is_float else ""
        return f"{left} {symbol} {right}{keep_nan} ? {left} : {right}"

    def body(call: Call) -> str | Body:
        first, *others = call.operands
        if not others:
            return first
        if len(others) == 1:
            return better(call, first, others[0])
        kind = call.outputs[0].dtype.compute
        steps = [f"best = {first};", *(f"best = ({kind})({better(call, 'best', other)});" for other in others)]
        return Body({call.op.output_names(1)[0]: "best"}, ((kind, "best", "0"),), "\n".join(steps))

    def reference(_call: Call, *arrays: Array) -> Array:
        return reduce(function, arrays)

    elementwise(
        name,
        "data_*",
        reference,
        body,
        infer=_needs_one,
        examples=(*_FLOATS, *_INTEGERS),
        output=name.lower(),
    )


def _needs_one(call: Call) -> tuple[TensorType, ...]:
    if not call.inputs:
        raise call.error("missing-input", "at least one input is required")
    return broadcast_type(call)


def _float_inputs(call: Call) -> tuple[TensorType, ...]:
    (kind,) = _needs_one(call)
    if not kind.dtype.is_float:
        raise call.error("type-mismatch", f"inputs must be floating point, found {kind.dtype}")
    return (kind,)


def _total(_call: Call, *arrays: Array) -> Array:
    return reduce(np.add, (array.astype(np.float64) for array in arrays))


def _average(call: Call, *arrays: Array) -> Array:
    return _total(call, *arrays) / len(arrays)


_extreme("Max", ">", np.maximum)
_extreme("Min", "<", np.minimum)
elementwise(
    "Sum",
    "data_*",
    _total,
    lambda call: " + ".join(call.operands),
    infer=_float_inputs,
    examples=_FLOATS,
    output="sum",
)
elementwise(
    "Mean",
    "data_*",
    _average,
    lambda call: f"({' + '.join(call.operands)}) * {number(1 / len(call.operands), call.outputs[0].dtype)}",
    infer=_float_inputs,
    examples=_FLOATS,
    output="mean",
)
