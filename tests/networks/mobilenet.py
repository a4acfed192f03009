"""MobileNetV2 in int8: random weights, its scales taken from a few random images that run through it as it is built.

The network is what a quantiser leaves of a trained one: batch normalisation folded into convolutions, one weight scale
per channel, activations and sums of residual blocks in int8, images `[1, size, size, 3]` in and scores out in int8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_networks import Model
from tilewright.core.graph import Array

BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, repeats and first stride of the inverted residual blocks."""
FIRST, LAST = 32, 1280
CEILING = 6.0
IMAGES = 4
"""How many images the scales are taken from."""


def divisible(channels: float, by: int = 8) -> int:
    """The nearest multiple, and not less than 90 percent."""
    rounded = max(by, int(channels + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * channels else rounded


def mobilenet_v2(width: float = 0.35, size: int = 144, classes: int = 1000, seed: int = 0) -> onnx.ModelProto:
    """The network of this width multiplier for square images."""
    build = _Build(size, seed)
    x = build.conv(build.images, divisible(FIRST * width), 3, stride=2, clipped=True)
    for expansion, channels, repeats, stride in BLOCKS:
        for index in range(repeats):
            x = build.block(x, expansion, divisible(channels * width), stride if index == 0 else 1)
    x = build.conv(x, LAST if width < 1 else divisible(LAST * width), 1, clipped=True)
    return build.model(build.scores(x, classes))


@dataclass(frozen=True)
class _Tensor:
    """A dequantised tensor of the network, with what it holds for the images."""

    name: str
    step: float
    values: Array

    @property
    def channels(self) -> int:
        return self.values.shape[1]


class _Build:
    def __init__(self, size: int, seed: int) -> None:
        self._m = Model()
        self._rng = np.random.default_rng(seed)
        self._m.input("x", np.zeros((1, size, size, 3), np.int8))
        step = np.float32(1 / 32)
        values = np.clip(np.rint(self._rng.normal(size=(IMAGES, 3, size, size)) / step), -128, 127).astype(np.float32)
        real = self._m.op("DequantizeLinear", "x", np.asarray(step), np.asarray(0, np.int8))
        self.images = _Tensor(self._m.op("Transpose", real, perm=[0, 3, 1, 2]), float(step), values * step)

    def block(self, x: _Tensor, expansion: int, channels: int, stride: int) -> _Tensor:
        """An inverted residual block."""
        wide = self.conv(x, x.channels * expansion, 1, clipped=True) if expansion > 1 else x
        deep = self.conv(wide, wide.channels, 3, stride=stride, depthwise=True, clipped=True)
        thin = self.conv(deep, channels, 1)
        if stride > 1 or channels != x.channels:
            return thin
        return self._quantised(self._m.op("Add", x.name, thin.name), x.values + thin.values)

    def conv(
        self, x: _Tensor, channels: int, kernel: int, *, stride: int = 1, depthwise: bool = False, clipped: bool = False
    ) -> _Tensor:
        """A convolution normalised for every channel; where clipped, what it adds keeps most results above zero."""
        weights = self._rng.normal(size=(channels, 1 if depthwise else x.channels, kernel, kernel)).astype(np.float32)
        raw = _convolved(x.values, weights, stride, depthwise=depthwise)
        lanes = (0, 2, 3)
        scale = self._rng.uniform(0.8, 1.6, channels) / np.sqrt(raw.var(axis=lanes) + 1e-3)
        shift = self._rng.normal(1.5 if clipped else 0.0, 0.5, channels) - scale * raw.mean(axis=lanes)
        made = self._m.op(
            "Conv",
            x.name,
            *self._parameters(x, weights * scale.reshape(-1, 1, 1, 1), shift),
            kernel_shape=[kernel, kernel],
            pads=[kernel // 2] * 4,
            strides=[stride, stride],
            group=channels if depthwise else 1,
        )
        values = raw * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)
        if not clipped:
            return self._quantised(made, values)
        made = self._m.op("Clip", made, np.asarray(0, np.float32), np.asarray(CEILING, np.float32))
        return self._quantised(made, np.clip(values, 0, CEILING), (0, CEILING))

    def scores(self, x: _Tensor, classes: int) -> str:
        """The int8 scores of all classes: mean over the image, one linear layer."""
        mean = x.values.mean(axis=(2, 3), keepdims=True)
        pool = self._m.op("AveragePool", x.name, kernel_shape=list(x.values.shape[2:]))
        pooled = self._quantised(pool, mean, (0, float(mean.max())))
        weights = self._rng.normal(size=(classes, x.channels)) * x.channels**-0.5
        flat = self._m.op("Flatten", pooled.name)
        bias = self._rng.normal(size=classes) * 0.1
        made = self._m.op("Gemm", flat, *self._parameters(pooled, weights, bias), transB=1)
        values = pooled.values.reshape(IMAGES, -1) @ weights.T + bias
        return self._m.op("QuantizeLinear", made, *_scheme(values.min(), values.max()))

    def model(self, output: str) -> onnx.ModelProto:
        """The network; its single output is there by the name `scores`."""
        model, _ = self._m.network(output, types=[TensorProto.INT8])
        model.graph.node.append(helper.make_node("Identity", [output], ["scores"]))
        model.graph.output[0].name = "scores"
        return model

    def _parameters(self, x: _Tensor, weights: Array, bias: Array) -> tuple[str, str]:
        """Weights in int8 with one scale per channel, and the bias in units of the accumulator."""
        steps = (np.abs(weights).max(axis=tuple(range(1, weights.ndim))) / 127).astype(np.float32)
        lanes = steps.reshape(-1, *(1 for _ in weights.shape[1:]))
        units = steps * np.float32(x.step)
        stored = np.rint(weights / lanes).astype(np.int8)
        real = self._m.op("DequantizeLinear", stored, steps, np.zeros(len(steps), np.int8), axis=0)
        return real, self._m.op("DequantizeLinear", np.rint(bias / units).astype(np.int32), units, axis=0)

    def _quantised(self, name: str, values: Array, span: tuple[float, float] | None = None) -> _Tensor:
        step, zero = _scheme(*(span or (values.min(), values.max())))
        stored = np.clip(np.rint(values / step) + zero, -128, 127).astype(np.float32)
        made = self._m.qdq(name, float(step), int(zero))
        return _Tensor(made, float(step), (stored - zero) * step)


def _scheme(low: float, high: float) -> tuple[Array, Array]:
    """Scale and zero point that spread a range over int8."""
    step = (max(high, 0.0) - min(low, 0.0)) / 255
    return np.asarray(step, np.float32), np.asarray(np.rint(-128 - min(low, 0.0) / step), np.int8)


def _convolved(x: Array, weights: Array, stride: int, *, depthwise: bool) -> Array:
    """A convolution of `[N, C, H, W]` that keeps the size but for the stride."""
    kernel = weights.shape[-1]
    around = (kernel // 2, kernel // 2)
    padded = np.pad(x, ((0, 0), (0, 0), around, around))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    if depthwise:
        return np.einsum("nchwij,cij->nchw", windows, weights[:, 0])
    return np.moveaxis(np.tensordot(windows, weights, axes=((1, 4, 5), (1, 2, 3))), -1, 1)
