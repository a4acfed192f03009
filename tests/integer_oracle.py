"""The integer dialect in plain numpy, from its definition alone: an oracle that shares nothing with the package."""

from __future__ import annotations

from itertools import product
from math import erf, isqrt, prod
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def wide(x: Array) -> Array:
    return x.astype(np.int64)


def truncated(numerator: Array, denominator: Array | int) -> Array:
    """Division that rounds towards zero."""
    quotient = np.abs(numerator) // np.abs(denominator)
    return np.where((numerator < 0) != (np.asarray(denominator) < 0), -quotient, quotient)


def requant(x: Array, mul: Array, add: Array, k: int, levels: int = 256, *, signed: bool = True) -> Array:
    """`mul` and `add` broadcast; the caller has given per-channel values their shape."""
    shifted = (wide(x) * wide(mul) + wide(add) + ((1 << (k - 1)) if k else 0)) >> k
    return np.clip(shifted, *((-levels // 2, levels // 2 - 1) if signed else (0, levels - 1)))


def conv(
    x: Array, w: Array, bias: Array | None, pads: list[int], strides: list[int], dilations: list[int], group: int
) -> Array:
    rank = x.ndim - 2
    padded = np.pad(wide(x), [(0, 0), (0, 0), *((pads[i], pads[rank + i]) for i in range(rank))])
    reach = [(w.shape[2 + i] - 1) * dilations[i] for i in range(rank)]
    size = [(padded.shape[2 + i] - reach[i] - 1) // strides[i] + 1 for i in range(rank)]
    result = np.zeros((x.shape[0], w.shape[0], *size), np.int64)
    features, channels = w.shape[0] // group, w.shape[1]
    for g in range(group):
        part = padded[:, g * channels : (g + 1) * channels]
        kernel = wide(w[g * features : (g + 1) * features])
        for taps in product(*(range(extent) for extent in w.shape[2:])):
            window = tuple(
                slice(taps[i] * dilations[i], taps[i] * dilations[i] + (size[i] - 1) * strides[i] + 1, strides[i])
                for i in range(rank)
            )
            pixels = part[(slice(None), slice(None), *window)]
            tap = kernel[(slice(None), slice(None), *taps)]
            result[:, g * features : (g + 1) * features] += np.einsum("nc...,fc->nf...", pixels, tap)
    return result if bias is None else result + wide(bias).reshape(-1, *(1 for _ in range(rank)))


def i_softmax(x: Array, a: int, b: int, c: int, log2: int, n: int) -> Array:
    d = wide(x) - wide(x).max(-1, keepdims=True)
    z = np.clip(-d // log2, 0, 31)
    p = d + z * log2
    e = (a * (p + b) ** 2 + c) >> z
    return e * (n - 1) // e.sum(-1, keepdims=True)


def ita_max(x: Array, n: int) -> Array:
    s = (wide(x).max(-1, keepdims=True) - wide(x) + 16) >> 5
    return (((n - 1) * 256) // (256 >> s).sum(-1, keepdims=True)) >> s


def ita_partial_max(x: Array, group: int, n: int) -> Array:
    rows = wide(x).reshape(-1, x.shape[-1])
    result: Array = np.zeros(rows.shape, np.int64)
    for index, row in enumerate(rows):
        top, acc = -128, 0
        for start in range(0, row.size, group):
            part = row[start : start + group]
            best = int(part.max())
            shift = (best - top + 16) >> 5 if best > top else 0
            top = max(top, best)
            acc = (acc >> shift) + int((256 >> ((top - part + 16) >> 5)).sum())
        result[index] = (((n // 2 - 1) * 256) // acc) >> ((top - row + 16) >> 5)
    return result.reshape(x.shape)


def i_gelu(x: Array, b: int, one: int) -> Array:
    d = np.minimum(np.abs(wide(x)), -b) + b
    return wide(x) * ((one + np.sign(wide(x)) * (one - d * d)) >> 1)


def i_hardswish(x: Array, one_over_six: int, three: int, six: int) -> Array:
    return wide(x) * (np.clip(wide(x) + three, 0, six) * one_over_six)


def i_layer_norm(x: Array, weight: Array, bias: Array, k: int) -> Array:
    length = x.shape[-1]
    centred = wide(x) - truncated(wide(x).sum(-1, keepdims=True), length)
    squares = (centred**2).sum(-1, keepdims=True) // length + 1
    std = np.vectorize(isqrt)(squares)
    return (truncated(centred * wide(weight), std) + wide(bias)) >> k


def i_rms_norm(x: Array, weight: Array, k: int) -> Array:
    std = np.vectorize(isqrt)((wide(x) ** 2).sum(-1, keepdims=True) // x.shape[-1] + 1)
    return np.clip(truncated(wide(x) * wide(weight), std) >> k, -128, 127)


def i_no_norm(x: Array, weight: Array, bias: Array, k: int, mul: int) -> Array:
    return ((wide(x) * wide(weight) + wide(bias)) * mul) >> k


def integer_div(a: Array, b: Array, delta: int, eps: int, eta: int) -> Array:
    den = eta * wide(b) + eps
    nom = delta * eta * wide(a)
    return truncated(nom + np.where(nom >= 0, 1, -1) * (den >> 1), den)


def true_integer_div(a: Array, delta: int, eps: int, eta: int, y: int) -> Array:
    return wide(a) * (delta * eta // (y * eta + eps))


def mean(x: Array, axes: tuple[int, ...], *, keep: bool) -> Array:
    total = wide(x).sum(axes, keepdims=keep)
    count = prod(x.shape[axis] for axis in axes)
    if count & (count - 1) == 0:
        return (total + (count >> 1)) >> (count.bit_length() - 1) if count > 1 else total
    return truncated(total + np.sign(total) * (count >> 1), count)


# Training, on floats


def log_softmax(x: Array) -> Array:
    shifted = x.astype(np.float64) - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def cross_entropy_grad(log_prob: Array, labels: Array) -> Array:
    return (np.exp(log_prob) - np.eye(log_prob.shape[-1])[labels]) / log_prob.shape[0] ** 2


def softmax_grad(dy: Array, y: Array) -> Array:
    return y * (dy - (dy * y).sum(-1, keepdims=True))


def layer_norm_grad(dy: Array, x: Array, weight: Array, epsilon: float) -> Array:
    x, g = x.astype(np.float64), dy.astype(np.float64) * weight
    inverse = 1 / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    normal = (x - x.mean(-1, keepdims=True)) * inverse
    return inverse * (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))


def normal_distribution(x: Array) -> Array:
    return (1 + np.vectorize(erf)(x / 2**0.5)) / 2


def gelu_grad(dy: Array, x: Array) -> Array:
    s = 1 / (1 + np.exp(-1.702 * x.astype(np.float64)))
    return dy * (s + x * 1.702 * s * (1 - s))
