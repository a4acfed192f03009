"""How two values of a tensor differ, and how much of that is rounding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from tilewright.api.running import FRACTION_BITS
from tilewright.base.dtype import FLOAT32
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.interpret import run_node

RELATIVE = 1e-5
"""Of the largest value of a tensor: floats that differ by no more are equal but for rounding."""
NUDGE = 2.0**-21
"""How much operands are changed, of their value, to see what rounding does to a result."""
OFTEN = 16
"""Times what such a change does to most elements: more is no rounding."""


class ErrorFigures(Struct, frozen=True):
    """How a tensor differs from what is expected."""

    size: int
    """Elements that were compared."""
    wrong: int
    """Of these, how many differ by more than rounding."""
    worst: float
    """Largest absolute difference."""
    mean: float
    scale: float
    """The largest magnitude expected."""
    index: tuple[int, ...]
    """Of the element that differs most beyond its tolerance."""
    expected: float
    got: float
    tolerance: float
    """Of that element."""

    @property
    def relative(self) -> float:
        """The largest difference, as a fraction of the largest value."""
        return self.worst / self.scale if self.scale else self.worst


def figures(got: Array, expected: Array, known: Array | None = None, allowed: Array | None = None) -> ErrorFigures:
    """Compares two arrays of one shape, where `known` says; `allowed` is what may differ, by default `usual`."""
    limit = usual(expected) if allowed is None else allowed
    mask = np.ones(expected.shape, np.bool_) if known is None else known
    with np.errstate(all="ignore"):
        left, right = got.astype(np.float64), expected.astype(np.float64)
        same = (got == expected) | (np.isnan(left) & np.isnan(right)) | ~mask
        difference = np.where(same, 0.0, np.abs(left - right))
        # Integers that no float64 tells apart are one apart; a number in the place of none is as wrong as can be.
        if got.dtype.kind in "iub" and expected.dtype.kind in "iub":
            difference = np.where(same, 0.0, np.maximum(difference, 1.0))
        difference = np.where(np.isnan(difference), np.inf, difference)
        beyond = np.where(same, 0.0, difference - limit)
        wrong = ~same & (difference > limit)
        scale = float(np.max(np.abs(right), where=mask & np.isfinite(right), initial=0.0))
    count = int(mask.sum())
    if not expected.size:
        return ErrorFigures(0, 0, 0.0, 0.0, 0.0, (), 0.0, 0.0, 0.0)
    index = np.unravel_index(int(np.argmax(beyond)), expected.shape)
    return ErrorFigures(
        count,
        int(wrong.sum()),
        float(difference.max()),
        float(difference.sum() / max(count, 1)),
        scale,
        tuple(int(i) for i in index),
        float(right[index]),
        float(left[index]),
        float(np.asarray(limit)[index]),
    )


def usual(expected: Array) -> Array:
    """What a tensor of floats may differ by, with the rounding of its type; nothing for integers."""
    if expected.dtype.kind in "iub" or not expected.size:
        return np.zeros(expected.shape)
    with np.errstate(all="ignore"):
        values = np.abs(expected.astype(np.float64))
        largest = float(np.max(values, where=np.isfinite(values), initial=0.0))
        unit = 2.0 ** -FRACTION_BITS.get(expected.dtype, 23)
        part = max(RELATIVE, unit) if expected.dtype in FRACTION_BITS else RELATIVE
        return np.full(expected.shape, part * largest) + np.where(np.isfinite(values), values * part, 0.0)


def of_rounding(
    graph: Graph, node: Node, operands: Mapping[str, Array], expected: Mapping[str, Array]
) -> dict[str, Array]:
    """What the results of a node may differ by, because it rounds: found by operands that are changed a little.

    Where a result jumps, as at a tie of a quantisation, it may be on either side. Integers are computed exactly.
    """
    allowed = {name: usual(array) for name, array in expected.items()}
    if not _rounds(graph, node):
        return allowed
    responses: dict[str, list[Array]] = {name: [] for name in expected}
    for changed in _nudged(operands):
        for name, array in run_node(graph, node, changed).items():
            with np.errstate(all="ignore"):
                moved = np.abs(array.astype(np.float64) - expected[name].astype(np.float64))
            responses[name].append(np.where(np.isfinite(moved), moved, 0.0))
    for name, found in responses.items():
        if found and found[0].size:
            most = np.max(found, axis=0)
            common = OFTEN * float(np.median(most)) if expected[name].dtype.kind not in "iub" else 0.0
            allowed[name] = np.maximum(np.maximum(allowed[name], common), most * (1 + 1e-6))
    return allowed


def _rounds(graph: Graph, node: Node) -> bool:
    kinds = [graph.types[name] for name in (*node.reads, *node.made)] + [step.type for step in node.epilogue]
    return any(kind.dtype.is_float for kind in kinds)


def _nudged(operands: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Operands with floats that are all larger, all smaller, and either."""
    rng = np.random.default_rng(0)
    for signs in (1.0, -1.0, None, None):
        yield {
            name: (array * (1 + NUDGE * (rng.choice([-1.0, 1.0], array.shape) if signs is None else signs))).astype(
                array.dtype
            )
            if array.dtype.kind == "f" and array.dtype.itemsize >= FLOAT32.bytes
            else array
            for name, array in operands.items()
        }
