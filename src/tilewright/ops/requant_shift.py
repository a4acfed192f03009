"""RequantShift: `clip((x * mul + add + half) >> shift)`, how integer networks go back to few bits.

`mul` and `add` broadcast by the rules of ONNX if that keeps the shape of x; otherwise they hold one value per channel
of `axis`. The sum is computed in 64 bits, so `add` may hold a bias already shifted to the left.

Networks that come from QuantizeLinear round as it does: with `half_to_even`, and `zero_point` added after the rounding.
`x_limit` is a promise that no |x| is larger (0: none is made), `total_limit` one about |x * mul| + |add|, for which
the largest x and the largest factor need not meet; generated code then computes the same in fewer bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import INT8, INT16
from tilewright.core.domain import Axis, Domain, at, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.integer_rules import (
    broadcast_access,
    levels_dtype,
    limits,
    need_integers,
    point_domain,
    power_of_two,
)


def levels_of(call: Call) -> int:
    name = "n_levels_out" if call.attrs.get("n_levels_out") is not None else "n_levels"
    return call.int(name)


def _infer(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, "x", "mul", "add")
    power_of_two(call, "div")
    for operand in ("mul", "add"):
        _access(call, operand)
    return (call.type("x").with_dtype(levels_dtype(call, levels_of(call), call.int("signed") != 0)),)


def _broadcasts(shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    tail = result[len(result) - len(shape) :] if len(shape) <= len(result) else None
    return tail is not None and all(e in (1, r) for e, r in zip(shape, tail, strict=True))


def _channel_axis(call: Call) -> int | None:
    """The axis of x that holds channels; None where x has no such axis."""
    axis, rank = call.int("axis"), call.type("x").rank
    return axis % rank if -rank <= axis < rank else None


def _access(call: Call, operand: str) -> tuple[Axis, ...]:
    """The access map of `mul` or `add`: broadcast, or one value per channel among any axes of extent 1."""
    shape, result = call.shape(operand), call.shape("x")
    if _broadcasts(shape, result):
        return broadcast_access(shape, result)
    channel = _channel_axis(call)
    if prod(shape) == 1 or (channel is not None and max(shape) == prod(shape) == result[channel]):
        name = axis_names(len(result))[channel or 0] if result else ""
        return tuple(at(0) if extent == 1 else dim(name) for extent in shape)
    raise call.error(
        "shape-mismatch",
        f"{operand} of shape {list(shape)} neither broadcasts to {list(result)} nor has one value per channel of axis"
        f" {call.int('axis')}",
    )


def _domain(call: Call) -> Domain:
    x = tuple(dim(n) for n in axis_names(call.type("x").rank))
    return point_domain(call, {"x": x, "mul": _access(call, "mul"), "add": _access(call, "add")})


def broadcastable(call: Call, operand: str, values: Array) -> Array:
    """`mul` or `add` in a shape that broadcasts to x."""
    wide = values.astype(np.int64)
    if _broadcasts(call.shape(operand), call.shape("x")):
        return wide
    channel = _channel_axis(call)
    return wide.reshape([-1 if axis == channel else 1 for axis in range(call.type("x").rank)])


def _reference(call: Call, x: Array, mul: Array, add: Array) -> Array:
    shift = power_of_two(call, "div")
    lo, hi = limits(levels_of(call), call.int("signed") != 0)
    total = x.astype(np.int64) * broadcastable(call, "mul", mul) + broadcastable(call, "add", add)
    half = (1 << shift) >> 1
    if call.int("half_to_even") and half:
        half = half - 1 + ((total >> shift) & 1)
    return np.clip(((total + half) >> shift) + call.int("zero_point"), lo, hi)


def _largest(call: Call, operand: str) -> int:
    """The largest magnitude of an operand, as far as it is known."""
    kind, value = call.type(operand).dtype, call.known(operand)
    if value is not None:
        return max((abs(int(v)) for v in value.reshape(-1)), default=0)
    most = max(-kind.lo, kind.hi)
    return min(most, call.int("x_limit") or most) if operand == "x" else most


def _output_limit(call: Call, given: Mapping[str, int]) -> int:
    del given
    lo, hi = limits(levels_of(call), call.int("signed") != 0)
    return max(-lo, hi)


def _multiplies_by_one(call: Call, shift: int) -> bool:
    mul = call.known("mul")
    return mul is not None and bool((mul.astype(np.int64) == 1 << shift).all())


def _centre(call: Call) -> int | None:
    """The one c with which `x * mul + add` is `(x + c) * mul`, where there is one."""
    mul, add = call.known("mul"), call.known("add")
    if add is not None and not add.any():
        return 0
    if mul is None or add is None or mul.size != add.size or not mul.all():
        return None
    wide = mul.astype(np.int64).reshape(-1), add.astype(np.int64).reshape(-1)
    found = wide[1] // wide[0]
    return int(found[0]) if bool((found * wide[0] == wide[1]).all() and (found == found[0]).all()) else None


class _Scaled(Struct, frozen=True):
    """How a sum becomes a small number: further variables, the numbers they need, and the expression."""

    text: str
    state: tuple[tuple[str, str, str], ...] = ()
    constants: tuple[tuple[str, str, str], ...] = ()
    lanes: str = ""
    """The same in vectors."""


_SCALE = "tw_scale((int32_t)x, (int32_t)mul, shift, zero)"
_SCALE_UNTIED = _SCALE.replace("tw_scale", "tw_scale_untied")


def _untied(call: Call, largest: int, shift: int) -> bool:
    """Whether no product with an |x| up to `largest` lies halfway between two integers, for `tw_scale_untied`."""
    mul = call.known("mul")
    if mul is None or not 26 <= shift < 47:
        return False
    factors = [abs(int(value)) for value in mul.reshape(-1)]
    # Halfway is an odd multiple of 2^(shift - 1), so x has all factors of two that mul does not have.
    return all(factor < 1 << 24 and largest * (factor & -factor) < 1 << shift - 1 for factor in factors)


def _body(call: Call) -> Body:
    shift, zero = power_of_two(call, "div"), call.int("zero_point")
    lo, hi = limits(levels_of(call), call.int("signed") != 0)
    x, mul, add = (_largest(call, operand) for operand in ("x", "mul", "add"))
    to_even = bool(call.int("half_to_even")) and shift > 0
    half = (1 << shift) >> 1
    total_most = min(x * mul + add, call.int("total_limit") or x * mul + add)
    largest = total_most + half
    quotient = largest >> shift
    narrow = "int32_t" if max(quotient + abs(zero), -lo, hi) < 1 << 31 else "int64_t"
    centre = _centre(call)
    shifts = False
    if _multiplies_by_one(call, shift) and add == 0 and x < 1 << 31:
        scaled = (
            _Scaled("(int32_t)x + zero", lanes="tw_lanes_add(x, zero)") if zero else _Scaled("(int32_t)x", lanes="x")
        )
    elif to_even and centre is not None and max(x + abs(centre), mul) <= 1 << 24 and quotient < 1 << 22:
        text = _SCALE_UNTIED if _untied(call, x + abs(centre), shift) else _SCALE
        text = text.replace("x,", "x + centre,") if centre else text
        lanes = f"tw_lanes_scale({'tw_lanes_add(x, centre)' if centre else 'x'}, mul, shift, zero)"
        scaled = _Scaled(text, constants=(("int32_t", "centre", str(centre)),) if centre else (), lanes=lanes)
    elif to_even and largest + (abs(zero) + 1 << shift) < 1 << 31:
        scaled = _to_even(call, shift, zero)
    else:
        total, rounded = _in_integers(largest, shift, to_even=to_even, added=add > 0)
        text = f"({narrow})({rounded})" + (" + zero" if zero else "")
        shifts = shift > 0 and not to_even and total[0] == "int32_t"
        lanes = f"tw_lanes_sum_rounded(tw_lanes_mul(x, mul), {'add' if add else '0'}, shift)" if shifts else ""
        lanes = f"tw_lanes_add({lanes}, zero)" if lanes and zero else lanes
        scaled = _Scaled(text, (total,), ((total[0], "half", str(half - int(to_even))),), lanes)
    limited: tuple[tuple[str, str, str], ...] = ()
    lowest = (half - 1 - total_most) >> shift
    if narrow == "int32_t" and lo <= lowest + zero and quotient + zero <= hi:
        clamp = ((narrow, "clamped", f"tw_within(scaled, {lo}, {hi})"),)
        lanes = scaled.lanes
    elif narrow == "int32_t" and -lo < 1 << 31:
        # The limits are part of the text: there are instructions for those of a type.
        clamp = ((narrow, "clamped", f"tw_clamp(scaled, {lo}, {hi})"),)
        lanes = f"tw_lanes_clamp({scaled.lanes}, {lo}, {hi})" if scaled.lanes else ""
    else:
        clamp = ((narrow, "raised", "scaled > lo ? scaled : lo"), (narrow, "clamped", "raised < hi ? raised : hi"))
        limited = ((narrow, "lo", str(lo)), (narrow, "hi", str(hi)))
        lanes = ""
    to_byte = clamp[0][2].startswith("tw_clamp") and hi - lo == 255
    told = " ".join((scaled.text, *(value for _, _, value in scaled.state)))
    named = (("int", "shift", str(shift)), (narrow, "zero", str(zero)))
    return Body(
        MappingProxyType({"y": "clamped"}),
        (*scaled.state, (narrow, "scaled", scaled.text), *clamp),
        constants=(*scaled.constants, *(c for c in named if re.search(rf"\b{c[1]}\b", told)), *limited),
        scales=scaled.text in (_SCALE, _SCALE_UNTIED) and to_byte,
        shifts=shifts and not zero and to_byte,
        lanes=lanes,
    )


def _to_even(call: Call, shift: int, zero: int) -> _Scaled:
    """Rounds what holds the zero point already: half to even before an odd one is added is half to odd behind it."""
    mul, add = call.known("mul"), call.baked("add")
    product = "(int32_t)x" if mul is not None and bool((mul == 1).all()) else "(int32_t)x * (int32_t)mul"
    total = f"{product} + offset" if add is not None else f"{product} + (int32_t)add + offset"
    offset = int(add or 0) + (zero << shift) - (1 - zero % 2)
    lanes = "x" if product == "(int32_t)x" else "tw_lanes_mul(x, mul)"
    lanes = f"tw_lanes_add({lanes if add is not None else f'tw_lanes_add({lanes}, add)'}, offset)"
    return _Scaled(
        f"tw_half_to_{'odd' if zero % 2 else 'even'}(total, half, shift)",
        (("int32_t", "total", total),),
        (("int32_t", "offset", str(offset)), ("int32_t", "half", str(1 << shift >> 1))),
        f"tw_lanes_half_to_{'odd' if zero % 2 else 'even'}({lanes}, shift)",
    )


def _known_numbers(call: Call) -> dict[str, int]:
    """For kernels: `clip((x * factor + added) >> shift, rounded)` of one factor, in 32 bits and to all of 8 bits.

    Of a factor for each column it is `column_shift`, to all of 8 or 16 bits with a sign, or to more. Where sums take
    64 bits, and quotients 32, it is `wide_shift`, to all of 8 bits.
    """
    mul, add, shift = call.baked("mul"), call.baked("add"), power_of_two(call, "div")
    lo, hi = limits(levels_of(call), call.int("signed") != 0)
    if not shift or call.int("half_to_even") or call.int("zero_point"):
        return {}
    if mul is None or add is None:
        most = _largest(call, "x") * _largest(call, "mul") + _largest(call, "add")
        most = min(most, call.int("total_limit") or most) + (1 << shift >> 1)
        if most < 1 << 31:
            return {"column_shift": shift} if hi == -lo - 1 and (lo == INT8.lo or lo <= INT16.lo) else {}
        return {"wide_shift": shift} if most >> shift < 1 << 31 and hi - lo == 255 else {}
    if hi - lo != 255 or _largest(call, "x") * abs(int(mul)) + abs(int(add)) + (1 << shift >> 1) >= 1 << 31:
        return {}
    return {"factor": int(mul), "added": int(add), "shift": shift}


def _in_integers(largest: int, shift: int, *, to_even: bool, added: bool) -> tuple[tuple[str, str, str], str]:
    """The product as a local variable, and the rounded quotient; `largest` bounds all that is computed."""
    wide = "int32_t" if largest < 1 << 31 else "int64_t"
    if wide == "int32_t" and not to_even and shift:
        added_up = "(int32_t)add" if added else "0"
        return (wide, "total", f"tw_sum_rounded((int32_t)x * (int32_t)mul, {added_up}, half, shift)"), "total"
    rounding = "half + ((total >> shift) & 1)" if to_even else "half"
    if largest < 1 << 63:
        product = f"({wide})x * ({wide})mul" + (f" + ({wide})add" if added else "")
        return (wide, "total", product), f"(total + {rounding}) >> shift"
    # 64-bit operands may overflow; they wrap, as in numpy.
    product = "(int64_t)((uint64_t)x * (uint64_t)mul + (uint64_t)add)"
    return (wide, "total", product), f"(int64_t)((uint64_t)total + (uint64_t)({rounding})) >> shift"


declare(
    Operator(
        "RequantShift",
        "x mul add",
        "y",
        _infer,
        _domain,
        _reference,
        (
            example("int32[2,3,4,5]", "int32[3,1,1]", "int32[1,3,1,1]", div=1024, n_levels=256, signed=1),
            example("int32[2,3,5]", "int32[3]", "int32[1,3,1,1]", div=256, n_levels=256, signed=0),
            example("int8[1,6]", "int16[1]", "int32[]", div=16.0, n_levels_out=256.0, signed=(1.0,)),
            example("int32[2,5,4,3]", "int32[5]", "int64[5]", div=64, n_levels=65536, signed=1),
            example("int32[2,5,4,3]", "int32[1,3,1,1]", "int32[1,3,1,1]", div=64, n_levels=16, signed=0, axis=-1),
            example("int8[6,9]", np.asarray(90), np.asarray(-5), div=64, x_limit=1 << 14),
            example("uint8[2,3,8]", np.asarray(77), np.asarray(0), div=128, signed=0, x_limit=1 << 14),
            example("uint8[7]", "uint8[]", "int32[]", div=1, n_levels=65536, signed=0),
            example("int32[2,5,4,3]", "int32[5]", "int32[]", div=64, half_to_even=1, zero_point=-3),
            example(
                "int32[2,5,4,3]",
                np.asarray([3, -900, 7, 1 << 24, 1]),
                np.asarray(0),
                div=1 << 24,
                half_to_even=1,
                x_limit=1 << 22,
            ),
            example(
                "int16[300]", np.asarray(1 << 23), np.asarray(0), div=1 << 26, half_to_even=1, zero_point=128, signed=0
            ),
            example("int8[300]", np.asarray(5), np.asarray(40), div=64),
            example(
                "int32[7,9]", np.arange(1, 10), np.arange(9) * 70, div=64, n_levels=1 << 16, axis=-1, x_limit=1 << 20
            ),
            example("int32[7,9]", np.arange(-4, 5) * 9999, np.arange(9) << 24, div=1 << 17, axis=-1, x_limit=1 << 24),
            example("int32[3,6]", np.arange(6) * 99999, np.arange(6) << 20, div=1 << 20, axis=-1, signed=0),
            example("int16[300]", np.asarray(5), np.asarray(-900), div=64, n_levels=256, signed=1),
            example("int16[300]", np.asarray(5), np.asarray(-900), div=64, half_to_even=1),
            example("int16[300]", np.asarray(5), np.asarray(-901), div=64, half_to_even=1, zero_point=-2),
            example("int16[300]", np.asarray(1), np.asarray(77), div=4, half_to_even=1, zero_point=-128),
            example("int16[300]", np.asarray(1), np.asarray(-77), div=2, half_to_even=1, zero_point=3),
            example("int8[2,3,5]", np.asarray([1, -7, 9]), np.asarray([4, 1, -6]), div=8, half_to_even=1, zero_point=5),
            example("int8[300]", np.asarray(8), np.asarray(-4), div=16, half_to_even=1, signed=0, zero_point=9),
        ),
        MappingProxyType(
            {
                "div": REQUIRED,
                "n_levels": 256,
                "n_levels_out": None,
                "signed": 1,
                "axis": 1,
                "zero_point": 0,
                "half_to_even": 0,
                "x_limit": 0,
                "total_limit": 0,
            }
        ),
        "elementwise",
        _body,
        numbers=_known_numbers,
        limit=_output_limit,
    )
)
