"""A language model as it was trained: its sizes and its weights.

Llama-style: embedding tied with the output head, layers of [RMSNorm, attention with rotary positions, RMSNorm, SwiGLU],
a last RMSNorm; norms have no weights of their own, and rotary pairs are (i, i + half of the head).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast

import numpy as np
from msgspec import Struct, field

from tilewright.core.graph import Array
from tilewright.errors import TilewrightError

PARTS = ("wq", "wk", "wv", "wo", "gate", "up", "down")
"""Weights of a layer, each output x input."""
LARGEST = {"dim": 1 << 14, "layers": 1 << 10, "heads": 1 << 10, "ffn": 1 << 16, "vocab": 1 << 20, "context": 1 << 16}


class Remembering(Protocol):
    """How many tokens a model knows, and how many it remembers."""

    @property
    def vocab(self) -> int: ...
    @property
    def context(self) -> int: ...


class ModelSizes(Struct, frozen=True):
    """The sizes of a model, as `config` of its file says them."""

    dim: int
    layers: int
    heads: int
    ffn: int
    vocab: int
    context: int
    theta: float = 10000.0
    eps: float = 1e-5

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.dim // self.heads

    def shapes(self) -> dict[str, tuple[int, int]]:
        """Every weight with its shape."""
        inner = {"gate": (self.ffn, self.dim), "up": (self.ffn, self.dim), "down": (self.dim, self.ffn)}
        found = {"emb": (self.vocab, self.dim)}
        for layer in range(self.layers):
            found |= {f"{layer}.{part}": inner.get(part, (self.dim, self.dim)) for part in PARTS}
        return found


class Checkpoint(Struct, frozen=True, eq=False):
    """ModelSizes and float32 weights: `emb`, and for each layer N the `PARTS`, as `N.wq`."""

    sizes: ModelSizes
    weights: Mapping[str, Array]
    steps: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    """Of weights that are whole numbers times a step for each row, these steps."""

    def layer(self, number: int) -> dict[str, Array]:
        return {part: self.weights[f"{number}.{part}"] for part in PARTS}

    @property
    def parameters(self) -> int:
        return sum(weight.size for weight in self.weights.values())


def checkpoint_of(arrays: Mapping[str, Array], name: str) -> Checkpoint:
    """A model of the arrays of a file; weights may be integers with a `.scale` for each row."""
    if "config" not in arrays:
        raise _bad(name, "it has no 'config', a text in JSON with the sizes of the model")
    sizes = _sizes(str(arrays["config"]), name)
    weights: dict[str, Array] = {}
    steps: dict[str, Array] = {}
    for key, shape in sizes.shapes().items():
        if key not in arrays:
            raise _bad(name, f"it has no weights '{key}'")
        found = arrays[key]
        if found.shape != shape:
            raise _bad(name, f"'{key}' is {list(found.shape)}, and 'config' says {list(shape)}")
        if found.dtype.kind not in "iuf":
            raise _bad(name, f"'{key}' holds {found.dtype}, which are no numbers")
        weights[key] = _scaled(key, found, arrays.get(f"{key}.scale"), name)
        if f"{key}.scale" in arrays and found.dtype.kind in "iu":
            steps[key] = np.resize(arrays[f"{key}.scale"].astype(np.float64), shape[0])
    return Checkpoint(sizes, MappingProxyType(weights), MappingProxyType(steps))


def _scaled(key: str, found: Array, scale: Array | None, name: str) -> Array:
    wide = found.astype(np.float32)
    if scale is not None:
        if scale.shape not in ((), found.shape[:1]) or scale.dtype.kind != "f":
            raise _bad(name, f"'{key}.scale' is {list(scale.shape)}, not one number for each row of '{key}'")
        wide = wide * scale.astype(np.float32).reshape(-1, 1)
    if not np.isfinite(wide).all():
        raise _bad(name, f"'{key}' has values that are not finite")
    return wide


def _sizes(text: str, name: str) -> ModelSizes:
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise _bad(name, f"its 'config' is not JSON: {reason}") from reason
    if not isinstance(given, dict):
        raise _bad(name, "its 'config' is not a JSON object")
    values = cast("dict[str, object]", given)
    known: dict[str, int | float] = {}
    for part in ModelSizes.__struct_fields__:
        value = values.get(part)
        if value is None and part not in LARGEST:
            continue
        whole = part in LARGEST
        fits = isinstance(value, int) if whole else isinstance(value, (int, float))
        if not fits or isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _bad(name, f"'{part}' of its 'config' is {value!r}, not a {'whole ' if whole else ''}number")
        if not 0 < value <= LARGEST.get(part, 1e9):
            raise _bad(name, f"'{part}' of its 'config' is {value}, out of range")
        known[part] = value
    sizes = ModelSizes(**known)  # pyright: ignore[reportArgumentType]
    if sizes.dim % sizes.heads or sizes.head % 2:
        raise _bad(name, f"{sizes.dim} elements are not {sizes.heads} heads of an even size")
    return sizes


def _bad(name: str, why: str) -> TilewrightError:
    return TilewrightError(
        "bad-checkpoint",
        f"'{name}' is not a checkpoint of a language model",
        reasons=[why],
        help="docs/language_models.md says what such a file holds",
    )
