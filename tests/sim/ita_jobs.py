"""Layers of ITA as its driver gives them: matrices in tiles, biases of three bytes, and the registers of every job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.integer]
TILE = 64
TILE_BYTES = TILE * TILE
TIMING = {"drain_cycles": 11, "next_cycles": 3}
ATTENTION, FEED_FORWARD, LINEAR, SINGLE_ATTENTION = range(4)
FIRST, NEXT, NO_BIAS, BIAS_ALONG_ROWS, NO_OUTPUT = (1 << bit for bit in range(5))


def tiled(matrix: Values) -> NDArray[np.uint8]:
    """The bytes of a matrix cut into tiles."""
    rows, columns = matrix.shape
    blocks = matrix.reshape(rows // TILE, TILE, columns // TILE, TILE).swapaxes(1, 2)
    return np.ascontiguousarray(blocks).astype(matrix.dtype).view(np.uint8).reshape(-1)


def untiled(data: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.int8]:
    """The matrix that lies in tiles."""
    blocks = data.view(np.int8).reshape(rows // TILE, columns // TILE, TILE, TILE)
    return np.ascontiguousarray(blocks.swapaxes(1, 2)).reshape(rows, columns)


def packed_bias(values: Values) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3]).reshape(-1)


def word(values: Sequence[int]) -> list[int]:
    """Eight bytes in two registers."""
    full = [int(value) & 255 for value in values] + [0] * (8 - len(values))
    return [int.from_bytes(bytes(full[i : i + 4]), "little") for i in (0, 4)]


@dataclass(frozen=True)
class Requantisation:
    mult: Sequence[int]
    shift: Sequence[int]
    add: Sequence[int]


@dataclass(frozen=True)
class Activation:
    kind: int = 0
    b: int = 0
    c: int = 0
    mult: int = 0
    shift: int = 0
    add: int = 0


@dataclass
class Layer:
    """A layer's memory and the registers of its jobs."""

    code: int
    tiles: Sequence[int]
    """Along S, E, P and F."""
    scales: Requantisation
    activation: Activation = Activation()
    base: int = 0
    memory: list[NDArray[np.uint8]] = field(default_factory=list[NDArray[np.uint8]])
    jobs: list[list[int]] = field(default_factory=list[list[int]])

    def put(self, data: NDArray[np.uint8]) -> int:
        """Where the bytes lie."""
        address = self.base + sum(len(part) for part in self.memory)
        self.memory.append(np.pad(data, (0, -len(data) % TILE)))
        return address

    def room(self, tiles: int) -> int:
        return self.put(np.full(tiles * TILE_BYTES, 0xA5, np.uint8))

    def image(self) -> NDArray[np.uint8]:
        return np.concatenate(self.memory)

    def product(
        self,
        left: int,
        right: int,
        out: int,
        rows: range,
        columns: int,
        inner: int,
        bias: int = -1,
        turned: bool = False,
    ) -> None:
        """Jobs for rows x columns tiles of results; `turned`: the bias goes with rows."""
        for row in rows:
            for column in range(columns):
                for step in range(inner):
                    flags = (NO_BIAS if bias < 0 else 0) | (BIAS_ALONG_ROWS if turned else 0)
                    flags |= NO_OUTPUT if step + 1 < inner else 0
                    self._job(
                        left + (row * inner + step) * TILE_BYTES,
                        right + (column * inner + step) * TILE_BYTES,
                        max(bias, 0) + 3 * TILE * (row if turned else column) * (bias >= 0),
                        out + (row * columns + column) * TILE_BYTES,
                        flags,
                    )

    def _job(self, left: int, right: int, bias: int, out: int, flags: int) -> None:
        if self.jobs:
            self.jobs[-1][2] = right
            self.jobs[-1][14] |= NEXT
        sizes = sum((tiles & 15) << 4 * i for i, tiles in enumerate(self.tiles))
        a = self.activation
        words = (*word(self.scales.mult), *word(self.scales.shift), *word(self.scales.add))
        kinds = self.code | a.kind << 2, flags | (0 if self.jobs else FIRST)
        curve = (a.b & 0xFFFF) | (a.c & 0xFFFF) << 16
        last = (a.mult & 255) | (a.shift & 255) << 8 | (a.add & 255) << 16
        self.jobs.append([left, right, 0, bias, out, TILE, sizes, *words, *kinds, curve, last])


@dataclass(frozen=True)
class Head:
    """Where the results of a head of attention lie."""

    layer: Layer
    query: int
    key: int
    value: int
    scores: int
    mixed: int
    out: int
    row_ends: Sequence[int]
    """Jobs after which the scores of a row of tiles are complete."""


def attention(
    q: Values, kv: Values, weights: Sequence[Values], biases: Sequence[Values], scales: Requantisation, base: int = 0
) -> Head:
    """One head: weights and biases are those of query, key, value and output."""
    s, e, p = q.shape[0] // TILE, q.shape[1] // TILE, weights[0].shape[1] // TILE
    layer = Layer(ATTENTION, (s, e, p, 1), scales, base=base)
    at_q, at_kv = layer.put(tiled(q)), layer.put(tiled(kv))
    wq, wk, wv, wo = (layer.put(tiled(np.ascontiguousarray(w.T))) for w in weights)
    bq, bk, bv, bo = (layer.put(packed_bias(b)) for b in biases)
    query, key, value, scores = (layer.room(tiles) for tiles in (s * p, s * p, p * s, s * s))
    mixed, out = layer.room(s * p), layer.room(s * e)
    layer.product(at_q, wq, query, range(s), p, e, bq)
    layer.product(at_kv, wk, key, range(s), p, e, bk)
    layer.product(wv, at_kv, value, range(p), s, e, bv, turned=True)
    row_ends: list[int] = []
    for row in range(s):
        layer.product(query, key, scores, range(row, row + 1), s, p)
        row_ends.append(len(layer.jobs))
        layer.product(scores, value, mixed, range(row, row + 1), p, s)
    layer.product(mixed, wo, out, range(s), e, p, bo)
    return Head(layer, query, key, value, scores, mixed, out, row_ends)


def linear(
    x: Values, w: Values, b: Values, scales: Requantisation, activation: Activation, base: int = 0
) -> tuple[Layer, int]:
    """A product, and where its result lies."""
    m, k, n = x.shape[0] // TILE, x.shape[1] // TILE, w.shape[1] // TILE
    layer = Layer(LINEAR, (m, k, n, 1), scales, activation, base)
    left, right = layer.put(tiled(x)), layer.put(tiled(np.ascontiguousarray(w.T)))
    bias, out = layer.put(packed_bias(b)), layer.room(m * n)
    layer.product(left, right, out, range(m), n, k, bias)
    return layer, out


def feed_forward(
    x: Values, weights: Sequence[Values], biases: Sequence[Values], scales: Requantisation, activation: Activation
) -> tuple[Layer, int, int]:
    """Two products with an activation between, and where their results lie."""
    s, e, f = x.shape[0] // TILE, x.shape[1] // TILE, weights[0].shape[1] // TILE
    layer = Layer(FEED_FORWARD, (s, e, 1, f), scales, activation)
    at = layer.put(tiled(x))
    first, second = (layer.put(tiled(np.ascontiguousarray(w.T))) for w in weights)
    bias, other = (layer.put(packed_bias(b)) for b in biases)
    hidden, out = layer.room(s * f), layer.room(s * e)
    layer.product(at, first, hidden, range(s), f, e, bias)
    layer.product(hidden, second, out, range(s), e, f, other)
    return layer, hidden, out
