"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: real numbers to integers and back.

One scale and zero point serve the whole tensor, each index of an axis, or each block of `block_size` along that axis.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import cast

import numpy as np

from tilewright.base.dtype import FLOAT16, FLOAT32, INT32, UINT8, DType
from tilewright.core.domain import Axis, Domain, at, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.integer_rules import point_domain
from tilewright.ops.quantized_rules import NARROW, dequantised, f16, f32, need_own_zero, optional, s8, s16, s32, u8, u16
from tilewright.ops.rules import element_type


def _parameter_access(call: Call, operand: str) -> tuple[Axis, ...]:
    """The access map of a scale or zero point: per tensor, per axis or blocked."""
    shape, x = call.shape(operand), call.shape("x")
    if call.type(operand).size == 1:
        return tuple(at(0) for _ in shape)
    axis, block = call.axis("axis", len(x)), call.int("block_size")
    names = axis_names(len(x))
    if block == 0 and shape == (x[axis],):
        return (dim(names[axis]),)
    expected = tuple(-(-extent // block) if i == axis else extent for i, extent in enumerate(x)) if block > 0 else ()
    if block > 0 and shape == expected:
        return tuple(dim(name).over(block) if i == axis else dim(name) for i, name in enumerate(names))
    wanted = f"{list(expected)} for blocks of {block}" if block else f"one value or {x[axis]} along axis {axis}"
    raise call.error("shape-mismatch", f"{operand} must have {wanted}, found {list(shape)}")


def _domain(call: Call) -> Domain:
    access: dict[str, tuple[Axis, ...]] = {"x": tuple(dim(n) for n in axis_names(call.type("x").rank))}
    access |= {operand: _parameter_access(call, operand) for operand in call.operands[1:] if call.has(operand)}
    return point_domain(call, access)


def _spread(call: Call, values: Array) -> Array:
    """A scale or zero point in a shape that broadcasts to x."""
    x = call.shape("x")
    if values.size == 1:
        return values.reshape(())
    axis, block = call.axis("axis", len(x)), call.int("block_size")
    if block:
        return np.repeat(values, block, axis=axis).take(range(x[axis]), axis=axis)
    return values.reshape([-1 if i == axis else 1 for i in range(len(x))])


def _check_parameters(call: Call, scale: str, zero: str) -> None:
    if not call.type(scale).dtype.is_float:
        raise call.error("type-mismatch", f"{scale} must be floating point, found {call.type(scale).dtype}")
    for operand in (scale, zero):
        if call.has(operand):
            _parameter_access(call, operand)


def _target(call: Call) -> DType:
    if call.has("y_zero_point"):
        return call.type("y_zero_point").dtype
    return element_type(call, "output_dtype") if call.int("output_dtype") else UINT8


def _infer_quantize(call: Call) -> tuple[TensorType, ...]:
    _check_parameters(call, "y_scale", "y_zero_point")
    kind = _target(call)
    if kind not in NARROW:
        raise call.error("unsupported-type", f"quantisation to {kind} is not supported")
    if call.int("precision") not in (0, 1):
        raise call.error("bad-attribute", f"precision={call.int('precision')}: the division is computed in float32")
    return (call.type("x").with_dtype(kind),)


def _quantize(call: Call, x: Array, y_scale: Array, y_zero_point: Array | None = None) -> Array:
    kind = call.type("y").dtype
    scaled = x.astype(np.float32) / _spread(call, y_scale).astype(np.float32)
    zero = 0 if y_zero_point is None else _spread(call, y_zero_point).astype(np.float32)
    return np.clip(np.nan_to_num(np.rint(scaled) + zero, nan=float(kind.lo)), kind.lo, kind.hi)


def _quantize_body(call: Call) -> Body:
    kind, zero = call.type("y").dtype, optional(call, "y_zero_point") or "0"
    limits = (("float", "lo", f"{kind.lo}.0f"), ("float", "hi", f"{kind.hi}.0f"))
    if not _reciprocal_will_do(call):
        result = f"tw_quantised((float)x / (float)y_scale, (float){zero}, lo, hi)"
        return Body(MappingProxyType({"y": result}), constants=limits)
    return Body(
        MappingProxyType({"y": f"tw_quantised_by(x, y_scale, high, low, (float){zero}, lo, hi)"}),
        constants=(*limits, *_reciprocal(call)),
        lanes=f"tw_lanes_quantised(x, y_scale, {zero}, lo, hi)",
    )


def _reciprocal(call: Call) -> tuple[tuple[str, str, str], ...]:
    """The reciprocal of a known scale to twice the digits, as a sum of two floats."""
    scale = np.float32(cast("float", call.baked("y_scale")))
    high = np.float32(1) / scale
    low = np.float32((1 - float(scale) * float(high)) * float(high))
    return tuple(("float", name, f"{float(value):.9e}f") for name, value in (("high", high), ("low", low)))


def _reciprocal_will_do(call: Call) -> bool:
    """Whether quotients of floats are found exactly without a division: not by scales whose digits are all ones."""
    scale = call.baked("y_scale")
    if scale is None or call.type("x").dtype != FLOAT32 or call.type("y_scale").dtype != FLOAT32:
        return False
    baked = not call.has("y_zero_point") or call.baked("y_zero_point") is not None
    bits = int(np.float32(scale).view(np.uint32))
    return baked and 1e-20 < float(scale) < 1e20 and bits & 0x7FFFFF != 0x7FFFFF


def _known_numbers(call: Call) -> dict[str, float]:
    """One scale and zero point that are known, for kernels that take them as numbers.

    `reciprocal` is 1 where a product with the scale's gives the quotient exactly.
    """
    scale, zero = call.baked("y_scale"), call.baked("y_zero_point") if call.has("y_zero_point") else 0
    if scale is None or zero is None:
        return {}
    return {"scale": float(scale), "zero": int(zero), "reciprocal": int(_reciprocal_will_do(call))}


declare(
    Operator(
        "QuantizeLinear",
        "x y_scale y_zero_point?",
        "y",
        _infer_quantize,
        _domain,
        _quantize,
        (
            example("float32[3,7]", f32(0.02), u8(128)),
            example("float32[3,7]", f32([0.02]), s8([-3])),
            example("float32[3,7]", f32(0.02)),
            example("float32[3,7]", f32(0.001), output_dtype=5),
            example("float32[2,3,4]", f32([0.01, 0.02, 0.03]), s8([1, -2, 3]), axis=1),
            example("float32[2,3,4]", np.full((2, 2, 4), 0.02, np.float32), axis=-2, block_size=2, output_dtype=3),
            example("float16[5,2]", f16([0.01, 0.1]), u8([100, 30]), axis=-1),
            example("int32[9]", f32(3.5), u16(900)),
        ),
        MappingProxyType({"axis": 1, "block_size": 0, "output_dtype": 0, "precision": 0, "saturate": 1}),
        "elementwise",
        _quantize_body,
        doc="`saturate(round(x / y_scale) + y_zero_point)`, rounding half to even.",
        numbers=_known_numbers,
    )
)


def _infer_dequantize(call: Call) -> tuple[TensorType, ...]:
    x = call.type("x")
    _check_parameters(call, "x_scale", "x_zero_point")
    if x.dtype not in (*NARROW, INT32):
        raise call.error("unsupported-type", f"dequantisation of {x.dtype} is not supported")
    need_own_zero(call, ("x", "x_zero_point"))
    return (
        x.with_dtype(element_type(call, "output_dtype") if call.int("output_dtype") else call.type("x_scale").dtype),
    )


def _dequantize(call: Call, x: Array, x_scale: Array, x_zero_point: Array | None = None) -> Array:
    zero = None if x_zero_point is None else _spread(call, x_zero_point)
    return dequantised(x, _spread(call, x_scale), zero)


def _dequantize_body(call: Call) -> Body:
    value = "x"
    if call.has("x_zero_point"):
        value = "((int64_t)x - x_zero_point)" if call.type("x").dtype == INT32 else "(x - x_zero_point)"
    real = {FLOAT32} == {call.type("y").dtype, call.type("x_scale").dtype} and call.type("x").dtype != INT32
    whole = "tw_lanes_sub(x, x_zero_point)" if call.has("x_zero_point") else "x"
    lanes = f"tw_lanes_mul(tw_lanes_real({whole}), x_scale)" if real else ""
    return Body(MappingProxyType({"y": f"(float){value} * (float)x_scale"}), lanes=lanes)


declare(
    Operator(
        "DequantizeLinear",
        "x x_scale x_zero_point?",
        "y",
        _infer_dequantize,
        _domain,
        _dequantize,
        (
            example("uint8[3,7]", f32(0.02), u8(128)),
            example("int8[3,7]", f32([0.02])),
            example("int32[9]", f32(0.5), s32(7)),
            example("int16[2,3,4]", f32([0.01, 0.02, 0.03]), s16([1, -2, 3]), axis=1),
            example("uint16[5]", f32(0.5), u16(7)),
            example("int8[2,5,4]", np.full((2, 3, 4), 0.02, np.float32), np.ones((2, 3, 4), np.int8), block_size=2),
            example("int8[5,2]", f16([0.01, 0.1]), s8([100, -30]), axis=-1),
        ),
        MappingProxyType({"axis": 1, "block_size": 0, "output_dtype": 0}),
        "elementwise",
        _dequantize_body,
        doc="`(x - x_zero_point) * x_scale`.",
    )
)


def _infer_dynamic(call: Call) -> tuple[TensorType, ...]:
    x = call.type("x")
    if x.dtype not in (FLOAT32, FLOAT16):
        raise call.error("type-mismatch", f"x must be float32, found {x.dtype}")
    return (x.with_dtype(UINT8), TensorType(FLOAT32, ()), TensorType(UINT8, ()))[: max(1, call.wanted)]


def _dynamic_domain(call: Call) -> Domain:
    """Every value of x decides about the scale, so nothing is split."""
    x = call.shape("x")
    names = axis_names(len(x))
    row: tuple[Axis, ...] = tuple(dim(n) for n in names)
    outputs = call.op.output_names(len(call.outputs))
    access = {"x": row, **{output: row if output == "y" else () for output in outputs}}
    return Domain(
        MappingProxyType(dict(zip(names, x, strict=True))),
        MappingProxyType(access),
        MappingProxyType({operand: call.shape(operand) for operand in access}),
        outputs,
        frozenset(names),
        MappingProxyType({"SIZE": names}),
    )


def dynamic_parameters(x: Array) -> tuple[np.float32, np.float32]:
    """Scale and zero point of uint8 for the range of some values, zero always included."""
    values = x.astype(np.float32)
    lo, hi = np.float32(min(0.0, values.min(initial=0))), np.float32(max(0.0, values.max(initial=0)))
    scale = np.float32(1) if lo == hi else (hi - lo) / np.float32(255)
    return scale, np.float32(np.rint(np.clip(-lo / scale, 0, 255)))


def _dynamic(call: Call, x: Array) -> tuple[Array, ...]:
    scale, zero = dynamic_parameters(x)
    y = np.clip(np.rint(x.astype(np.float32) / scale) + zero, 0, 255)
    return (y, np.asarray(scale), np.asarray(zero))[: len(call.outputs)]


declare(
    Operator(
        "DynamicQuantizeLinear",
        "x",
        "y y_scale y_zero_point",
        _infer_dynamic,
        _dynamic_domain,
        _dynamic,
        (
            example("float32[3,7]", wanted=3),
            example(f32([1, 2, 3.5]), wanted=3),
            example(f32([-1, -2.25]), wanted=3),
            example(np.zeros((2, 2), np.float32), wanted=3),
        ),
        doc="Quantisation to uint8 with the scale and zero point that the values themselves give.",
    )
)
