"""One-dimensional windows."""

from __future__ import annotations

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.conv1d import conv1d


def test_conv1d(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,9]")
    conv = b.op("Conv", x, b.weights(4, 3, 3), b.weights(4), pads=(2, 0), strides=(2,), dilations=(1,))
    golden("passes/conv1d.txt", text(b.graph(b.op("MaxPool", conv, kernel_shape=(2,), name="y")), conv1d))


def test_automatic_padding_and_runtime_weights() -> None:
    b = Builder()
    x = b.input("x", "float32[1,4,8]")
    conv = b.op("Conv", x, b.input("w", "float32[4,2,3]"), group=2, auto_pad="SAME_LOWER", strides=(2,))
    graph = b.graph(b.op("AveragePool", conv, kernel_shape=(3,), pads=(1, 1), count_include_pad=1, name="y"))
    result = applied(graph, conv1d)
    assert all(len(result.types[n.outputs[0]].shape) == 4 for n in result.nodes if n.op in ("Conv", "AveragePool"))


def test_indices_of_a_maximum_stay() -> None:
    b = Builder()
    outputs = b.ops("MaxPool", b.input("x", "float32[1,2,8]"), names=("y", "i"), kernel_shape=(2,))
    assert ops(applied(b.graph(*outputs), conv1d)) == ["MaxPool"]


def test_empty_lists_are_as_good_as_none() -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,9]")
    graph = b.graph(b.op("Conv", x, b.weights(4, 3, 3), pads=(), strides=(), dilations=(), name="y"))
    assert applied(graph, conv1d).types["y"].shape == (2, 4, 7)
