"""ITAAdd: the sum of two matrices in tiles of 64 x 64 bytes, scaled back to bytes, as ITA computes it.

`Y = clip((((A + B) * mult) >> shift) + add)`, rounded half up. The engine adds by products with a tile of the identity,
which it reads from memory as `W`.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT8
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Example, Operator, declare, example
from tilewright.ops.ita_rules import requantised
from tilewright.ops.ita_tiles import TILE

IDENTITY = np.eye(TILE, dtype=np.int8)


def _infer(call: Call) -> tuple[TensorType, ...]:
    a, b, w = (call.type(name) for name in ("A", "B", "W"))
    if a != b or a.dtype != INT8 or a.rank != 4 or a.shape[2:] != (TILE, TILE):
        raise call.error("shape-mismatch", f"A {a} and B {b} must be the same, int8 in tiles")
    if w != TensorType(INT8, (TILE, TILE)):
        raise call.error("shape-mismatch", f"W {w} must be {TensorType(INT8, (TILE, TILE))}")
    return (a,)


def _domain(call: Call) -> Domain:
    tile: list[Axis] = [dim(name) for name in "MNIJ"]
    access: dict[str, list[Axis]] = {"A": tile, "B": tile, "W": [WHOLE, WHOLE], "Y": tile}
    sizes = dict(zip("MNIJ", call.shape("A"), strict=True))
    return domain(sizes, access, {name: call.shape(name) for name in access}, "Y", whole="I J")


def _reference(call: Call, A: Array, B: Array, W: Array) -> Array:
    del W
    return requantised(A.astype(np.int64) + B, *(call.int(name) for name in ("mult", "shift", "add")))


MOST_SAMPLED = 4
"""Rows and columns of tiles in a layer made at random."""


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example with other numbers of tiles."""
    m, n = (int(random.integers(1, MOST_SAMPLED)) for _ in range(2))
    return replace(spec, inputs=(*[f"int8[{m},{n},64,64]"] * 2, *spec.inputs[2:]))


declare(
    Operator(
        "ITAAdd",
        "A B W",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int8[2,1,64,64]", "int8[2,1,64,64]", IDENTITY, mult=77, shift=8, add=-3),
            example("int8[1,2,64,64]", "int8[1,2,64,64]", IDENTITY, mult=1, shift=1),
        ),
        MappingProxyType({"mult": REQUIRED, "shift": REQUIRED, "add": 0}),
        doc=__doc__ or "",
        sample=_sampled,
    )
)
