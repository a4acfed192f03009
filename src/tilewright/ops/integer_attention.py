"""iAttention: what queries find among keys and values of 8 bits, in whole numbers.

For each head and query, `score = clip16((q . k * score_mul) >> score_shift)`; a key weighs `table[min(top - score,
last)]`, where top is the largest score. `mean` is MEAN times the sum of weighted values over that of the weights, and
`Y[S, H * D] = clip8((mean * mean_mul) >> mean_shift)`. All is rounded half up, but the mean half away from zero. Many
weights that are small keep their bits, because the division comes last. Each channel of the values lies along the keys,
so that both products are those of rows. With `causal`, the queries are at the last
positions of the keys, and see none behind their own.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT8, INT16, INT32, UINT8
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Example, Operator, declare, example
from tilewright.ops.integer_rules import truncating_division
from tilewright.ops.sampling import between

MEAN = 64
"""Units of a value in a mean of values."""


def _infer(call: Call) -> tuple[TensorType, ...]:
    q, k, v = call.type("Q"), call.type("K"), call.type("V")
    bytes_only = {q.dtype, k.dtype, v.dtype} == {INT8}
    if not bytes_only or q.rank != 3 or k.rank != 3 or k.shape != (q.shape[0], k.shape[1], q.shape[2]):
        raise call.error("shape-mismatch", f"Q {q} and K {k} must be int8[heads, rows, size]")
    heads, rows, size = q.shape
    if v.shape != (heads, size, k.shape[1]):
        raise call.error("shape-mismatch", f"V {v} must be int8[{heads}, {size}, {k.shape[1]}]")
    for name, wanted in (("score_mul", (heads,)), ("mean_mul", (heads, size))):
        if call.type(name) != TensorType(INT32, wanted):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} must be {TensorType(INT32, wanted)}")
    if call.type("table").dtype != UINT8 or call.type("table").rank != 1 or not call.type("table").size:
        raise call.error("type-mismatch", f"table must be a row of uint8, found {call.type('table')}")
    for name in ("score_shift", "mean_shift"):
        if not 0 < call.int(name) < 31:
            raise call.error("bad-attribute", f"{name}={call.int(name)} must be 1 to 30")
    return (TensorType(INT8, (rows, heads * size)),)


def _domain(call: Call) -> Domain:
    heads, rows, size = call.shape("Q")
    h, s, length, d = (dim(name) for name in ("H", "S", "L", "D"))
    access: dict[str, list[Axis]] = {
        "Q": [h, s, WHOLE],
        "K": [h, length, WHOLE],
        "V": [h, d, length],
        "score_mul": [h],
        "table": [WHOLE],
        "mean_mul": [h, d],
        "Y": [s, h * size + d],
    }
    sizes = {"S": rows, "H": heads, "D": size, "L": call.shape("K")[1]}
    whole = "S L D" if call.int("causal") else "L D"
    return domain(sizes, access, {name: call.shape(name) for name in access}, "Y", whole=whole)


def _reference(call: Call, Q: Array, K: Array, V: Array, score_mul: Array, table: Array, mean_mul: Array) -> Array:
    rows, count, shift = int(Q.shape[1]), int(K.shape[1]), call.int("score_shift")
    # Narrow sums are exact in floats, for which numpy is fast.
    sums = (Q.astype(np.float64) @ K.astype(np.float64).swapaxes(1, 2)).astype(np.int64)
    products = (sums * score_mul.astype(np.int64)[:, None, None] + (1 << shift >> 1)).astype(np.int32)
    scores = np.clip(products >> shift, INT16.lo, INT16.hi).astype(np.int64)
    last: Array = np.arange(count - rows, count) if call.int("causal") else np.full(rows, count)
    hidden: Array = np.arange(count)[None] > last[:, None]
    top = np.where(hidden, INT16.lo, scores).max(axis=-1, keepdims=True, initial=INT16.lo)
    weights = np.where(hidden, 0, table[np.clip(top - scores, 0, len(table) - 1)]).astype(np.int64)
    mixed = (weights.astype(np.float64) @ V.astype(np.float64).swapaxes(1, 2)).astype(np.int64) * MEAN
    total = weights.sum(axis=-1, keepdims=True)
    means = truncating_division(mixed + np.where(mixed >= 0, 1, -1) * (total >> 1), total)
    half, scaled = 1 << call.int("mean_shift") >> 1, means * mean_mul.astype(np.int64)[:, None]
    found = np.clip((scaled + half).astype(np.int32) >> call.int("mean_shift"), INT8.lo, INT8.hi)
    return found.swapaxes(0, 1).reshape(rows, -1)


_TABLE = np.asarray(255 * 0.5 ** (np.arange(320) / 32) + 0.5, np.uint8)


def _factors(heads: int, size: int) -> tuple[Array, Array, Array]:
    means = 900 + 31 * np.arange(heads * size).reshape(heads, size)
    return np.arange(3, heads + 3, dtype=np.int32), _TABLE, means.astype(np.int32)


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example of other sizes, as caches of language models have them."""
    heads, rows = round(between(1, 16, random)), round(between(1, 16, random)) if spec.attrs.get("causal") else 1
    length, size = max(rows, round(between(1, 256, random))), 2 * round(between(1, 32, random))
    caches = f"int8[{heads},{length},{size}]", f"int8[{heads},{size},{length}]"
    return replace(spec, inputs=(f"int8[{heads},{rows},{size}]", *caches, *_factors(heads, size)))


declare(
    Operator(
        "iAttention",
        "Q K V score_mul table mean_mul",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int8[3,1,8]", "int8[3,9,8]", "int8[3,8,9]", *_factors(3, 8), score_shift=4, mean_shift=16),
            example("int8[2,1,14]", "int8[2,33,14]", "int8[2,14,33]", *_factors(2, 14), score_shift=6, mean_shift=15),
            example(
                *("int8[2,5,6]", "int8[2,7,6]", "int8[2,6,7]", *_factors(2, 6)), score_shift=5, mean_shift=16, causal=1
            ),
            example("int8[9,1,8]", "int8[9,14,8]", "int8[9,8,14]", *_factors(9, 8), score_shift=5, mean_shift=16),
            example("int8[1,2,28]", "int8[1,4,28]", "int8[1,28,4]", *_factors(1, 28), score_shift=7, mean_shift=15),
        ),
        MappingProxyType({"score_shift": REQUIRED, "mean_shift": REQUIRED, "causal": 0}),
        doc=__doc__ or "",
        any_length=True,
        sample=_sampled,
    )
)
