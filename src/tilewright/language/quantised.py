"""A language model in integers: which numbers its weights and activations are, and how sums are scaled back.

Activations have 8 bits where they are multiplied by weights, or lie in a cache, each channel with a scale of its own:
the factor moves into the norm, or into whatever makes the channel, and into the columns of the weights that read it.
What is added up along the layers has 16 bits, and so have gates and what is rotated. A weight's scale is fitted to the
whole number that its sums are multiplied by, so that scaling back is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log, log2
from types import MappingProxyType

import numpy as np
from msgspec import Struct, field

from tilewright.core.graph import Array
from tilewright.language import USUAL_BITS
from tilewright.language.checkpoint import Checkpoint, ModelSizes
from tilewright.language.ranges import ActivationRanges
from tilewright.language.reference import rotations
from tilewright.language.rounding import fitted_steps, rounded
from tilewright.ops.integer_attention import MEAN

BYTE, WORD, LIMIT = 127, 32767, (1 << 31) - 1
OCTAVE = 32
"""Units of a score in which weights of attention halve."""
TURN = 14
"""Bits of cosines and sines."""
SIGMOID = 512
"""Entries of the table of sigmoids, of which 32 are one."""
LOGIT = 256
"""Units of a logit in what a model gives."""
READS = {"wq": "attention_in", "wk": "attention_in", "wv": "attention_in", "wo": "mixed"} | {
    "gate": "ffn_in",
    "up": "ffn_in",
    "down": "hidden",
}
"""The activations that weights of a layer are multiplied by."""


class Choices(Struct, frozen=True, eq=False):
    """How numbers are chosen."""

    weight_bits: int = USUAL_BITS
    smoothing: float = 0.8
    """How much of the difference between channels of activations moves into weights."""
    bits: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Of some weights, by name, where they are others."""
    moments: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    """Of activations, by name: mean products of each two channels, by which weights are rounded together."""


class Linear(Struct, frozen=True, eq=False):
    """Weights, input x output, and how sums are scaled: `(sum * mul + add) >> shift`."""

    weights: Array
    mul: Array
    add: Array
    shift: int

    @property
    def halves(self) -> tuple[Linear, Linear]:
        """Those of the first half of the outputs, and of the second."""
        half = len(self.mul) // 2
        first, last = (
            Linear(np.ascontiguousarray(self.weights[:, part]), self.mul[part], self.add[part], self.shift)
            for part in (slice(half), slice(half, None))
        )
        return first, last


class Norm(Struct, frozen=True, eq=False):
    """Factors of channels, and by how much products are shifted."""

    weights: Array
    shift: int


class IntegerLayer(Struct, frozen=True, eq=False):
    attention_norm: Norm
    turned: Linear
    """Queries and keys, 256 times what they are behind the rotation."""
    values: Linear
    score_mul: Array
    score_shift: int
    mean_mul: Array
    mean_shift: int
    output: Linear
    ffn_norm: Norm
    gate: Linear
    up: Linear
    step: int
    hidden_shift: int
    down: Linear


class IntegerModel(Struct, frozen=True, eq=False):
    """All numbers of a model; `logits` are in units of 1 / LOGIT."""

    sizes: ModelSizes
    embedding: Array
    embedding_mul: Array
    embedding_shift: int
    layers: tuple[IntegerLayer, ...]
    norm: Norm
    head: Linear

    def tables(self) -> tuple[Array, Array]:
        """Cosines and sines in units of 2^-TURN."""
        cosines, sines = (np.rint(table * (1 << TURN)).astype(np.int16) for table in rotations(self.sizes))
        return cosines, sines


def powers() -> Array:
    """Weights of attention by how far a score lies below the largest; the last is 0."""
    return np.rint(255 * 0.5 ** (np.arange(10 * OCTAVE) / OCTAVE)).astype(np.uint8)


def sigmoids() -> Array:
    """2^15 times the sigmoid at steps of 1 / 32; its middle is that of zero."""
    at = (np.arange(SIGMOID) - SIGMOID // 2) / 32
    return np.minimum(np.rint(32768 / (1 + np.exp(-at))), WORD).astype(np.int16)


def quantised(model: Checkpoint, seen: ActivationRanges, choices: Choices | None = None) -> IntegerModel:
    """The model in integers."""
    chosen, sizes = choices or _usual(model), model.sizes
    unit = 2 * max(seen.overall(f"{n}x") for n in ("", *(f"{layer}." for layer in range(sizes.layers)))) / WORD
    layers = tuple(_layer(model, number, seen, unit, chosen) for number in range(sizes.layers))
    table = _linear(_Read(model.weights["emb"], np.ones(sizes.dim)), np.full(sizes.vocab, unit), inputs=1)
    scales = _of_norm(seen.channels("head_in"), chosen)
    head = _read(model, chosen, ("emb",), scales)
    logits = _linear(head, np.full(sizes.vocab, 1 / LOGIT), floored=True)
    return IntegerModel(sizes, table.weights.T, table.mul, table.shift, layers, _norm(scales), logits)


def _usual(model: Checkpoint) -> Choices:
    """Weights that are whole numbers already stay as they are."""
    if not model.steps:
        return Choices()
    largest = max(float(np.abs(model.weights[n] / s[:, None].clip(1e-30)).max()) for n, s in model.steps.items())
    return Choices(int(np.ceil(log2(max(largest, 1) + 0.5))) + 1 if largest < BYTE else USUAL_BITS, 0.0)


def _layer(model: Checkpoint, number: int, seen: ActivationRanges, unit: float, chosen: Choices) -> IntegerLayer:
    sizes, name = model.sizes, f"{number}."

    def linear(inputs_at: Array, outputs_at: Array, *parts: str, floored: bool = False) -> Linear:
        return _linear(_read(model, chosen, [name + part for part in parts], inputs_at), outputs_at, floored=floored)

    into = _of_norm(seen.channels(f"{name}attention_in"), chosen)
    # A score is one scale times a sum over pairs, so what a pair of keys has less, its queries have more.
    query, key = seen.channels(f"{name}q"), seen.channels(f"{name}k")
    scale = (query * key).max(axis=1) / BYTE**2
    wanted = scale * sizes.head**-0.5 * OCTAVE / log(2)
    shift = _shift(float(wanted.max()), sizes.head * (BYTE + 1) ** 2)
    mul = np.maximum(np.ceil(wanted * 2.0**shift), 1)
    scale = mul / wanted / 2.0**shift * scale
    keys = np.sqrt(scale[:, None] * key / query)
    queries = scale[:, None] / keys
    pairs = np.concatenate([np.concatenate([s, s], axis=1).reshape(-1) for s in (queries, keys)]) / 256
    value_scales = seen.channels(f"{name}v").reshape(-1) / BYTE
    mixed = smoothed(seen.channels(f"{name}mixed"), chosen)
    mean_shift = _shift(float((value_scales / MEAN / mixed).max()), (BYTE + 1) * MEAN, most=WORD)
    mean_mul = np.maximum(np.floor(value_scales / MEAN / mixed * 2.0**mean_shift), 1)
    means = value_scales / MEAN * 2.0**mean_shift / mean_mul
    inner = _of_norm(seen.channels(f"{name}ffn_in"), chosen)
    step = max(1, min(14, 10 - int(np.ceil(log2(1.25 * seen.overall(f"{name}gate"))))))
    gate_unit = 2.0 ** -(5 + step)
    hidden, most = smoothed(seen.channels(f"{name}hidden"), chosen), seen.channels(f"{name}up") * 1.5
    hidden_shift = max(1, min(30, floor(log2(float((WORD * hidden / (most * gate_unit)).min())))))
    upper = hidden / (gate_unit * 2.0**hidden_shift)
    return IntegerLayer(
        attention_norm=_norm(into),
        turned=linear(into, pairs, "wq", "wk", floored=True),
        values=linear(into, value_scales, "wv", floored=True),
        score_mul=mul.astype(np.int32),
        score_shift=shift,
        mean_mul=mean_mul.astype(np.int32),
        mean_shift=mean_shift,
        output=linear(means, np.full(sizes.dim, unit), "wo"),
        ffn_norm=_norm(inner),
        gate=linear(inner, np.full(sizes.ffn, gate_unit), "gate", floored=True),
        up=linear(inner, upper, "up", floored=True),
        step=step,
        hidden_shift=hidden_shift,
        down=linear(hidden, np.full(sizes.dim, unit), "down"),
    )


def smoothed(largest: Array, chosen: Choices) -> Array:
    """Scales of channels: between one for all and one for each."""
    wide = largest.astype(np.float64)
    return wide**chosen.smoothing * wide.max() ** (1 - chosen.smoothing) / BYTE


def _of_norm(largest: Array, chosen: Choices) -> Array:
    """Scales of what a norm gives: of the order of one, unless it is given hardly anything but zeros."""
    return np.maximum(smoothed(largest, chosen), 1 / WORD)


def _norm(scales: Array) -> Norm:
    shift = max(0, floor(log2(WORD * float(scales.min()))))
    return Norm(np.rint(2.0**shift / scales).astype(np.int32), shift)


def _shift(factor: float, largest: int, *, most: int = LIMIT) -> int:
    """By how much products may be shifted that are to be sums of up to `largest` times up to `factor`, in 32 bits."""
    return max(1, min(30, floor(log2(min(LIMIT / 2.1 / (largest * factor), most / factor)))))


class _Read(Struct, frozen=True, eq=False):
    """Weights, output x input, and what is known of them and of their inputs."""

    weights: Array
    inputs_at: Array
    bits: int = USUAL_BITS
    steps: Array | None = None
    """Of rows that are whole numbers already."""
    moments: Array | None = None


def _read(model: Checkpoint, chosen: Choices, names: Sequence[str], inputs_at: Array) -> _Read:
    """Weights that read the same inputs, one below the other."""
    steps = [model.steps[name] for name in names if name in model.steps]
    bits = max(chosen.bits.get(name, chosen.weight_bits) for name in names)
    return _Read(
        np.concatenate([model.weights[name] for name in names]),
        inputs_at,
        bits,
        np.concatenate(steps) if len(steps) == len(names) else None,
        chosen.moments.get(read_by(names[0])) if bits < USUAL_BITS else None,
    )


def read_by(name: str) -> str:
    """The activations that weights are multiplied by."""
    layer, _, part = name.rpartition(".")
    return f"{layer}.{READS[part]}" if layer else "head_in"


def _linear(read: _Read, outputs_at: Array, *, floored: bool = False, inputs: int | None = None) -> Linear:
    """Integer weights for inputs and outputs of some scales; `floored` inputs are half a unit too low on average.

    A row has its own step, or one with which its largest weight is the largest whole number, or, where inputs are
    known, the one with which it is off least.
    """
    wide = read.weights.astype(np.float64) * read.inputs_at
    top = (1 << (read.bits - 1)) - 1
    moments = None if read.moments is None else read.moments / np.outer(read.inputs_at, read.inputs_at)
    if read.steps is not None:
        step = read.steps * read.inputs_at.max()
    elif moments is None:
        step = np.abs(wide).max(axis=1) / top
    else:
        step = fitted_steps(wide, top, moments)
    step = np.maximum(step, 1e-12)
    if inputs is not None:
        magnitude = np.full(len(wide), float(top * inputs))
    elif moments is None:
        magnitude = np.abs(wide).sum(axis=1) / step
    else:
        # Each of those that are rounded together may become as large as can be.
        magnitude = np.full(len(wide), float(top * wide.shape[1]))
    factors = step / outputs_at
    shift = _shift(float((factors * (magnitude + wide.shape[1] / 2)).max()), BYTE + 1)
    mul = np.maximum(np.ceil(factors * 2.0**shift), 1)
    whole = rounded(wide, mul * outputs_at / 2.0**shift, top, moments)
    add = np.rint(whole.sum(axis=1) * mul / 2).clip(-LIMIT, LIMIT) if floored else np.zeros(len(whole))
    return Linear(whole.T.astype(np.int8), mul.astype(np.int32), add.astype(np.int32), shift)
