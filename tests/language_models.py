"""Small language models for tests: random weights, a tokenizer of a few letters."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict

from tilewright.core.graph import Array
from tilewright.language.checkpoint import Checkpoint, ModelSizes

ROOT = Path(__file__).parents[1]


def script(place: str) -> Any:
    """A Python file of the repository that is no part of the package, as a module."""
    name = Path(place).stem
    spec = importlib.util.spec_from_file_location(name, ROOT / place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def tiny(seed: int = 0, *, dim: int = 32, heads: int = 4, context: int = 24) -> Checkpoint:
    """A model with two layers whose activations have channels of different sizes."""
    random = np.random.default_rng(seed)
    sizes = ModelSizes(dim=dim, layers=2, heads=heads, ffn=48, vocab=64, context=context)
    weights = {
        name: (random.normal(size=shape) * (0.5 if name == "emb" else 1.5 * shape[1] ** -0.5)).astype(np.float32)
        for name, shape in sizes.shapes().items()
    }
    weights["emb"] *= np.exp(random.normal(size=dim) / 2).astype(np.float32)
    return Checkpoint(sizes, weights)


def tiny_tokenizer() -> str:
    """The text of a tokenizer with 64 tokens: letters, a blank, a full stop, and some pairs of letters."""
    letters = [chr(ord("a") + number) for number in range(26)]
    base = ["<|end|>", *letters, "Ġ", "."]
    merges: list[list[str]] = [["t", "h"], ["th", "e"], ["Ġ", "the"]]
    number = 0
    while len(base) + len(merges) < 64:
        pair = [letters[number % 26], letters[(number * 7 + 3 + number // 26) % 26]]
        number += 1
        if pair not in merges:
            merges.append(pair)
    words = [*base, *("".join(pair) for pair in merges)]
    split = {"type": "Split", "pattern": {"Regex": " ?[a-z]+| ?[^a-z ]+|[ ]"}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    return json.dumps(
        {
            "added_tokens": [{"id": 0, "content": "<|end|>"}],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
            "model": {"type": "BPE", "vocab": {word: at for at, word in enumerate(words)}, "merges": merges},
        }
    )


def written(folder: Path, model: Checkpoint | None = None, changes: Mapping[str, Array] | None = None) -> Path:
    """A checkpoint and its tokenizer in a folder; `changes` replace or add arrays."""
    found = model or tiny()
    config = {**asdict(found.sizes), "qat": ""}
    arrays = {"config": np.asarray(json.dumps(config)), **{n: w.astype(np.float16) for n, w in found.weights.items()}}
    np.savez(folder / "tiny.npz", **{**arrays, **(changes or {})})  # pyright: ignore[reportArgumentType]
    (folder / "tokenizer.json").write_text(tiny_tokenizer())
    return folder / "tiny.npz"
