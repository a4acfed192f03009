"""Rules that operators on quantised tensors share: saturation, scales and zero points, operators around operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT8, INT16, UINT8, UINT16, DType
from tilewright.core.domain import Axis, Domain, at
from tilewright.core.graph import Array, Attrs, TensorType
from tilewright.core.op import REGISTRY, Call, call_of

NARROW = (INT8, UINT8, INT16, UINT16)

Values = float | Sequence[float]


def _constants(kind: str) -> Callable[[Values], Array]:
    def array(values: Values) -> Array:
        return np.asarray(values, dtype=kind)

    return array


f16, f32 = _constants("float16"), _constants("float32")
u8, u16 = _constants("uint8"), _constants("uint16")
s8, s16, s32, s64 = (_constants(f"int{bits}") for bits in (8, 16, 32, 64))
"""Arrays of one element type, for the examples."""


def need_narrow(call: Call, *operands: str) -> None:
    """Refuses operands that are not integers of 8 or 16 bits."""
    for operand in operands:
        if call.has(operand) and call.type(operand).dtype not in NARROW:
            raise call.error(
                "type-mismatch",
                f"input '{operand}' must be an integer of 8 or 16 bits, found {call.type(operand).dtype}",
            )


def need_own_zero(call: Call, *pairs: tuple[str, str]) -> None:
    """Refuses zero points that are of another type than the integers they belong to."""
    for integers, zero in pairs:
        if call.has(zero) and call.type(zero).dtype != call.type(integers).dtype:
            raise call.error(
                "type-mismatch",
                f"{zero} must be {call.type(integers).dtype} like {integers}, found {call.type(zero).dtype}",
            )


def need_scalar(call: Call, *operands: str) -> None:
    """Refuses operands with more than one element."""
    for operand in operands:
        if call.has(operand) and call.type(operand).size != 1:
            raise call.error("shape-mismatch", f"{operand} must have one value, found {call.type(operand)}")


def scalar_access(call: Call, *operands: str) -> dict[str, tuple[Axis, ...]]:
    """Access maps of those operands that are there, all with one element."""
    return {operand: tuple(at(0) for _ in call.shape(operand)) for operand in operands if call.has(operand)}


def quantised(values: Array, zero: Array | int, kind: DType) -> Array:
    """Real numbers in units of the scale as integers: half to even, shifted, saturated; NaN becomes the smallest."""
    shifted = np.rint(values.astype(np.float32)) + np.asarray(zero).astype(np.float32)
    return np.clip(np.nan_to_num(shifted, nan=float(kind.lo)), kind.lo, kind.hi)


def quantised_c(text: str, zero: str, kind: DType) -> str:
    """`quantised` in C, of a float expression; `zero` names the zero point, empty where there is none."""
    shifted = f"rintf({text}) + (float){zero}" if zero else f"rintf({text})"
    return f"fminf(fmaxf({shifted}, {kind.lo}.0f), {kind.hi}.0f)"


def dequantised(values: Array, scale: Array, zero: Array | None) -> Array:
    """Integers as float32 real numbers."""
    wide = values.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))
    return wide.astype(np.float32) * scale.astype(np.float32)


def centred(values: Array, zero: Array | None) -> Array:
    """Integers without their zero point."""
    return values.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))


def centred_c(call: Call, operand: str, zero: str) -> str:
    """`operand - zero` in C, an int; narrow operands cannot overflow."""
    return f"({operand} - {zero})" if call.has(zero) else f"(int){operand}"


def optional(call: Call, operand: str) -> str:
    """The name of an operand, empty where it is absent."""
    return operand if call.has(operand) else ""


def inner_call(call: Call, op: str, operands: Sequence[str], attrs: Attrs, dtype: DType | None = None) -> Call:
    """The call of another operator that this one wraps, on `operands` (read as `dtype` where given)."""
    types: list[TensorType | None] = []
    for operand in operands:
        kind = call.type(operand) if call.has(operand) else None
        types.append(kind.with_dtype(dtype) if kind and dtype else kind)
    return call_of(REGISTRY[op], types, attrs, name=call.name)


def inner_attrs(call: Call, op: str) -> Attrs:
    """The attributes of a call that the operator it wraps has too."""
    return MappingProxyType({name: value for name, value in call.attrs.items() if name in REGISTRY[op].attrs})


def wrap_domain(call: Call, inner: Call, names: Mapping[str, str], more: Mapping[str, Sequence[Axis]]) -> Domain:
    """The domain of an inner call under this call's operand names, with the access maps of further operands."""
    base = inner.domain()
    access = {names[operand]: axes for operand, axes in base.access.items()}
    access |= {operand: tuple(axes) for operand, axes in more.items()}
    return replace(
        base,
        access=MappingProxyType(access),
        shapes=MappingProxyType({operand: call.shape(operand) for operand in access}),
        outputs=tuple(names[output] for output in base.outputs),
    )


def renamed(text: str, names: Mapping[str, str]) -> str:
    """C text with identifiers replaced by expressions."""
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda found: names.get(found[0], found[0]), text)


def lane_access(call: Call, operand: str, axis: Axis, extent: int) -> tuple[Axis, ...]:
    """The access map of one value, or of one value per index of an axis of another operand."""
    shape = call.shape(operand)
    if prod(shape) == 1:
        return tuple(at(0) for _ in shape)
    if max(shape) != prod(shape) or prod(shape) != extent:
        raise call.error("shape-mismatch", f"{operand} must have 1 or {extent} values, found {call.type(operand)}")
    return tuple(axis if length > 1 else at(0) for length in shape)
