"""RotaryEmbedding: pairs of elements of each head turned by the angle of their position."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.core.domain import WHOLE, Affine, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.normalization import check_float


class Rotation(Struct, frozen=True):
    batch: int
    heads: int
    positions: int
    size: int
    turned: int
    """How many elements of each head are turned; the others pass."""


def _rotation(call: Call) -> Rotation:
    x = call.shape("X")
    if len(x) == 4:
        batch, heads, positions, size = x
    elif len(x) == 3 and call.attrs.get("num_heads") and x[2] % call.int("num_heads") == 0:
        batch, positions, heads = x[0], x[1], call.int("num_heads")
        size = x[2] // heads
    else:
        raise call.error("shape-mismatch", f"X {call.type('X')} needs four axes, or three and num_heads that divides")
    return Rotation(batch, heads, positions, size, call.int("rotary_embedding_dim") or size)


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, rotation = check_float(call, "X"), _rotation(call)
    half = rotation.turned // 2
    if rotation.turned % 2 or rotation.turned > rotation.size:
        raise call.error(
            "bad-attribute", f"rotary_embedding_dim={rotation.turned} must be even and at most {rotation.size}"
        )
    rows = (rotation.batch, rotation.positions)
    for name in ("cos_cache", "sin_cache"):
        shape = call.shape(name)
        fits = len(shape) == 2 if call.has("position_ids") else shape[:-1] == rows
        if not fits or shape[-1] != half:
            raise call.error("shape-mismatch", f"{name} {call.type(name)} does not fit X {x}")
    if call.has("position_ids") and call.shape("position_ids") != rows:
        raise call.error("shape-mismatch", f"position_ids {call.type('position_ids')} needs the shape {list(rows)}")
    return (x,)


def _domain(call: Call) -> Domain:
    rotation = _rotation(call)
    b, h, s, d = (dim(name) for name in ("BATCH", "H", "S", "D"))
    flat: Affine = h * rotation.size + d
    cache: list[Axis] = [WHOLE, WHOLE] if call.has("position_ids") else [b, s, WHOLE]
    packed = call.type("X").rank == 3
    access: dict[str, list[Axis]] = {
        "X": [b, s, WHOLE] if packed else [b, h, s, WHOLE],
        "cos_cache": cache,
        "sin_cache": cache,
    }
    if call.has("position_ids"):
        access["position_ids"] = [b, s]
    access["Y"] = [b, s, flat] if packed else [b, h, s, d]
    heads = {"S": rotation.positions, "H": rotation.heads} if packed else {"H": rotation.heads, "S": rotation.positions}
    sizes = {"BATCH": rotation.batch, **heads, "D": rotation.size}
    return domain(sizes, access, {name: call.shape(name) for name in access}, "Y")


def _reference(call: Call, X: Array, cos_cache: Array, sin_cache: Array, position_ids: Array | None = None) -> Array:
    rotation = _rotation(call)
    packed = X.ndim == 3
    heads = X.reshape(*X.shape[:2], rotation.heads, rotation.size).swapaxes(1, 2) if packed else X
    y = heads.astype(np.float64)
    cos, sin = (
        (table if position_ids is None else table[position_ids]).astype(np.float64)[:, None]
        for table in (cos_cache, sin_cache)
    )
    half = rotation.turned // 2
    left, right = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
        if call.int("interleaved")
        else (slice(0, half), slice(half, 2 * half))
    )
    real, imaginary = y[..., left].copy(), y[..., right].copy()
    y[..., left] = cos * real - sin * imaginary
    y[..., right] = sin * real + cos * imaginary
    return y.swapaxes(1, 2).reshape(X.shape) if packed else y


def _body(call: Call) -> Body:
    rotation, kind = _rotation(call), call.outputs[0].dtype.compute
    half = rotation.turned // 2
    pair, second, other = (
        ("D / 2", "D % 2", "D ^ 1")
        if call.int("interleaved")
        else (f"D % {half}", f"D >= {half}", f"(D + {half}) % {2 * half}")
    )
    first = f"H * {rotation.size} + " if call.type("X").rank == 3 else ""
    place = "BATCH, S" if first else "BATCH, H, S"
    own, partner = f"X_at({place}, {first}D)", f"X_at({place}, {first}({other}))"
    row = "(int)position_ids" if call.has("position_ids") else "BATCH, S"
    turned = [
        f"const {kind} cosine = cos_cache_at({row}, {pair}), sine = sin_cache_at({row}, {pair});",
        f"const {kind} other = {partner};",
        f"value = {second} ? cosine * value + sine * other : cosine * value - sine * other;",
    ]
    update = "\n".join(turned)
    if rotation.turned < rotation.size:
        update = f"if (D < {rotation.turned}) {{\n{update}\n}}"
    return Body(MappingProxyType({"Y": "value"}), ((kind, "value", "0"),), f"value = {own};\n{update}")


X4, X3 = "float32[2,3,4,8]", "float32[2,4,24]"
ROWS = np.array([[0, 2, 4, 1], [3, 3, 0, 5]], np.int64)

declare(
    Operator(
        "RotaryEmbedding",
        "X cos_cache sin_cache position_ids?",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example(X4, "float32[6,4]", "float32[6,4]", ROWS),
            example(X4, "float32[2,4,4]", "float32[2,4,4]", interleaved=1),
            example(X4, "float32[2,4,2]", "float32[2,4,2]", rotary_embedding_dim=4),
            example(X3, "float32[6,2]", "float32[6,2]", ROWS, num_heads=3, rotary_embedding_dim=4, interleaved=1),
            example(X3, "float32[2,4,4]", "float32[2,4,4]", num_heads=3),
            example("float16[1,2,3,4]", "float16[1,3,2]", "float16[1,3,2]"),
        ),
        MappingProxyType({"interleaved": 0, "num_heads": None, "rotary_embedding_dim": 0}),
        "other",
        _body,
    )
)
