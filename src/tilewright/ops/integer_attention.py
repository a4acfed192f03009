"""iAttention: what queries find among keys and values of 8 bits, in whole numbers.

For each head and query, `score = clip16((q . k * score_mul) >> score_shift)`; a key weighs `table[min(top - score,
last)]`, where top is the largest score. `mean` is MEAN times the sum of weighted values over that of the weights, and
`Y[S, H * D] = clip8((mean * mean_mul) >> mean_shift)`. All is rounded half up, but the mean half away from zero. Many
weights that are small keep their bits, because the division comes last. Each channel of the values lies along the keys,
so that both products are those of rows.

Keys and values are those of a cache, K and V, of which there may be none, and behind them new ones, NK and NV, one for
each query, which sees none behind its own. So what is in the cache can be loaded before the new ones are known.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT8, INT16, INT32, UINT8
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Example, Operator, declare, example
from tilewright.ops.integer_rules import truncating_division
from tilewright.ops.sampling import between

MEAN = 64
"""Units of a value in a mean of values."""


def _infer(call: Call) -> tuple[TensorType, ...]:
    q, k = call.type("Q"), call.type("K")
    bytes_only = {q.dtype, k.dtype} == {INT8}
    if not bytes_only or q.rank != 3 or k.rank != 3 or k.shape != (q.shape[0], k.shape[1], q.shape[2]):
        raise call.error("shape-mismatch", f"Q {q} and K {k} must be int8[heads, rows, size]")
    heads, rows, size = q.shape
    turned = {"V": (heads, size, k.shape[1]), "NK": (heads, rows, size), "NV": (heads, size, rows)}
    for name, shape in turned.items():
        if call.type(name) != TensorType(INT8, shape):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} must be {TensorType(INT8, shape)}")
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
        "NK": [h, WHOLE, WHOLE],
        "NV": [h, d, WHOLE],
        "score_mul": [h],
        "table": [WHOLE],
        "mean_mul": [h, d],
        "Y": [s, h * size + d],
    }
    sizes = {"S": rows, "H": heads, "D": size, "L": call.shape("K")[1]}
    return domain(sizes, access, {name: call.shape(name) for name in access}, "Y", whole="S L D")


def _reference(
    call: Call, Q: Array, K: Array, V: Array, NK: Array, NV: Array, score_mul: Array, table: Array, mean_mul: Array
) -> Array:
    keys, values = np.concatenate([K, NK], axis=1), np.concatenate([V, NV], axis=2)
    rows, count, shift = int(Q.shape[1]), int(keys.shape[1]), call.int("score_shift")
    # Narrow sums are exact in floats, for which numpy is fast.
    sums = (Q.astype(np.float64) @ keys.astype(np.float64).swapaxes(1, 2)).astype(np.int64)
    products = (sums * score_mul.astype(np.int64)[:, None, None] + (1 << shift >> 1)).astype(np.int32)
    scores = np.clip(products >> shift, INT16.lo, INT16.hi).astype(np.int64)
    hidden: Array = np.arange(count)[None] > np.arange(count - rows, count)[:, None]
    top = np.where(hidden, INT16.lo, scores).max(axis=-1, keepdims=True, initial=INT16.lo)
    weights = np.where(hidden, 0, table[np.clip(top - scores, 0, len(table) - 1)]).astype(np.int64)
    mixed = (weights.astype(np.float64) @ values.astype(np.float64).swapaxes(1, 2)).astype(np.int64) * MEAN
    total = weights.sum(axis=-1, keepdims=True)
    means = truncating_division(mixed + np.where(mixed >= 0, 1, -1) * (total >> 1), total)
    half, scaled = 1 << call.int("mean_shift") >> 1, means * mean_mul.astype(np.int64)[:, None]
    found = np.clip((scaled + half).astype(np.int32) >> call.int("mean_shift"), INT8.lo, INT8.hi)
    return found.swapaxes(0, 1).reshape(rows, -1)


_TABLE = np.asarray(255 * 0.5 ** (np.arange(320) / 32) + 0.5, np.uint8)


def _factors(heads: int, size: int) -> tuple[Array, Array, Array]:
    means = 900 + 31 * np.arange(heads * size).reshape(heads, size)
    return np.arange(3, heads + 3, dtype=np.int32), _TABLE, means.astype(np.int32)


def _inputs(heads: int, rows: int, length: int, size: int) -> tuple[str | Array, ...]:
    new, turned = f"int8[{heads},{rows},{size}]", f"int8[{heads},{size},{rows}]"
    caches = f"int8[{heads},{length},{size}]", f"int8[{heads},{size},{length}]"
    return new, *caches, new, turned, *_factors(heads, size)


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example of other sizes, as caches of language models have them."""
    heads, rows = round(between(1, 16, random)), round(between(1, 16, random)) if random.integers(4) == 0 else 1
    return replace(spec, inputs=_inputs(heads, rows, round(between(1, 256, random)), 2 * round(between(1, 32, random))))


declare(
    Operator(
        "iAttention",
        "Q K V NK NV score_mul table mean_mul",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example(*_inputs(3, 1, 8, 8), score_shift=4, mean_shift=16),
            example(*_inputs(2, 1, 32, 14), score_shift=6, mean_shift=15),
            example(*_inputs(2, 5, 2, 6), score_shift=5, mean_shift=16),
            example(*_inputs(9, 1, 13, 8), score_shift=5, mean_shift=16),
            example(*_inputs(1, 2, 2, 28), score_shift=7, mean_shift=15),
            example(*_inputs(2, 3, 0, 4), score_shift=5, mean_shift=16),
        ),
        MappingProxyType({"score_shift": REQUIRED, "mean_shift": REQUIRED}),
        doc=__doc__ or "",
        any_length=True,
        may_be_empty=True,
        sample=_sampled,
    )
)
