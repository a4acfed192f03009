"""QGemm: `alpha * (A @ B + C)` of quantised matrices; DynamicQuantizeMatMul, which quantises its left matrix itself."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32, INT32
from tilewright.core.domain import Axis, Domain, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.quantize_linear import dynamic_parameters
from tilewright.ops.quantized_rules import (
    centred,
    centred_c,
    f32,
    inner_call,
    lane_access,
    need_narrow,
    need_own_zero,
    need_scalar,
    optional,
    quantised,
    quantised_c,
    s8,
    scalar_access,
    u8,
    wrap_domain,
)
from tilewright.ops.rules import number


def _gemm(call: Call) -> Call:
    attrs = {"transA": call.int("transA"), "transB": call.int("transB")}
    return inner_call(call, "Gemm", ("A", "B", "C") if call.has("C") else ("A", "B"), attrs)


def _infer_gemm(call: Call) -> tuple[TensorType, ...]:
    need_narrow(call, "A", "B", "y_zero_point")
    need_own_zero(call, ("A", "a_zero_point"), ("B", "b_zero_point"))
    need_scalar(call, "a_scale", "a_zero_point", "y_scale", "y_zero_point")
    a, b = call.shape("A"), call.shape("B")
    if len(a) != 2 or len(b) != 2:
        raise call.error("shape-mismatch", f"A and B must be matrices, found {list(a)} and {list(b)}")
    if call.has("C") and call.type("C").dtype != INT32:
        raise call.error("type-mismatch", f"C must be int32, found {call.type('C').dtype}")
    kind = FLOAT32
    if call.has("y_scale"):
        kind = call.type("y_zero_point" if call.has("y_zero_point") else "A").dtype
    return (_gemm(call).outputs[0].with_dtype(kind),)


def _gemm_domain(call: Call) -> Domain:
    inner = _gemm(call)
    column = 0 if call.int("transB") else 1
    axis, columns = inner.domain().access["B"][column], call.shape("B")[column]
    lanes = ("b_scale", "b_zero_point")
    more = {name: lane_access(call, name, axis, columns) for name in lanes if call.has(name)}
    more |= scalar_access(call, "a_scale", "a_zero_point", "y_scale", "y_zero_point")
    return wrap_domain(call, inner, {"A": "A", "B": "B", "C": "C", "Y": "Y"}, more)


def _gemm_reference(call: Call, A: Array, a_scale: Array, a_zero: Array | None, B: Array, *rest: Array | None) -> Array:
    b_scale, b_zero, C, y_scale, y_zero = (*rest, None, None, None, None)[:5]
    assert b_scale is not None
    right = B.T if call.int("transB") else B
    total = centred(A.T if call.int("transA") else A, a_zero) @ centred(right, b_zero)
    total = (total if C is None else total + C).astype(np.int32)
    scale = np.float32(call.float("alpha")) * a_scale.astype(np.float32) * b_scale.astype(np.float32)
    if y_scale is None:
        return total.astype(np.float64) * scale
    scaled = total.astype(np.float32) * (scale / y_scale.astype(np.float32))
    return quantised(scaled, 0 if y_zero is None else y_zero, call.type("Y").dtype)


def _gemm_body(call: Call) -> Body:
    total = "(int32_t)(acc + (uint32_t)C)" if call.has("C") else "(int32_t)acc"
    alpha = f"{number(call.float('alpha'), FLOAT32)} * "
    scale = f"{alpha if call.float('alpha') != 1 else ''}a_scale * b_scale"
    result = f"(float){total} * ({scale})"
    if call.has("y_scale"):
        scaled = f"(float){total} * ({scale} / y_scale)"
        result = quantised_c(scaled, optional(call, "y_zero_point"), call.type("Y").dtype)
    left, right = centred_c(call, "A", "a_zero_point"), centred_c(call, "B", "b_zero_point")
    update = f"acc += (uint32_t){left} * (uint32_t){right};"
    return Body(MappingProxyType({"Y": result}), (("uint32_t", "acc", "0"),), update)


declare(
    Operator(
        "QGemm",
        "A a_scale a_zero_point? B b_scale b_zero_point? C? y_scale? y_zero_point?",
        "Y",
        _infer_gemm,
        _gemm_domain,
        _gemm_reference,
        (
            example(
                "uint8[3,5]", f32(0.02), u8(99), "int8[5,4]", f32([0.1, 0.2, 0.3, 0.4]),
                np.zeros(4, np.int8), "int32[4]", f32(0.9), u8(120),
            ),
            example(
                "uint8[5,3]", f32(0.02), u8(99), "uint8[4,5]", f32(0.1), u8(80),
                transA=1, transB=1, alpha=0.5,
            ),
            example(
                "int8[3,5]", f32(0.02), s8(9), "int8[5,4]", f32(0.1), s8(3), "int32[1,4]",
                f32(0.4), s8(-7), alpha=1.5,
            ),
        ),
        MappingProxyType({"alpha": 1.0, "transA": 0, "transB": 0}),
        "reduce",
        _gemm_body,
        doc="A scaled product of quantised matrices plus an int32 C; real numbers without y_scale.",
    )
)  # fmt: skip


def _infer_dynamic(call: Call) -> tuple[TensorType, ...]:
    need_narrow(call, "B")
    need_own_zero(call, ("B", "b_zero_point"))
    a, b = call.type("A"), call.type("B")
    if a.dtype != FLOAT32:
        raise call.error("type-mismatch", f"A must be float32, found {a.dtype}")
    if a.rank < 2 or b.rank != 2 or a.shape[-1] != b.shape[0]:
        raise call.error("shape-mismatch", f"A {a} times B {b} is not a product of matrices")
    return (a.with_shape((*a.shape[:-1], b.shape[1])),)


def _dynamic_domain(call: Call) -> Domain:
    """The range of the whole of A decides about its scale, so only the columns of B may be split."""
    lead = axis_names(call.type("A").rank - 1)
    rows: tuple[Axis, ...] = tuple(dim(n) for n in lead)
    access: dict[str, tuple[Axis, ...]] = {"A": (*rows, dim("K")), "B": (dim("K"), dim("N"))}
    columns = call.shape("B")[1]
    for name in ("b_scale", "b_zero_point", "bias"):
        if call.has(name):
            access[name] = lane_access(call, name, dim("N"), columns)
    access["Y"] = (*rows, dim("N"))
    sizes = {**dict(zip(lead, call.shape("A"), strict=False)), "N": columns, "K": call.shape("B")[0]}
    return Domain(
        MappingProxyType(sizes),
        MappingProxyType(access),
        MappingProxyType({operand: call.shape(operand) for operand in access}),
        ("Y",),
        frozenset({*lead, "K"}),
        MappingProxyType({"ROWS": lead}),
    )


def _dynamic(
    _call: Call, A: Array, B: Array, b_scale: Array, b_zero: Array | None = None, bias: Array | None = None
) -> Array:
    scale, zero = dynamic_parameters(A)
    left = np.clip(np.rint(A / scale) + zero, 0, 255).astype(np.int64) - int(zero)
    total = (left @ centred(B, b_zero)).astype(np.float64) * (scale * b_scale)
    return total if bias is None else total + bias


def _steps(call: Call) -> dict[str, int]:
    """How far the parameters of neighbouring columns of B lie apart: 0 where all columns share one value."""
    return {f"{name}_step": int(call.has(name) and call.type(name).size > 1) for name in ("b_scale", "b_zero_point")}


declare(
    Operator(
        "DynamicQuantizeMatMul",
        "A B b_scale b_zero_point? bias?",
        "Y",
        _infer_dynamic,
        _dynamic_domain,
        _dynamic,
        (
            example("float32[4,3]", "int8[3,2]", f32(0.03), s8(3), "float32[2]"),
            example("float32[2,4,3]", "uint8[3,2]", f32([0.03, 0.05]), u8([3, 99])),
            example("float32[4,3]", "int8[3,2]", f32([0.03])),
        ),
        doc="A matrix product whose left side is quantised to uint8 by its own range; gives real numbers.",
        numbers=_steps,
    )
)
