"""What networks are fed: given arrays in the types that they want, or noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.base.dtype import BOOL
from tilewright.core.graph import Array, Graph, TensorType
from tilewright.errors import TilewrightError


def stepped(kind: TensorType, steps: int | None) -> TensorType:
    """A tensor of several runs."""
    return kind if steps is None else kind.with_shape((steps, *kind.shape))


def noise(graph: Graph, seed: int, steps: int | None = None) -> tuple[Array, ...]:
    """Seeded inputs that suit the types of a network."""
    rng = np.random.default_rng(seed)
    return tuple(noise_of(stepped(graph.types[name], steps), rng) for name in graph.fed)


def noise_of(kind: TensorType, rng: np.random.Generator) -> Array:
    """One tensor of noise."""
    if kind.dtype.is_float:
        return rng.normal(size=kind.shape).astype(kind.dtype.numpy)
    if kind.dtype == BOOL or kind.dtype.bits > 16:
        # Wide integers are mostly indices: zero and one are valid for any table.
        return rng.integers(0, 2, size=kind.shape).astype(kind.dtype.numpy)
    return rng.integers(kind.dtype.lo, kind.dtype.hi + 1, size=kind.shape).astype(kind.dtype.numpy)


def fit(inputs: Sequence[Array], graph: Graph, steps: int | None = None) -> tuple[Array, ...]:
    """Given inputs in the types of the network, which must hold their values; additional arrays are ignored."""
    if len(inputs) < len(graph.fed):
        raise TilewrightError(
            "wrong-inputs",
            f"the network has {len(graph.fed)} inputs, {len(inputs)} were given",
            help=", ".join(graph.fed),
        )
    fed: list[Array] = []
    for name, array in zip(graph.fed, inputs, strict=False):
        kind = stepped(graph.types[name], steps)
        # Of a tensor that may be shorter, what lies behind is not looked at.
        if name in graph.open and steps is None and array.size <= kind.size:
            array = np.pad(array.reshape(-1), (0, kind.size - array.size))
        if array.size != kind.size:
            raise TilewrightError(
                "wrong-inputs",
                f"input '{name}' is {kind}, the array given has shape {list(array.shape)}",
                help="give arrays in the order of the network's inputs",
            )
        if np.iscomplexobj(array):
            raise TilewrightError(
                "wrong-inputs",
                f"input '{name}' is {kind}, the array given has complex numbers",
                help="give their real and imaginary parts as the network wants them",
            )
        converted = array.astype(kind.dtype.numpy)
        if kind.dtype.is_integer and not np.array_equal(converted, array):
            raise TilewrightError(
                "wrong-inputs",
                f"input '{name}' is {kind.dtype}, which does not hold all of {array.min()} to {array.max()}",
                help=f"pin a wider type with --input-type {name}=int16",
            )
        fed.append(converted.reshape(kind.shape))
    return tuple(fed)
