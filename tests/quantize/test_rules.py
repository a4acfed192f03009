"""Every integer rule on a small network: which operators it gives, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import noise, platform
from quantize.networks import CASES, Qdq, conv, gemm, padded
from support import Golden
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.core.text import print_graph
from tilewright.quantize import quantisation_step, to_integers


def integers(graph: Graph) -> Graph:
    return to_integers(graph, platform())


def assert_same(graph: Graph, result: Graph, *, exact: bool = False) -> None:
    """Integers are equal, but for single steps where a tie falls on the other side."""
    for seed in range(4):
        inputs = [2 * array for array in noise(graph, seed)]
        for expected, found in zip(interpret(graph, inputs), interpret(result, inputs), strict=True):
            assert expected.dtype == found.dtype
            assert expected.shape == found.shape
            difference = np.abs(expected.astype(np.float64) - found.astype(np.float64))
            assert np.max(difference) <= (0 if exact else 1)
            assert np.mean(difference != 0) <= 0.02


@pytest.mark.parametrize("name", CASES)
def test_the_integer_form(name: str, golden: Golden) -> None:
    case = CASES[name]
    graph = case.build()
    result = integers(graph)
    starts = {
        node.outputs[0] for node in result.nodes if node.op == "QuantizeLinear" and node.inputs[0] in graph.inputs
    }
    inner = [node for node in result.nodes if node.outputs[0] not in starts and node.op != "Identity"]
    assert tuple(node.op for node in inner) == case.ops
    assert_same(graph, result)
    golden(f"quantize/{name}.txt", print_graph(result))


@pytest.mark.parametrize("name", ["table", "chain", "hard_swish", "relu", "concat", "moves", "pad", "requantised"])
def test_tables_and_moves_are_exact(name: str) -> None:
    graph = CASES[name].build()
    assert_same(graph, integers(graph), exact=True)


def test_a_mean_over_named_axes_and_over_none() -> None:
    for axes, attributes in (([1], {"keepdims": 0}), ([0, 2], {}), ([], {"noop_with_empty_axes": 1})):
        b = Qdq()
        x = b.real(2, 3, 4)
        y = b.op("ReduceMean", x, np.array(axes, np.int64), name="", **attributes)
        graph = b.graph(b.quantised(y))
        result = integers(graph)
        assert "ReduceMean" not in [node.op for node in result.nodes]
        assert_same(graph, result)


def test_channels_are_not_taken_for_columns_of_the_same_number() -> None:
    """Six filters on six columns: the scale of each filter belongs to the channel axis."""
    graph = conv()()
    assert graph.types[graph.outputs[0]].shape == (1, 6, 6, 6)
    assert_same(graph, integers(graph))


def test_a_bias_per_row_is_no_bias_per_column() -> None:
    graph = gemm(turned=False, bias=np.linspace(-2, 2, 5, dtype=np.float32).reshape(5, 1))()
    assert_same(graph, integers(graph))


@pytest.mark.parametrize("fill", [0.013, float("-inf")])
def test_a_fill_that_is_no_integer_of_the_scheme_stays_real(fill: float) -> None:
    graph = padded(fill)()
    result = integers(graph)
    assert [node.op for node in result.nodes][-3:] == ["DequantizeLinear", "Pad", "QuantizeLinear"]
    assert_same(graph, result)


def test_a_result_that_is_needed_as_a_real_number_is_dequantised() -> None:
    b = Qdq()
    x = b.real(1, 4, 6, 6)
    y = b.op("Conv", x, b.stored(6, 4, 1, 1))
    graph = b.graph(b.around(y, "int8", 0.1, 0), b.op("Erf", y))
    result = integers(graph)
    assert_same(
        graph.with_nodes(graph.nodes, outputs=graph.outputs[1:]),
        result.with_nodes(result.nodes, outputs=result.outputs[1:]),
    )
    assert quantisation_step(result, result.outputs[0]) == pytest.approx(0.1)
    assert quantisation_step(result, result.outputs[1]) == 0


def test_sixteen_bits_stay_as_they_are() -> None:
    b = Qdq()
    x = b.op("Tanh", b.real(2, 8))
    wide = b.around(x, "int16", 1e-4, 0)
    graph = b.graph(b.quantised(b.op("Mul", wide, wide)), b.op("Neg", wide))
    result = integers(graph)
    first, second = (
        (graph.with_nodes(g.nodes, types=g.types, constants=g.constants, outputs=g.outputs[:1]), g)
        for g in (graph, result)
    )
    assert_same(first[0], second[0])
    inputs = noise(graph)
    np.testing.assert_allclose(interpret(result, inputs)[1], interpret(graph, inputs)[1], atol=1e-6)


def test_scales_that_are_no_constants_stay_as_they_are() -> None:
    b = Qdq()
    x = b.real(2, 8)
    scale = b.input("scale", "float32[]")
    y = b.op("DequantizeLinear", b.op("QuantizeLinear", b.op("Tanh", x), scale), scale)
    graph = b.graph(b.op("Neg", y))
    result = integers(graph)
    inputs = [noise(graph)[0], np.array(0.01, np.float32)]
    np.testing.assert_array_equal(interpret(result, inputs)[0], interpret(graph, inputs)[0])


def test_networks_without_quantisation_are_left_alone() -> None:
    b = Qdq()
    graph = b.graph(b.op("Relu", b.input("x", "float32[2]")))
    assert integers(graph) is graph


def test_an_input_that_leaves_as_it_came() -> None:
    b = Qdq()
    x = b.input("x", "uint8[4]")
    real = b.dequantised(x, 0.5, 3, "uint8")
    graph = b.graph(b.quantised(real, "uint8", 0.5, 3), b.op("Reshape", real, [2, 2]))
    assert_same(graph, integers(graph), exact=True)


def test_scales_of_an_axis_without_elements_are_no_scheme() -> None:
    b = Qdq()
    x = b.input("x", "int8[3,0]")
    graph = b.graph(b.op("DequantizeLinear", x, np.zeros(0, np.float32), axis=1))
    assert interpret(integers(graph), noise(graph))[0].shape == (3, 0)
