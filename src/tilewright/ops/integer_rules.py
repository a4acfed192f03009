"""Rules that the operators of the integer dialect share: value ranges from levels, shifts from powers of two."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, DType
from tilewright.core.domain import Axis, Domain, at, axis_names, dim
from tilewright.core.graph import Array
from tilewright.core.op import Call

SIGNED = (INT8, INT16, INT32, INT64)
UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
INT32_MAX = INT32.hi


def need_integers(call: Call, *operands: str) -> None:
    """Refuses operands that hold no integers: a float there means that the types were not recognised."""
    for operand in operands:
        if call.has(operand) and not call.type(operand).dtype.is_integer:
            raise call.error(
                "type-mismatch",
                f"input '{operand}' must hold integers, found {call.type(operand).dtype}",
                help="pin the type of the graph input it comes from with --input-type NAME=int8",
            )


def limits(levels: int, signed: bool) -> tuple[int, int]:
    """The smallest and largest of `levels` values: around zero, or from zero up."""
    return (-(levels // 2), levels // 2 - 1) if signed else (0, levels - 1)


def levels_dtype(call: Call, levels: int, signed: bool) -> DType:
    """The narrowest type of the wanted sign that holds the declared levels."""
    lo, hi = limits(levels, signed)
    fitting = (t for t in (SIGNED if signed else UNSIGNED) if t.lo <= lo and hi <= t.hi)
    found = next(fitting, None)
    if levels < 1 or found is None:
        raise call.error("bad-attribute", f"{levels} levels fit in no integer type")
    return found


def power_of_two(call: Call, name: str) -> int:
    """The exponent of an attribute that must be a power of two."""
    value = call.float(name)
    exponent = int(value).bit_length() - 1
    if value < 1 or value != 1 << exponent or exponent > 62:
        raise call.error("bad-attribute", f"{name}={value:g} must be a power of two between 1 and 2^62")
    return exponent


def truncating_division(numerator: Array, denominator: Array | int) -> Array:
    """Division that rounds toward zero, as C does it; by zero it gives zero."""
    safe = np.where(np.asarray(denominator) == 0, 1, denominator)
    quotient = np.abs(numerator) // np.abs(safe)
    signed = np.where((numerator < 0) != (safe < 0), -quotient, quotient)
    return np.where(np.asarray(denominator) == 0, 0, signed)


def power_or_rounded_mean(total: Array, count: int) -> Array:
    """The integer mean: half up where the count is a power of two, half away from zero otherwise."""
    if count & (count - 1) == 0:
        return (total + count // 2) >> (count.bit_length() - 1)
    return truncating_division(total + np.sign(total) * (count >> 1), count)


def integer_compute(largest: int) -> str:
    """The C type of intermediate values up to `largest`: 32 bits where they suffice, because those vectorise better."""
    return "int32_t" if largest <= INT32_MAX else "int64_t"


def magnitude(dtype: DType) -> int:
    """The largest absolute value of an integer type."""
    return max(-dtype.lo, dtype.hi)


def broadcast_access(shape: tuple[int, ...], result: tuple[int, ...]) -> tuple[Axis, ...]:
    """The access map of an operand that broadcasts to the result by the rules of ONNX."""
    names = axis_names(len(result))
    lead = len(result) - len(shape)
    return tuple(dim(names[lead + i]) if extent == result[lead + i] else at(0) for i, extent in enumerate(shape))


def point_domain(call: Call, access: dict[str, tuple[Axis, ...]]) -> Domain:
    """The domain of an operator with one result per point D0, D1, ... of its output; `access` is of the inputs."""
    output = call.op.output_names(1)[0]
    shape = call.shape(output)
    names = axis_names(len(shape))
    return Domain(
        MappingProxyType(dict(zip(names, shape, strict=True))),
        MappingProxyType({**access, output: tuple(dim(n) for n in names)}),
        MappingProxyType({operand: call.shape(operand) for operand in (*access, output)}),
        (output,),
        products=MappingProxyType({"SIZE": names, "ROWS": names[:-1], "COLUMNS": names[-1:]}),
    )
