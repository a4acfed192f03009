"""What a language model computes, in numpy and floats: the oracle of compiled ones, and what integers are fitted to."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from msgspec import Struct, field

from tilewright.core.graph import Array
from tilewright.language.checkpoint import Checkpoint, ModelSizes

Watch = Callable[[str, Array], None]
"""Is shown activations by name as they are computed."""


@lru_cache(maxsize=4)
def rotations(sizes: ModelSizes) -> tuple[Array, Array]:
    """Cosines and sines of each position and pair."""
    half = sizes.head // 2
    angles = np.arange(sizes.context)[:, None] * sizes.theta ** (-np.arange(half) / half)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class Reference(Struct):
    """A model with caches of as many sequences as it is run on; each run appends its tokens to all of them."""

    model: Checkpoint
    watch: Watch = lambda _name, _values: None
    embedding: Array | None = None
    """Where it is another one than that of the head."""
    _keys: list[Array] = field(default_factory=list[Array])
    _values: list[Array] = field(default_factory=list[Array])

    def reset(self) -> None:
        self._keys.clear()
        self._values.clear()

    def logits(self, tokens: Array) -> Array:
        """What follows each of `tokens[sequence, position]`, which come behind those of the runs before."""
        sizes, watch = self.model.sizes, self.watch
        past = self._keys[0].shape[2] if self._keys else 0
        cosines, sines = (table[past : past + tokens.shape[1]] for table in rotations(sizes))
        x = (self.model.weights["emb"] if self.embedding is None else self.embedding)[tokens]
        for number in range(sizes.layers):
            w, name = self.model.layer(number), f"{number}."
            watch(name + "x", x)
            inner = self._norm(x)
            watch(name + "attention_in", inner)
            raw = {part: self._heads(inner @ w[part].T) for part in ("wq", "wk", "wv")}
            query, key = (_turned(raw[part], cosines, sines) for part in ("wq", "wk"))
            for part, rotated in (("q", query), ("k", key), ("v", raw["wv"])):
                watch(name + part, rotated)
            watch(name + "raw", np.concatenate([raw["wq"], raw["wk"]], axis=-1))
            mixed = self._attend(number, query, key, raw["wv"])
            watch(name + "mixed", mixed)
            x = x + mixed @ w["wo"].T
            inner = self._norm(x)
            watch(name + "ffn_in", inner)
            gate, up = inner @ w["gate"].T, inner @ w["up"].T
            hidden = gate / (1 + np.exp(-gate)) * up
            for part, values in (("gate", gate), ("up", up), ("hidden", hidden)):
                watch(name + part, values)
            x = x + hidden @ w["down"].T
        watch("x", x)
        last = self._norm(x)
        watch("head_in", last)
        return last @ self.model.weights["emb"].T

    def _norm(self, x: Array) -> Array:
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(self.model.sizes.eps))

    def _heads(self, rows: Array) -> Array:
        return rows.reshape(*rows.shape[:2], self.model.sizes.heads, -1).swapaxes(1, 2)

    def _attend(self, layer: int, query: Array, key: Array, value: Array) -> Array:
        past = int(self._keys[layer].shape[2]) if layer < len(self._keys) else 0
        if past:
            key = np.concatenate([self._keys[layer], key], axis=2)
            value = np.concatenate([self._values[layer], value], axis=2)
        self._keys[layer : layer + 1], self._values[layer : layer + 1] = [key], [value]
        scores = query @ key.swapaxes(-1, -2) * np.float32(self.model.sizes.head**-0.5)
        count = int(query.shape[2])
        hidden: Array = np.arange(past + count)[None] > np.arange(past, past + count)[:, None]
        scores = np.where(hidden, np.float32(-np.inf), scores)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = powers / powers.sum(axis=-1, keepdims=True) @ value
        return mixed.swapaxes(1, 2).reshape(query.shape[0], count, -1)


def _turned(x: Array, cosines: Array, sines: Array) -> Array:
    half = x.shape[-1] // 2
    left, right = x[..., :half], x[..., half:]
    return np.concatenate([left * cosines - right * sines, left * sines + right * cosines], axis=-1)


def bits(logits: Array, targets: Array) -> Array:
    """How many bits each target takes."""
    wide = logits.astype(np.float64)
    top = wide.max(axis=-1, keepdims=True)
    total = np.log(np.exp(wide - top).sum(axis=-1)) + top[..., 0]
    return (total - np.take_along_axis(wide, targets[..., None].astype(np.int64), axis=-1)[..., 0]) / np.log(2)
