"""How large activations get: a float model watched while it writes texts of its own, so that no data are needed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array
from tilewright.language.checkpoint import Checkpoint
from tilewright.language.reference import Reference

SEQUENCES, SEED = 16, 1
"""Texts that a model writes to be watched. Each is as long as its context."""
MULTIPLIED = ("attention_in", "mixed", "ffn_in", "hidden", "head_in")
"""Activations that are multiplied by weights, without the layer that they are of."""


class ActivationRanges(Struct, frozen=True):
    """For each activation the largest magnitude of every channel."""

    largest: Mapping[str, Array]

    def channels(self, name: str) -> Array:
        # What never was anything but zero still needs a scale.
        return np.maximum(self.largest[name], np.max(self.largest[name]) * 1e-3 + 1e-9)

    def overall(self, name: str) -> float:
        return float(np.max(self.largest[name])) + 1e-9


def own_texts(model: Checkpoint, count: int = SEQUENCES, seed: int = SEED) -> Array:
    """Tokens that a model writes, drawn by its own probabilities; each text begins with token 0, which ends one."""
    random, reference = np.random.default_rng(seed), Reference(model)
    tokens = np.zeros((count, model.sizes.context), np.int64)
    for position in range(model.sizes.context - 1):
        logits = reference.logits(tokens[:, position : position + 1])[:, 0].astype(np.float64)
        noise = random.gumbel(size=logits.shape)
        tokens[:, position + 1] = np.argmax(logits + noise, axis=-1)
    return tokens


def moments(model: Checkpoint, tokens: Array) -> Mapping[str, Array]:
    """Of activations that are multiplied by weights: the mean products of each two channels on some texts."""
    sums: dict[str, Array] = {}

    def see(name: str, values: Array) -> None:
        if name.rpartition(".")[2] in MULTIPLIED:
            rows = values.reshape(-1, values.shape[-1])
            sums[name] = (rows.T @ rows).astype(np.float64) / len(rows)

    Reference(model, see).logits(tokens)
    return MappingProxyType(sums)


def watched(model: Checkpoint, tokens: Array) -> ActivationRanges:
    """What the activations of a model reach on some texts."""
    largest: dict[str, Array] = {}

    def see(name: str, values: Array) -> None:
        # Of rotated pairs the length counts, because every angle occurs. Heads come before positions there.
        if name.endswith((".q", ".k")):
            half = values.shape[-1] // 2
            found = np.hypot(values[..., :half], values[..., half:]).max(axis=(0, 2))
        else:
            axes = (0, 2) if values.ndim == 4 else (0, 1)
            found = np.abs(values).max(axis=axes)
        largest[name] = np.maximum(largest[name], found) if name in largest else found

    Reference(model, see).logits(tokens)
    return ActivationRanges(MappingProxyType(largest))
