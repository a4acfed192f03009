"""Normalisations on integers: iLayerNorm and iRMSNorm over the last axis, and iNoNorm, which only scales and shifts."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT32
from tilewright.core.domain import Axis, Domain, axis_names, dim
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Example, Operator, declare, example, parse_type
from tilewright.ops.integer_rules import (
    broadcast_access,
    levels_dtype,
    limits,
    need_integers,
    point_domain,
    power_of_two,
    truncating_division,
)
from tilewright.ops.rules import broadcast, split_axis
from tilewright.ops.sampling import drawn

KNOWN_WEIGHTS = 0.8


def _infer_norm(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, *call.operands)
    power_of_two(call, "D")
    x = call.type("x")
    if x.rank == 0 or x.shape[-1] == 0:
        raise call.error("shape-mismatch", f"x needs a last axis to normalise over, found {x}")
    for operand in call.operands[1:]:
        if call.shape(operand) != x.shape[-1:]:
            raise call.error("shape-mismatch", f"{operand} must have {x.shape[-1]} values, found {call.type(operand)}")
    return (x.with_dtype(levels_dtype(call, call.int("n_levels"), signed=True)),)


def _norm_domain(call: Call) -> Domain:
    shape = call.shape("x")
    names, products = split_axis(len(shape), len(shape) - 1)
    row: tuple[Axis, ...] = tuple(dim(n) for n in names)
    access = {"x": row, **{operand: (dim("AXIS"),) for operand in call.operands[1:]}, "y": row}
    return Domain(
        MappingProxyType(dict(zip(names, shape, strict=True))),
        MappingProxyType(access),
        MappingProxyType({operand: call.shape(operand) for operand in access}),
        ("y",),
        frozenset({"AXIS"}),
        MappingProxyType(products),
    )


def integer_square_root(values: Array) -> Array:
    """The largest integer whose square does not exceed each value."""
    root = np.sqrt(values.astype(np.float64)).astype(np.int64)
    # The float root of a large value may be one off either way.
    root = np.where(root * root > values, root - 1, root)
    return np.where((root + 1) * (root + 1) <= values, root + 1, root)


def _layer_norm(call: Call, x: Array, weight: Array, bias: Array) -> Array:
    wide, count = x.astype(np.int64), x.shape[-1]
    centred = wide - truncating_division(wide.sum(axis=-1, keepdims=True), count)
    deviation = integer_square_root((centred * centred).sum(axis=-1, keepdims=True) // count + 1)
    scaled = truncating_division(centred * weight.astype(np.int64), deviation)
    return (scaled + bias.astype(np.int64)) >> power_of_two(call, "D")


def _rms_norm(call: Call, x: Array, weight: Array) -> Array:
    wide, count = x.astype(np.int64), x.shape[-1]
    deviation = integer_square_root((wide * wide).sum(axis=-1, keepdims=True) // count + 1)
    scaled = truncating_division(wide * weight.astype(np.int64), deviation)
    return np.clip(scaled >> power_of_two(call, "D"), *limits(call.int("n_levels"), signed=True))


def _largest_weight(call: Call) -> dict[str, int]:
    """The magnitude that no weight exceeds: kernels then know what fits their arithmetic."""
    weight = call.known("weight")
    known = 0 if weight is None or not weight.size else int(np.abs(weight.astype(np.int64)).max())
    return {"largest_weight": known if weight is not None and known < 1 << 31 else (1 << 31) - 1}


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example of other sizes; most weights are known and small, as those of networks are."""
    kind = parse_type(str(spec.inputs[0]))
    shape = drawn(kind.rank, random)
    weights = [TensorType(INT32, shape[-1:]) for _ in spec.inputs[1:]]
    if random.random() < KNOWN_WEIGHTS:
        return replace(
            spec, inputs=(str(kind.with_shape(shape)), *(random.integers(20, 120, w.shape, np.int32) for w in weights))
        )
    return replace(spec, inputs=(str(kind.with_shape(shape)), *map(str, weights)))


def _norm(name: str, inputs: str, reference: Callable[..., Array], weights: tuple[str, ...], doc: str) -> None:
    declare(
        Operator(
            name,
            inputs,
            "y",
            _infer_norm,
            _norm_domain,
            reference,
            (
                example("int8[2,3,16]", *(w.replace("L", "16") for w in weights), D=64, n_levels=256),
                example("int32[4,7]", *(w.replace("L", "7") for w in weights), D=16.0, n_levels=256.0),
                example("int8[5]", *(w.replace("L", "5") for w in weights), D=1024),
                example("int16[3,11]", *(np.arange(20, 31, dtype=np.int32) * 700 for _ in weights), D=256),
            ),
            MappingProxyType({"D": REQUIRED, "n_levels": 256}),
            doc=doc,
            numbers=_largest_weight,
            sample=_sampled,
        )
    )


_norm(
    "iLayerNorm",
    "x weight bias",
    _layer_norm,
    ("int32[L]", "int32[L]"),
    "`((x - mean) * weight / deviation + bias) >> log2(D)` over the last axis, all divisions truncating.",
)
_norm(
    "iRMSNorm",
    "x weight",
    _rms_norm,
    ("int32[L]",),
    "`clip((x * weight / deviation) >> log2(D))` over the last axis, all divisions truncating.",
)


def _infer_no_norm(call: Call) -> tuple[TensorType, ...]:
    need_integers(call, "x", "weight", "bias")
    power_of_two(call, "D")
    x = call.type("x")
    if broadcast(call, *(call.shape(operand) for operand in call.operands)) != x.shape:
        raise call.error("shape-mismatch", f"weight and bias must broadcast to x, {x}")
    levels = call.int("n_levels")
    return (x.with_dtype(levels_dtype(call, levels, signed=True) if levels else INT32),)


def _no_norm_domain(call: Call) -> Domain:
    shape = call.shape("x")
    access: dict[str, tuple[Axis, ...]] = {"x": tuple(dim(n) for n in axis_names(len(shape)))}
    access |= {operand: broadcast_access(call.shape(operand), shape) for operand in ("weight", "bias")}
    return point_domain(call, access)


def _no_norm(call: Call, x: Array, weight: Array, bias: Array) -> Array:
    total = x.astype(np.int64) * weight.astype(np.int64) + bias.astype(np.int64)
    return (total * call.int("mul")) >> power_of_two(call, "D")


def _no_norm_body(call: Call) -> Body:
    return Body(
        MappingProxyType({"y": "(int64_t)((uint64_t)total * (uint64_t)mul) >> shift"}),
        (("int64_t", "total", "(int64_t)((uint64_t)x * (uint64_t)weight + (uint64_t)bias)"),),
        constants=(("int64_t", "mul", str(call.int("mul"))), ("int", "shift", str(power_of_two(call, "D")))),
    )


declare(
    Operator(
        "iNoNorm",
        "x weight bias",
        "y",
        _infer_no_norm,
        _no_norm_domain,
        _no_norm,
        (
            example("int8[2,3,5]", "int8[3,5]", "int32[5]", D=256, mul=37),
            example("int32[3,5]", "int8[3,5]", "int32[5]", D=1024.0, mul=(3.0,), n_levels=256),
        ),
        MappingProxyType({"D": REQUIRED, "mul": REQUIRED, "n_levels": 0}),
        "elementwise",
        _no_norm_body,
        doc="`((x * weight + bias) * mul) >> log2(D)`; int32, or the type that `n_levels` declares.",
    )
)
