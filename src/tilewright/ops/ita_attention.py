"""ITAAttention: scores, softmax and mix of values of several heads on tiles of 64 x 64 bytes, as ITA computes them.

K is `[row tiles, heads * P, 64, 64]`, with P tiles for each head, and so are Q and the result. V is turned,
`[heads * P, row tiles, 64, 64]`: its rows are channels. Where heads are small, several (`shared`) may have their
channels in the same tile of Q and V: then keys of each are zero in channels of the others, and of its result, the
channels of the others say nothing. Scores and results are requantised (`score_*`, `mix_*`) as linear layers are, and
`ITASoftmax` is between them. `replaces` is the operator of a network whose place that takes, where it does.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT8
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REQUIRED, Call, Example, Operator, declare
from tilewright.ops.ita_rules import requantised, softmax
from tilewright.ops.ita_tiles import MOST_TILES, TILE


def _infer(call: Call) -> tuple[TensorType, ...]:
    q, k, v = (call.type(name) for name in "QKV")
    heads, shared = call.int("heads"), call.int("shared")
    rows, columns = k.shape[:2] if k.rank == 4 else (0, 0)
    narrow = columns // max(shared, 1)
    wanted = TensorType(INT8, (rows, narrow, TILE, TILE)), TensorType(INT8, (narrow, rows, TILE, TILE))
    whole = k == TensorType(INT8, (rows, columns, TILE, TILE)) and (q, v) == wanted
    if not rows or not whole or min(heads, shared) < 1 or columns % heads or heads % shared:
        raise call.error("shape-mismatch", f"Q {q}, K {k} and V {v} are not {heads} heads in tiles, with V turned")
    if max(rows, columns // heads) > MOST_TILES or (shared > 1 and columns != heads):
        raise call.error("shape-mismatch", f"a side of Q {q} has more than {MOST_TILES} tiles")
    return (k,)


def _domain(call: Call) -> Domain:
    rows, columns = call.shape("K")[:2]
    heads, shared = call.int("heads"), call.int("shared")
    inner = columns // heads
    m, h, e, d, n, i, j = (dim(name) for name in "MHEDNIJ")
    one, each = h * inner + d, h * (shared * inner) + e * inner + d
    access: dict[str, list[Axis]] = {
        "Q": [m, one, WHOLE, WHOLE],
        "K": [n, each, WHOLE, WHOLE],
        "V": [one, n, WHOLE, WHOLE],
        "Y": [m, each, i, j],
    }
    sizes = {"M": rows, "H": heads // shared, "E": shared, "D": inner, "N": rows, "I": TILE, "J": TILE}
    return domain(sizes, access, {name: call.shape(name) for name in access}, "Y", whole="E D N I J")


def _reference(call: Call, Q: Array, K: Array, V: Array) -> Array:
    heads, shared, (rows, columns) = call.int("heads"), call.int("shared"), K.shape[:2]
    shape = (rows * TILE, -1, columns // heads * TILE)
    q, k = (array.swapaxes(1, 2).reshape(shape).swapaxes(0, 1).astype(np.float64) for array in (Q, K))
    v = V.swapaxes(1, 2).reshape(heads // shared, -1, rows * TILE).astype(np.float64)
    q, v = (array.repeat(shared, axis=0) for array in (q, v))

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


def _example(rows: int, columns: int, heads: int, shared: int = 1) -> Example:
    keys, narrow = f"int8[{rows},{columns},64,64]", columns // shared
    wide, turned = f"int8[{rows},{narrow},64,64]", f"int8[{narrow},{rows},64,64]"
    return Example((wide, keys, turned), MappingProxyType({**_SCALED, "heads": heads, "shared": shared}))


MOST_SAMPLED = 2
"""Rows of tiles, and tiles of a head, in attention made at random."""


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example with other numbers of tiles."""
    heads, shared = (dict(spec.attrs).get(name, 1) for name in ("heads", "shared"))
    assert isinstance(heads, int)
    assert isinstance(shared, int)
    rows, inner = (int(random.integers(1, MOST_SAMPLED + 1)) for _ in range(2))
    return replace(spec, inputs=_example(rows, heads * (inner if shared == 1 else 1), heads, shared).inputs)


declare(
    Operator(
        "ITAAttention",
        "Q K V",
        "Y",
        _infer,
        _domain,
        _reference,
        (_example(2, 1, 1), _example(1, 4, 2), _example(1, 4, 4, 2)),
        MappingProxyType({**FACTORS, "heads": REQUIRED, "shared": 1, "replaces": ""}),
        doc=__doc__ or "",
        sample=_sampled,
    )
)
