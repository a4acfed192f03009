"""ITALinear: a linear layer on matrices cut into tiles of 64 x 64 bytes, as ITA has them in memory.

`Y[m, n] = activation(clip(((sum over k of X[m, k] @ W[n, k].T + B[n]) * mult >> shift) + add))` for tiles m, n and k,
rounded half up. Rows of W are columns of the result. B has 64 biases of three bytes in each row, for columns of the
result or, where it is `turned`, for its rows: then X are weights, W the input, and so is the result.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT8, UINT8
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Example, Operator, declare, example
from tilewright.ops.ita_rules import gelu, requantised, wrapped

TILE, MOST_TILES, BIAS_BITS = 64, 8, 24
IDENTITY, GELU, RELU = range(3)


def tiles_of(matrix: Array) -> Array:
    """A matrix of whole tiles as `[row tiles, column tiles, TILE, TILE]`."""
    rows, columns = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows // TILE, TILE, columns // TILE, TILE).swapaxes(1, 2))


def packed_biases(biases: Array) -> Array:
    """Biases of whole tiles, three bytes each."""
    return biases.astype("<i4").view(np.uint8).reshape(-1, TILE, 4)[:, :, :3].reshape(-1, 3 * TILE).copy()


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, w, b = (call.type(name) for name in ("X", "W", "B"))
    fits = x.rank == w.rank == 4 and x.shape[1] == w.shape[1] <= MOST_TILES
    if not fits or {x.shape[2:], w.shape[2:]} != {(TILE, TILE)} or {x.dtype, w.dtype} != {INT8}:
        raise call.error("shape-mismatch", f"X {x} and W {w} must be int8 in tiles, {MOST_TILES} along the sum at most")
    biases = TensorType(UINT8, ((x if call.int("turned") else w).shape[0], 3 * TILE))
    if b != biases:
        raise call.error("shape-mismatch", f"B {b} must be {biases}")
    return (TensorType(INT8, (x.shape[0], w.shape[0], TILE, TILE)),)


def _domain(call: Call) -> Domain:
    m, n, k, i, j, l = (dim(name) for name in "MNKIJL")  # noqa: E741
    biased = m if call.int("turned") else n
    access: dict[str, list[Axis]] = {"X": [m, k, i, l], "W": [n, k, j, l], "B": [biased, WHOLE], "Y": [m, n, i, j]}
    rows, inner = call.shape("X")[:2]
    sizes = {"M": rows, "N": call.shape("W")[0], "K": inner, "I": TILE, "J": TILE, "L": TILE}
    return domain(sizes, access, {name: call.shape(name) for name in access}, "Y", whole="I J L")


def _reference(call: Call, X: Array, W: Array, B: Array) -> Array:
    # Sums have 26 bits, so floats of 64 are exact, for which numpy is fast.
    sums = np.einsum("mkil,nkjl->mnij", X.astype(np.float64), W.astype(np.float64), optimize=True).astype(np.int64)
    biases = np.pad(B.reshape(-1, TILE, 3), ((0, 0), (0, 0), (1, 0))).copy().view("<i4")[..., 0] >> 8
    total = wrapped(sums + (biases[:, None, :, None] if call.int("turned") else biases[None, :, None, :]))
    made = requantised(total, call.int("mult"), call.int("shift"), call.int("add"))
    if call.int("activation") == IDENTITY:
        return made
    curved = call.int("activation") == GELU
    raw = gelu(made, call.int("b"), call.int("c")) if curved else np.maximum(made.astype(np.int64), 0)
    return requantised(raw, call.int("act_mult"), call.int("act_shift"), call.int("act_add"))


MOST_SAMPLED = 8
"""Products of tiles in a layer made at random."""


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example with other numbers of tiles."""
    m, n, k = (int(random.integers(1, MOST_TILES)) for _ in range(3))
    while m * n * k > MOST_SAMPLED:
        m, n, k = (max(number - 1, 1) for number in (m, n, k))
    biases = m if dict(spec.attrs).get("turned") else n
    return replace(spec, inputs=(f"int8[{m},{k},64,64]", f"int8[{n},{k},64,64]", f"uint8[{biases},192]"))


declare(
    Operator(
        "ITALinear",
        "X W B",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int8[2,2,64,64]", "int8[1,2,64,64]", "uint8[1,192]", mult=77, shift=18, add=-3),
            example("int8[1,1,64,64]", "int8[2,1,64,64]", "uint8[1,192]", mult=77, shift=18, turned=1),
            example(
                "int8[1,1,64,64]",
                "int8[2,1,64,64]",
                "uint8[2,192]",
                mult=77,
                shift=18,
                activation=GELU,
                b=-80,
                c=-7091,
                act_mult=74,
                act_shift=20,
            ),
        ),
        MappingProxyType(
            {
                "mult": REQUIRED,
                "shift": REQUIRED,
                "add": 0,
                "activation": IDENTITY,
                "b": 0,
                "c": 0,
                "act_mult": 0,
                "act_shift": 0,
                "act_add": 0,
                "turned": 0,
            }
        ),
        doc=__doc__ or "",
        sample=_sampled,
    )
)
