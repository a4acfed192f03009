"""Operators as layers: loops, operands, sums, bits; what has several inputs or depends on a whole axis is several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_models import Array, model, node, value, write
from tilewright.core.graph import Graph, Node
from tilewright.core.op import Example, Operator, arrays_of, call_example
from tilewright.core.workload import Layer
from tilewright.frontend import load
from tilewright.machine.library import load_array
from tilewright.ops import operators
from tilewright.price.layers import NetworkLayers, narrow, network_layers


def one_operator(op: Operator, spec: Example) -> Graph:
    """The graph of one example; arrays that it gives are constants."""
    arrays = arrays_of(spec)
    call = call_example(op, spec, arrays)
    inputs = tuple("" if array is None else f"i{index}" for index, array in enumerate(arrays))
    outputs = tuple(f"o{index}" for index in range(len(call.outputs)))
    types = {name: kind for name, kind in zip(inputs, call.inputs, strict=True) if kind is not None}
    literal = [isinstance(item, np.ndarray) for item in spec.inputs]
    constants = {n: a for n, a, fixed in zip(inputs, arrays, literal, strict=True) if fixed and a is not None}
    free = tuple(name for name in inputs if name and name not in constants)
    types |= dict(zip(outputs, call.outputs, strict=True))
    return Graph("g", free, outputs, (Node(op.name, inputs, outputs, spec.attrs, "n"),), types, constants)


@pytest.mark.parametrize("name", sorted(operators()))
def test_every_operator_reads_writes_and_works(name: str) -> None:
    op = operators()[name]
    for spec in op.examples:
        graph = one_operator(op, spec)
        found = network_layers(graph).workload.layers
        empty = any(0 in graph.types[output].shape for output in graph.outputs)
        assert bool(found) == (op.kind != "view" and not empty)
        for layer in found:
            assert layer.operations > 0
            for operand in layer.operands:
                assert 0 < layer.elements(operand) <= layer.operations
                assert operand.bits >= operand.final_bits > 0 or operand is not layer.output


def network(
    tmp_path: Path, *nodes: onnx.NodeProto, inputs: dict[str, tuple[int, ...]], **constants: Array
) -> NetworkLayers:
    made = model(nodes, [value(name, shape) for name, shape in inputs.items()], ["y"], constants=constants)
    return network_layers(load(write(tmp_path / "m.onnx", made)))


def sizes(layer: Layer) -> dict[str, int]:
    return dict(layer.dims)


def test_convolution_with_stride_padding_and_bias(tmp_path: Path) -> None:
    weight, bias = np.zeros((8, 4, 3, 3), np.float32), np.zeros(8, np.float32)
    conv = node("Conv", "x w b", "y", name="c", strides=[2, 2], pads=[1, 1, 1, 1])
    found = network(tmp_path, conv, inputs={"x": (1, 4, 12, 12)}, w=weight, b=bias)
    main, loaded = found.workload.layers
    assert sizes(main) == {"F": 8, "OH": 6, "OW": 6, "C": 4, "KH": 3, "KW": 3}
    image, weights = main.inputs
    assert (image.slot, weights.slot, weights.constant) == ("I1", "I2", True)
    assert main.elements(image) == 4 * 12 * 12  # nothing of the padding
    assert main.elements(image, {"OH": 2, "KH": 3}) == 5
    assert main.elements(main.output) == 8 * 36
    assert sizes(loaded) == {"F": 8}
    assert [n.layers for n in found.nodes] == [("c", "c B")]


def test_windows_that_do_not_overlap_are_plain(tmp_path: Path) -> None:
    pool = node("AveragePool", "x", "y", kernel_shape=[2, 2], strides=[2, 2])
    (layer,) = network(tmp_path, pool, inputs={"x": (1, 4, 8, 8)}).workload.layers
    assert layer.sums == {}
    assert sizes(layer) == {"C_OH_OW": 64, "KH_KW": 4}


def test_softmax_sums_up_first(tmp_path: Path) -> None:
    found = network(tmp_path, node("Softmax", "x", "y", name="s"), inputs={"x": (6, 10)})
    sums, applied = found.workload.layers
    assert sizes(sums) == sizes(applied) == {"D0": 6, "AXIS": 10}
    assert sums.output.dims == ("D0",)
    assert applied.inputs[1].sources == (sums.name,)


def test_attention_is_two_products_and_a_softmax() -> None:
    op = operators()["Attention"]
    found = network_layers(one_operator(op, op.examples[0])).workload.layers
    scores, _, _, result = found
    assert sizes(scores) == {"BATCH_KV": 8, "S": 3, "L": 5, "D": 8}
    assert sizes(result) == {"BATCH_KV": 8, "S": 3, "L": 5, "DV": 6}
    assert len(found) == 4


def test_views_are_read_through(tmp_path: Path) -> None:
    nodes = [
        node("Relu", "x", "a", name="first"),
        node("Reshape", "a shape", "b", name="view"),
        node("Relu", "b", "y", name="second"),
    ]
    found = network(tmp_path, *nodes, inputs={"x": (2, 6)}, shape=np.array([3, 4]))
    assert [n.layers for n in found.nodes] == [("first",), (), ("second",)]
    assert found.workload.layers[1].inputs[0].sources == ("first",)


def test_parts_of_a_whole_are_one_operand(tmp_path: Path) -> None:
    concat = node("Concat", "x z", "y", axis=1)
    (layer,) = network(tmp_path, concat, inputs={"x": (2, 3), "z": (2, 5)}).workload.layers
    assert layer.elements(layer.inputs[0]) == layer.elements(layer.output) == 16
    assert len(layer.inputs) == 1


def test_bits_are_those_of_types_and_no_more_than_the_units_take(tmp_path: Path) -> None:
    product = node("MatMul", "x w", "y")
    (layer,) = network(tmp_path, product, inputs={"x": (4, 5)}, w=np.zeros((5, 3), np.float32)).workload.layers
    assert [(o.bits, o.final_bits) for o in layer.operands] == [(32, 32)] * 3
    small = narrow(layer, load_array("tpu-like").precision)
    assert [(o.bits, o.final_bits) for o in small.operands] == [(16, 8), (8, 8), (8, 8)]
    assert narrow(small, {"I2": 4}).inputs[1].bits == 4
