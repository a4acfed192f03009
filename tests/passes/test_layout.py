"""Channels last."""

from __future__ import annotations

from msgspec.structs import replace

from passes.build import Builder, applied, ops, platform, text
from support import Golden
from tilewright.passes.layout import layout


def test_layout(golden: Golden) -> None:
    b = Builder()
    conv = b.op("Conv", b.input("x", "float32[1,2,6,7]"), b.weights(4, 1, 3, 3), b.weights(4), group=2, strides=(2, 1))
    golden("passes/layout.txt", text(b.graph(b.op("GlobalAveragePool", conv, name="y")), layout))


def test_the_platform_decides() -> None:
    b = Builder()
    graph = b.graph(b.op("Conv", b.input("x", "float32[1,2,6,7]"), b.weights(4, 2, 3, 3), name="y"))
    assert layout(graph, replace(platform(), channels_last=False)) is graph


def test_three_spatial_axes_stay() -> None:
    b = Builder()
    graph = b.graph(b.op("Conv", b.input("x", "float32[1,2,4,4,4]"), b.weights(4, 2, 3, 3, 3), name="y"))
    assert ops(applied(graph, layout)) == ["Conv"]


def test_a_residual_input_has_channels_too() -> None:
    b = Builder()
    x, z = b.input("x", "float32[1,2,6,7]"), b.input("z", "float32[1,4,4,5]")
    graph = b.graph(b.op("FusedConv", x, b.weights(4, 2, 3, 3), "", z, activation="Relu", name="y"))
    assert ops(applied(graph, layout)) == ["Transpose", "Transpose", "FusedConv", "Transpose"]
