"""Biases become part of what a requantisation adds."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder, applied
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.passes.biases import biases

RNG = np.random.default_rng(3)
BIAS: Array = RNG.integers(-1000, 1000, 4).astype(np.int32)
FACTOR: Array = np.asarray([5, -3, 7, 1], np.int32)
OFFSET: Array = np.asarray([9, 0, -4, 2], np.int32)


def operators(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def same(graph: Graph) -> Graph:
    """The graph after the pass, which computes what it did before."""
    changed = applied(graph, biases)
    inputs = [RNG.integers(-128, 128, graph.types[name].shape).astype(np.int8) for name in graph.inputs]
    for before, after in zip(interpret(graph, inputs), interpret(changed, inputs), strict=True):
        np.testing.assert_array_equal(before, after)
    return changed


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("scales", [(FACTOR, OFFSET), (FACTOR[:1], OFFSET), (FACTOR[:1], OFFSET[:1])])
def test_of_convolutions(last: int, scales: tuple[Array, Array]) -> None:
    b = Builder()
    x = b.input("x", "int8[1,5,5,3]" if last else "int8[1,3,5,5]")
    weights = RNG.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8)
    shape = (-1,) if last else (-1, 1, 1)
    sums = b.op("Conv", x, weights, BIAS, channels_last=last)
    graph = same(b.graph(b.op("RequantShift", sums, *(scale.reshape(shape) for scale in scales), div=256)))
    conv, requantised = graph.nodes
    assert len(conv.inputs) == 2
    added = graph.constants[requantised.inputs[2]].reshape(-1)
    np.testing.assert_array_equal(added, BIAS * scales[0] + scales[1])


def test_of_products() -> None:
    b = Builder()
    product = b.op("MatMul", b.input("x", "int8[5,6]"), RNG.integers(-128, 128, (6, 4)).astype(np.int8))
    graph = same(b.graph(b.op("RequantShift", b.op("Add", product, BIAS), FACTOR, OFFSET, div=64)))
    assert operators(graph) == ["MatMul", "RequantShift"]


def kept(bias: Array, factor: Array, *, half_to_even: int = 0, x_limit: int = 0) -> bool:
    b = Builder()
    weights = RNG.integers(-128, 128, (4, 3, 1, 1)).astype(np.int8)
    sums = b.op("Conv", b.input("x", "int8[1,5,5,3]"), weights, bias, channels_last=1)
    scaled = b.op("RequantShift", sums, factor, OFFSET, div=256, half_to_even=half_to_even, x_limit=x_limit)
    graph = applied(b.graph(scaled), biases)
    return len(graph.nodes[0].inputs) == 3


def test_where_that_is_another_number_or_slower() -> None:
    assert not kept(BIAS, FACTOR)
    assert kept(BIAS, FACTOR, half_to_even=1)
    assert kept(BIAS, FACTOR, x_limit=1000)
    assert kept(BIAS + (1 << 29), FACTOR)  # the product needs more than 32 bits
    assert kept(BIAS + ((1 << 31) - 2000), FACTOR // 8)  # sums may wrap


def test_of_sums_that_others_read() -> None:
    b = Builder()
    weights = RNG.integers(-128, 128, (4, 3, 1, 1)).astype(np.int8)
    sums = b.op("Conv", b.input("x", "int8[1,5,5,3]"), weights, BIAS, channels_last=1)
    scaled = b.op("RequantShift", sums, FACTOR, OFFSET, div=256)
    assert len(same(b.graph(sums, scaled)).nodes[0].inputs) == 3
