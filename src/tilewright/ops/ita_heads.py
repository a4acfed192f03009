"""ITAHeads: heads of attention with projections, as ITA's units in MemPool take them, each from a block of memory.

X is the block of the first head: Wo `[E, P]`, Wv and Wk `[P, E]`, the inputs q and k `[S, E]`, Wq `[P, E]`, then biases
of 32 bits for Wo, Wv, Wk and Wq. Weights are transposed; q, k and Wq lie in strips of 16 columns. The other heads have
the same inputs, which their blocks, in W, leave a gap for: parts of other blocks lie there. W begins with an entry for
each head: where in W its block is, then multipliers, shifts and offsets of six requantisations (Q, K, scores, V, mix,
output). All products have 32 bits and are scaled back to bytes, rounded half up. The softmax is ITAPartialMax in groups
of 16 with `term_bits` 10; `replaces` is the operator of a network whose place that takes, where it does. The result is
`[heads, S, E]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import INT8
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REGISTRY, REQUIRED, Call, Example, Operator, call_of, declare, evaluate
from tilewright.ops.ita_rules import GROUP, requantised
from tilewright.ops.ita_tiles import TILE

STRIP, MOST, UNITS = 16, 512, 4
SOFTMAX: MappingProxyType[str, Attr] = MappingProxyType({"group_width": GROUP, "n_levels": 256, "term_bits": 10})
"""Attributes of the ITAPartialMax that the units compute."""
STEPS = ("q", "k", "score", "v", "mix", "out")
"""The requantisations of a head, in the order of an entry."""
ENTRY = np.dtype([("at", "<i4"), ("mult", "u1", 8), ("shift", "u1", 8), ("add", "<i4", len(STEPS))])


class Head(Struct, frozen=True):
    """What a head has of its own: weights `[inner, columns]`, biases, and scales as `(mult, shift, add)` by step."""

    weights: dict[str, Array]
    biases: dict[str, Array]
    scales: dict[str, tuple[int, int, int]]


class HeadBlock(Struct, frozen=True):
    """The memory of a head: what lies before the inputs, these, and what lies behind them."""

    rows: int
    embedding: int
    projection: int

    @property
    def before(self) -> int:
        return 3 * self.embedding * self.projection

    @property
    def inputs(self) -> int:
        return 2 * self.rows * self.embedding

    @property
    def behind(self) -> int:
        return self.embedding * self.projection + 4 * (self.embedding + 3 * self.projection)

    @property
    def bytes(self) -> int:
        return self.before + self.inputs + self.behind

    @property
    def products(self) -> int:
        """Multiply-accumulates of a head on its unit, which computes whole tiles."""
        s, e, p = (-(-size // TILE) * TILE for size in (self.rows, self.embedding, self.projection))
        return s * p * (4 * e + 2 * s)

    def parts(self, head: Head) -> tuple[Array, Array]:
        """Bytes before and behind the inputs."""
        turned = {name: np.ascontiguousarray(weights.T).astype(np.int8) for name, weights in head.weights.items()}
        biases = np.concatenate([head.biases[name].astype("<i4") for name in ("out", "v", "k", "q")])
        before = np.concatenate([turned[name].reshape(-1) for name in ("out", "v", "k")])
        return before, np.concatenate([strips(turned["q"]), biases.view(np.int8)])

    def places(self, count: int) -> tuple[list[int], int]:
        """Where blocks of so many heads begin, with parts of others between those of one, and the end of all."""
        taken: list[tuple[int, int]] = []
        found: list[int] = []
        parts = ((0, self.before), (self.before + self.inputs, self.behind))
        for _ in range(count):
            starts = sorted({0, *(end - at for _, end in taken for at, _ in parts if end >= at)})
            place = next(
                start
                for start in starts
                if all(start + at >= end or begin >= start + at + size for at, size in parts for begin, end in taken)
            )
            taken += [(place + at, place + at + size) for at, size in parts]
            found.append(place)
        return found, max((end for _, end in taken), default=0)

    def others(self, heads: Sequence[Head]) -> Array:
        """W of such heads, the first of which is in X."""
        places, size = self.places(len(heads) - 1)
        entries = np.zeros(len(heads), ENTRY)
        blocks = np.zeros(size, np.int8)
        for index, head in enumerate(heads):
            for step, name in enumerate(STEPS):
                mult, shift, add = head.scales[name]
                for what, value in (("mult", mult), ("shift", shift), ("add", add)):
                    entries[what][index, step] = value
            if index:
                place = places[index - 1]
                entries["at"][index] = entries.nbytes + place
                before, behind = self.parts(head)
                blocks[place : place + self.before] = before
                gap = place + self.before + self.inputs
                blocks[gap : gap + self.behind] = behind
        return np.concatenate([entries.view(np.int8), blocks])


def strips(matrix: Array) -> Array:
    """The bytes of a matrix in strips of 16 columns."""
    return np.ascontiguousarray(matrix.reshape(len(matrix), -1, STRIP).swapaxes(0, 1)).reshape(-1)


def _unstripped(data: Array, rows: int) -> Array:
    return data.reshape(-1, rows, STRIP).swapaxes(0, 1).reshape(rows, -1)


def _block(call: Call) -> HeadBlock:
    return HeadBlock(*(call.int(name) for name in ("rows", "embedding", "projection")))


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, w, heads, block = call.type("X"), call.type("W"), call.int("heads"), _block(call)
    sizes = (block.rows, block.embedding, block.projection)
    if any(size % STRIP or not 0 < size <= MOST for size in sizes) or not 1 <= heads <= UNITS:
        raise call.error(
            "bad-attribute", f"sizes must be multiples of {STRIP}, {MOST} at most, found {sizes} of {heads} heads"
        )
    wanted = block.bytes, heads * ENTRY.itemsize + block.places(heads - 1)[1]
    if (x, w) != tuple(TensorType(INT8, (size,)) for size in wanted):
        raise call.error("shape-mismatch", f"X {x} and W {w} must have {wanted[0]} and {wanted[1]} bytes")
    return (TensorType(INT8, (heads, block.rows, block.embedding)),)


def _domain(call: Call) -> Domain:
    shape = call.outputs[0].shape
    access: dict[str, list[Axis]] = {"X": [WHOLE], "W": [WHOLE], "Y": [dim(name) for name in "HSE"]}
    shapes = {"X": call.shape("X"), "W": call.shape("W"), "Y": shape}
    return domain(dict(zip("HSE", shape, strict=True)), access, shapes, "Y", whole="H S E")


def _reference(call: Call, X: Array, W: Array) -> Array:
    block, heads = _block(call), call.int("heads")
    s, e, p = block.rows, block.embedding, block.projection
    entries = W[: heads * ENTRY.itemsize].copy().view(ENTRY)
    q, k = (_unstripped(part, s) for part in np.split(X[block.before : block.before + block.inputs], 2))
    row = call_of(REGISTRY["ITAPartialMax"], [TensorType(INT8, (s, s))], SOFTMAX)
    found: list[Array] = []
    for index, entry in enumerate(entries):
        data = W[entry["at"] :] if index else X
        wo, wv, wk = np.split(data[: block.before], 3)
        rest = data[block.before + block.inputs :][: block.behind]
        wq, biases = _unstripped(rest[: e * p], p), rest[e * p :].copy().view("<i4")
        bo, bv, bk, bq = np.split(biases, [e, e + p, e + 2 * p])

        def scaled(left: Array, right: Array, bias: Array | int, step: str, entry: Array = entry) -> Array:
            sums = left.astype(np.int64) @ right.astype(np.int64).T + bias
            mult, shift, add = (int(entry[what][STEPS.index(step)]) for what in ("mult", "shift", "add"))
            return requantised((sums * mult).astype(np.int32), 1, shift, add)

        queries = scaled(q, wq, bq, "q")
        keys, values = (scaled(k, w.reshape(p, e), b, name) for w, b, name in ((wk, bk, "k"), (wv, bv, "v")))
        (weights,) = evaluate(row, [scaled(queries, keys, 0, "score")])
        found.append(scaled(scaled(weights, values.T, 0, "mix"), wo.reshape(e, p), bo, "out"))
    return np.stack(found)


def _example(heads: int, rows: int, embedding: int, projection: int) -> Example:
    random, block = np.random.default_rng(heads), HeadBlock(rows, embedding, projection)

    def head() -> Head:
        shapes = {**dict.fromkeys("qkv", (embedding, projection)), "out": (projection, embedding)}
        weights = {name: random.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes.items()}
        biases = {name: random.integers(-9999, 9999, shape[1]) for name, shape in shapes.items()}
        scales = {name: (int(random.integers(60, 256)), 18, 0) for name in STEPS}
        return Head(weights, biases, {**scales, "mix": (190, 14, 3), "out": (255, 18, -2)})

    made = [head() for _ in range(heads)]
    before, behind = block.parts(made[0])
    inputs = random.integers(-128, 128, block.inputs).astype(np.int8)
    sizes: dict[str, Attr] = {"heads": heads, "rows": rows, "embedding": embedding, "projection": projection}
    return Example((np.concatenate([before, inputs, behind]), block.others(made)), MappingProxyType(sizes))


declare(
    Operator(
        "ITAHeads",
        "X W",
        "Y",
        _infer,
        _domain,
        _reference,
        (_example(1, 16, 32, 16), _example(3, 32, 16, 32)),
        MappingProxyType({**dict.fromkeys(("heads", "rows", "embedding", "projection"), REQUIRED), "replaces": ""}),
        doc=__doc__ or "",
    )
)
