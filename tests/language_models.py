"""Small language models for tests: random weights, a tokenizer of a few letters."""

from __future__ import annotations

import numpy as np

from tilewright.language.checkpoint import Checkpoint, Sizes


def tiny(seed: int = 0, *, dim: int = 32, heads: int = 4, context: int = 24) -> Checkpoint:
    """A model with two layers whose activations have channels of different sizes."""
    random = np.random.default_rng(seed)
    sizes = Sizes(dim=dim, layers=2, heads=heads, ffn=48, vocab=64, context=context)
    weights = {
        name: (random.normal(size=shape) * (1.0 if name == "emb" else 1.5 * shape[1] ** -0.5)).astype(np.float32)
        for name, shape in sizes.shapes().items()
    }
    weights["emb"] *= np.exp(random.normal(size=dim) / 2).astype(np.float32)
    return Checkpoint(sizes, weights)
