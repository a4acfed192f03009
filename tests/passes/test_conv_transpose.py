"""Transposed convolutions."""

from __future__ import annotations

import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.core.graph import Attr
from tilewright.passes.conv_transpose import conv_transpose


def test_conv_transpose(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[1,3,4,5]")
    y = b.op("ConvTranspose", x, b.weights(3, 2, 4, 4), b.weights(2), strides=(2, 2), pads=(1, 1, 1, 1), name="y")
    golden("passes/conv_transpose.txt", text(b.graph(y), conv_transpose))


@pytest.mark.parametrize(
    ("data", "weights", "attributes"),
    [
        ("float32[2,3,4,5]", (3, 2, 3, 3), {}),
        ("float32[1,3,4,5]", (3, 2, 3, 2), {"strides": (2, 3), "pads": (1, 0, 0, 2)}),
        ("float32[1,3,4,5]", (3, 2, 3, 3), {"strides": (2, 2), "output_padding": (1, 1), "pads": (1, 1, 1, 1)}),
        ("float32[1,4,5,5]", (4, 3, 3, 3), {"group": 2, "strides": (2, 2)}),
        ("float32[1,4,5,5]", (4, 1, 2, 2), {"group": 4, "strides": (2, 2)}),
        ("float32[1,2,4,4]", (2, 3, 3, 2), {"dilations": (2, 3), "strides": (1, 2)}),
        ("float32[1,2,4,4]", (2, 3, 2, 2), {"strides": (3, 3), "output_shape": (11, 11)}),
        ("float32[1,2,4,4]", (2, 3, 3, 3), {"strides": (2, 2), "auto_pad": "SAME_UPPER"}),
        ("float32[1,2,7]", (2, 3, 4), {"strides": (2,), "pads": (1, 1)}),
        ("float32[1,2,3,3,3]", (2, 3, 2, 2, 2), {"strides": (2, 2, 2)}),
    ],
)
def test_every_form_becomes_a_convolution(data: str, weights: tuple[int, ...], attributes: dict[str, Attr]) -> None:
    b = Builder()
    graph = b.graph(b.op("ConvTranspose", b.input("x", data), b.weights(*weights), name="y", **attributes))
    assert "ConvTranspose" not in ops(applied(graph, conv_transpose))


def test_zeros_behind_the_last_window_stay() -> None:
    b = Builder()
    x = b.input("x", "float32[1,2,4]")
    graph = b.graph(b.op("ConvTranspose", x, b.weights(2, 3, 2), strides=(2,), output_padding=(1,), name="y"))
    assert ops(applied(graph, conv_transpose)) == ["ConvTranspose"]
