"""What networks usually have behind an operator, as samples for measuring kernels with an epilogue."""

from __future__ import annotations

import numpy as np

from tilewright.base.dtype import FLOAT32, INT8, INT32, UINT8
from tilewright.core.graph import Array, Attrs, TensorType, attrs

Random = np.random.Generator
Behind = tuple[str, tuple[Array, ...], Attrs]
"""An operator, the constants that it reads behind the result before it, and its attributes."""
SCALED_AGAIN = 0.7
"""Bytes that are scaled once more."""
SUM_BITS, BYTE_BITS = 17, 7
"""How far products are shifted. What bytes are scaled to must not be one number, or compilers compute nothing else."""


def usual_steps(result: TensorType, random: Random) -> tuple[Behind, ...]:
    """Element-wise operators behind a result of a type; none for types that networks leave as they are."""
    channels = result.shape[-1] if result.rank else 1
    if result.dtype == INT32 or (result.dtype in (INT8, UINT8) and random.random() < SCALED_AGAIN):
        return _scaled(channels, SUM_BITS if result.dtype == INT32 else BYTE_BITS, random)
    return _real(channels, random) if result.dtype == FLOAT32 else ()


def _scaled(channels: int, bits: int, random: Random) -> tuple[Behind, ...]:
    """Integers, most of them scaled back to bytes: by a product and a shift by `bits`, or with ties to even."""
    kind = random.random()
    if kind < 0.2:
        return ()
    count = channels if kind < 0.7 else 1
    if kind < 0.5 or kind > 0.85:
        factor, added = (random.integers(low, high, count).astype(np.int32) for low, high in ((100, 200), (-500, 500)))
        return (("RequantShift", (factor, added), attrs(div=1 << bits, n_levels=256, signed=1, axis=-1)),)
    factor, added = random.integers(1 << 20, 1 << 22, count).astype(np.int32), np.zeros(1, np.int32)
    given = attrs(div=1 << 31, n_levels=256, signed=1, half_to_even=1, x_limit=1 << 22, axis=-1)
    return (("RequantShift", (factor, added), given),)


def _real(channels: int, random: Random) -> tuple[Behind, ...]:
    bias = random.normal(size=channels).astype(np.float32)
    chains: tuple[tuple[Behind, ...], ...] = (
        (),
        (("Relu", (), attrs()),),
        (("Add", (bias,), attrs()),),
        (("Add", (bias,), attrs()), ("Relu", (), attrs())),
        (("Sigmoid", (), attrs()),),
    )
    return chains[int(random.choice(len(chains), p=(0.35, 0.25, 0.15, 0.15, 0.1)))]
