"""Reading networks: order, constants, functions, branches, folding, shapes, outputs."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_models import model, node, value, write, write_apart
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.frontend import load

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def ops_of(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_nodes_may_come_in_any_order(tmp_path: Path) -> None:
    nodes = [node("Relu", "b", "y"), node("Neg", "a", "b"), node("Abs", "x", "a")]
    graph = load(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    assert ops_of(graph) == ["Abs", "Neg", "Relu"]


def test_nodes_that_nothing_needs_are_left_out(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "y"), node("NoSuchOperator", "x", "z")]
    graph = load(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    assert ops_of(graph) == ["Relu"]


def test_a_list_of_one_number_is_the_number(tmp_path: Path) -> None:
    nodes = [node("Softmax", "x", "y", axis=[0])]
    graph = load(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    assert graph.nodes[0].attrs["axis"] == 0


def test_shape_arithmetic_is_folded(tmp_path: Path) -> None:
    nodes = [
        node("Shape", "x", "shape"),
        node("Constant", "", "zero", value_int=0),
        node("Gather", "shape zero", "rows", axis=0),
        node("Unsqueeze", "rows axes", "rows1"),
        node("Constant", "", "rest", value_ints=[-1]),
        node("Concat", "rows1 rest", "wanted", axis=0),
        node("Reshape", "x wanted", "y"),
    ]
    constants = {"axes": np.array([0], np.int64)}
    built = model(nodes, [value("x", ("rows", 3, 5))], ["y"], constants=constants)
    graph = load(write(tmp_path / "m.onnx", built), dims={"rows": 4})
    assert ops_of(graph) == ["Reshape"]
    assert graph.type("y").shape == (4, 15)


def test_every_form_of_a_constant(tmp_path: Path) -> None:
    nodes = [
        node("Constant", "", "a", value=numpy_helper.from_array(np.full((1, 3), 2, np.float32))),
        node("Constant", "", "b", value_float=0.5),
        node("Constant", "", "c", value_floats=[1.0, 2.0, 3.0]),
        node("Add", "x a", "p"),
        node("Mul", "p b", "q"),
        node("Sub", "q c", "y"),
    ]
    graph = load(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    np.testing.assert_allclose(interpret(graph, [X])[0], (X + 2) * 0.5 - [1, 2, 3])


def test_memory_is_asked_for_what_a_file_has(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", (2, 3))], ["y"]))
    load(path)
    tracemalloc.start()
    try:
        load(path)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_external_data(tmp_path: Path) -> None:
    weights = np.arange(12, dtype=np.float32).reshape(3, 4)
    built = model([node("MatMul", "x w", "y")], [value("x", (2, 3))], ["y"], constants={"w": weights})
    graph = load(write_apart(tmp_path / "m.onnx", built, "m.data"))
    np.testing.assert_array_equal(interpret(graph, [X])[0], X @ weights)


def test_initialisers_that_are_inputs_too_are_constants(tmp_path: Path) -> None:
    inputs = [value("x", (2, 3)), value("w", (3,))]
    built = model([node("Add", "x w", "y")], inputs, ["y"], constants={"w": np.ones(3, np.float32)})
    assert load(write(tmp_path / "m.onnx", built)).inputs == ("x",)


def test_outputs_are_distinct_and_made_by_nodes(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "y"), node("Identity", "w", "v")]
    built = model(nodes, [value("x", (2, 3))], ["y", "x", "w", "v", "y"], constants={"w": np.ones(3, np.float32)})
    graph = load(write(tmp_path / "m.onnx", built))
    made = graph.producer()
    assert len(set(graph.outputs)) == 5
    assert all(name in made for name in graph.outputs)
    results = interpret(graph, [X])
    for result, wanted in zip(results, (X, X, np.ones(3), np.ones(3), X), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_outputs_that_nobody_reads_are_blank(tmp_path: Path) -> None:
    nodes = [node("MaxPool", "x", "y indices", kernel_shape=[2]), node("Relu", "y", "z")]
    graph = load(write(tmp_path / "m.onnx", model(nodes, [value("x", (1, 2, 6))], ["z"])))
    assert graph.nodes[0].outputs == ("y",)


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    scaled = helper.make_function(
        "mine",
        "Scaled",
        ["a"],
        ["c"],
        [
            node("Constant", "", "f"),
            node("Mul", "a f", "b"),
            node("Relu", "b", "c"),
        ],
        [helper.make_opsetid("", 20)],
        ["factor"],
    )
    reference = scaled.node[0].attribute.add(name="value_float", ref_attr_name="factor")
    reference.type = onnx.AttributeProto.FLOAT
    nodes = [node("Scaled", "x", "h", domain="mine", factor=2.0), node("Scaled", "h", "y", domain="mine", factor=-1.0)]
    built = model(nodes, [value("x", (2, 3))], ["y"], functions=[scaled], domains=["mine"])
    graph = load(write(tmp_path / "m.onnx", built))
    assert ops_of(graph) == ["Mul", "Relu", "Mul", "Relu"]
    np.testing.assert_array_equal(interpret(graph, [X - 2])[0], np.maximum(-np.maximum((X - 2) * 2, 0), 0))


def test_definitions_of_the_standard_are_inlined(tmp_path: Path) -> None:
    nodes = [node("MeanVarianceNormalization", "x", "y", axes=[0])]
    graph = load(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    wanted = (X - X.mean(0)) / (np.sqrt((X**2).mean(0) - X.mean(0) ** 2) + 1e-9)
    np.testing.assert_allclose(interpret(graph, [X])[0], wanted, rtol=1e-5)


def branches() -> dict[str, onnx.GraphProto]:
    """Branches that read `x` from around them."""
    result: dict[str, onnx.GraphProto] = {}
    for key, op in (("then_branch", "Neg"), ("else_branch", "Abs")):
        result[key] = helper.make_graph([node(op, "x", "r")], key, [], [value("r", (2, 3))])
    return result


def test_a_known_condition_takes_its_branch(tmp_path: Path) -> None:
    nodes = [node("If", "c", "y", **branches())]
    built = model(nodes, [value("x", (2, 3))], ["y"], constants={"c": np.array(False)})
    assert ops_of(load(write(tmp_path / "m.onnx", built))) == ["Abs"]


def test_an_open_condition_chooses_between_both(tmp_path: Path) -> None:
    inputs = [value("x", (2, 3)), value("c", (), TensorProto.BOOL)]
    graph = load(write(tmp_path / "m.onnx", model([node("If", "c", "y", **branches())], inputs, ["y"])))
    assert ops_of(graph) == ["Neg", "Abs", "Where"]
    np.testing.assert_array_equal(interpret(graph, [X, np.array(True)])[0], -X)


def test_unnamed_extents_are_called_by_input_and_axis(tmp_path: Path) -> None:
    built = model([node("Relu", "x", "y")], [value("x", (None, 3))], ["y"])
    assert load(write(tmp_path / "m.onnx", built), dims={"x:0": 7}).type("y").shape == (7, 3)


def test_samples_fix_open_extents_and_empty_tensors_pass(tmp_path: Path) -> None:
    nodes = [node("Concat", "cache x", "y", axis=0)]
    built = model(nodes, [value("cache", ("past", 3)), value("x", (2, 3))], ["y"])
    samples = [np.zeros((0, 3), np.float32), X]
    graph = load(write(tmp_path / "m.onnx", built), samples=samples)
    np.testing.assert_array_equal(interpret(graph, samples)[0], X)


def test_compile_time_inputs_take_given_values(tmp_path: Path) -> None:
    inputs = [value("shape", (2,), TensorProto.INT64), value("x", (2, 3))]
    path = write(tmp_path / "m.onnx", model([node("Reshape", "x shape", "y")], inputs, ["y"]))
    wanted = np.array([3, 2], np.int64)
    for graph in (load(path, constants={"shape": wanted}), load(path, samples=[wanted, X])):
        assert graph.inputs == ("shape", "x")
        assert "shape" not in graph.users()
        np.testing.assert_array_equal(interpret(graph, [wanted, X])[0], X.reshape(3, 2))


def test_pinned_types_that_the_network_does_not_mean_are_cast(tmp_path: Path) -> None:
    built = model([node("Gather", "w i", "y")], [value("i", (2,), TensorProto.INT64)], ["y"], constants={"w": X.T})
    graph = load(write(tmp_path / "m.onnx", built), input_types={"i": "uint8"})
    assert str(graph.type("i")) == "uint8[2]"
    np.testing.assert_array_equal(interpret(graph, [np.array([2, 0])])[0], X.T[[2, 0]])


def test_large_results_are_not_folded(tmp_path: Path) -> None:
    nodes = [node("ConstantOfShape", "s", "big"), node("Add", "x big", "y")]
    constants = {"s": np.array([5000, 5000], np.int64)}
    graph = load(write(tmp_path / "m.onnx", model(nodes, [value("x", (1,))], ["y"], constants=constants)))
    assert ops_of(graph) == ["Expand", "Add"]


def test_constants_of_four_bits(tmp_path: Path) -> None:
    values = np.array([[-8, 7, 0], [3, -1, 5]], np.int8)
    nodes = [node("DequantizeLinear", "w scale", "d"), node("Add", "x d", "y")]
    built = model(nodes, [value("x", (2, 3))], ["y"], constants={"scale": np.array(0.5, np.float32)}, opset=21)
    built.graph.initializer.append(numpy_helper.from_array(values.astype(ml_dtypes.int4), "w"))
    (result,) = interpret(load(write(tmp_path / "m.onnx", built)), [X])
    np.testing.assert_array_equal(result, X + values * np.float32(0.5))
