"""ITAAttention: scores, softmax and mix of values of several heads on tiles of 64 x 64 bytes, as ITA computes them.

Q and K are `[row tiles, heads * P, 64, 64]`, with P tiles for each head, V is turned, `[heads * P, row tiles, 64, 64]`:
its rows are channels. The result lies as Q does. Scores and results are requantised (`score_*`, `mix_*`) as linear
layers are, and `ITASoftmax` is between them.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT8
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REQUIRED, Call, Example, Operator, declare
from tilewright.ops.ita_rules import requantised, softmax
from tilewright.ops.ita_tiles import MOST_TILES, TILE


def _infer(call: Call) -> tuple[TensorType, ...]:
    q, k, v = (call.type(name) for name in "QKV")
    heads = call.int("heads")
    rows, columns = q.shape[:2] if q.rank == 4 else (0, 0)
    wanted = TensorType(INT8, (rows, columns, TILE, TILE)), TensorType(INT8, (columns, rows, TILE, TILE))
    if not rows or (q, k, v) != (wanted[0], wanted[0], wanted[1]) or heads < 1 or columns % heads:
        raise call.error("shape-mismatch", f"Q {q}, K {k} and V {v} are not {heads} heads in tiles, with V turned")
    if max(rows, columns // heads) > MOST_TILES:
        raise call.error("shape-mismatch", f"a side of Q {q} has more than {MOST_TILES} tiles")
    return (q,)


def _domain(call: Call) -> Domain:
    rows, columns = call.shape("Q")[:2]
    inner = columns // call.int("heads")
    m, h, d, n, i, j = (dim(name) for name in "MHDNIJ")
    access: dict[str, list[Axis]] = {
        "Q": [m, h * inner + d, WHOLE, WHOLE],
        "K": [n, h * inner + d, WHOLE, WHOLE],
        "V": [h * inner + d, n, WHOLE, WHOLE],
        "Y": [m, h * inner + d, i, j],
    }
    sizes = {"M": rows, "H": call.int("heads"), "D": inner, "N": rows, "I": TILE, "J": TILE}
    return domain(sizes, access, {name: call.shape(name) for name in access}, "Y", whole="M D N I J")


def _reference(call: Call, Q: Array, K: Array, V: Array) -> Array:
    heads, (rows, columns) = call.int("heads"), Q.shape[:2]
    shape = (rows * TILE, heads, columns // heads * TILE)
    q, k = (array.swapaxes(1, 2).reshape(shape).swapaxes(0, 1).astype(np.float64) for array in (Q, K))
    v = V.swapaxes(1, 2).reshape(heads, -1, rows * TILE).astype(np.float64)

    def scaled(sums: Array, step: str) -> Array:
        factors = (call.int(f"{step}_{what}") for what in ("mult", "shift", "add"))
        return requantised(sums.astype(np.int64), *factors)

    weights = softmax(scaled(q @ k.swapaxes(1, 2), "score")).astype(np.float64)
    mixed = scaled(weights @ v.swapaxes(1, 2), "mix").swapaxes(0, 1)
    return mixed.reshape(rows, TILE, columns, TILE).swapaxes(1, 2)


FACTORS: dict[str, Attr] = {
    f"{step}_{what}": default
    for step in ("score", "mix")
    for what, default in (("mult", REQUIRED), ("shift", REQUIRED), ("add", 0))
}
_SCALED: dict[str, Attr] = {"score_mult": 99, "score_shift": 20, "mix_mult": 83, "mix_shift": 12, "mix_add": 2}


def _example(rows: int, columns: int, heads: int) -> Example:
    wide, turned = f"int8[{rows},{columns},64,64]", f"int8[{columns},{rows},64,64]"
    return Example((wide, wide, turned), MappingProxyType({**_SCALED, "heads": heads}))


declare(
    Operator(
        "ITAAttention",
        "Q K V",
        "Y",
        _infer,
        _domain,
        _reference,
        (_example(2, 1, 1), _example(1, 4, 2)),
        MappingProxyType({**FACTORS, "heads": REQUIRED}),
        doc=__doc__ or "",
    )
)
