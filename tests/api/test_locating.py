"""How differences are told from rounding, and which layer is named, with programs that are made up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tilewright.api.causes import pattern
from tilewright.api.differences import figures, of_rounding, usual
from tilewright.api.locating import locate_in_model, locate_in_passes, locate_in_program
from tilewright.api.observing import Observed, Shown
from tilewright.api.reproducing import alone
from tilewright.base.dtype import FLOAT32, INT8
from tilewright.core.graph import Array, Graph, Node, TensorType, attrs, type_of_array
from tilewright.core.interpret import interpret, interpret_all

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
W = np.arange(8, dtype=np.float32).reshape(4, 2)


def network(weights: Array = W) -> Graph:
    """Relu, a product and a sum with itself."""
    kinds = {"x": X.shape, "a": X.shape, "b": (3, 2), "y": (3, 2)}
    types = {name: TensorType(FLOAT32, shape) for name, shape in kinds.items()}
    nodes = (
        Node("Relu", ("x",), ("a",), name="clip"),
        Node("MatMul", ("a", "w"), ("b",), name="product"),
        Node("Add", ("b", "b"), ("y",), name="sum"),
    )
    return Graph("made", ("x",), ("y",), nodes, {**types, "w": type_of_array(weights)}, {"w": weights})


def shown(array: Array) -> Shown:
    return Shown(array.copy(), np.ones(array.shape, np.bool_))


def observed(graph: Graph) -> Observed:
    """All of a program that is right."""
    tensors = interpret_all(graph, [X])
    found = Observed(graph, (tensors["y"],), {name: shown(tensors[name]) for name in ("a", "b", "y")})
    found.read = {(i, n): shown(tensors[n]) for i, node in enumerate(graph.nodes) for n in node.inputs if n != "w"}
    return found


def test_a_right_program_has_no_fault() -> None:
    graph = network()
    found = observed(graph)
    assert locate_in_program(graph, [X], found, found.outputs) is None


def test_later_layers_are_judged_by_what_they_had() -> None:
    graph = network()
    found = observed(graph)
    found.made["b"].array[1, 0] += 3
    found.made["y"].array[1, 0] += 6
    fault = locate_in_program(graph, [X], found, (found.made["y"].array,))
    assert fault is not None
    assert (fault.layer, fault.tensor, fault.figures.index, fault.figures.wrong) == ("product", "b", (1, 0), 1)
    assert fault.figures.got - fault.figures.expected == pytest.approx(3)


def test_an_operand_that_changed_meanwhile_is_named() -> None:
    graph = network()
    found = observed(graph)
    found.read[1, "a"].array[0] = 7
    for name in ("b", "y"):
        found.made[name].array[0] = 99
    fault = locate_in_program(graph, [X], found, (found.made["y"].array,))
    assert fault is not None
    assert (fault.layer, fault.overwritten) == ("product", "a")


def test_an_output_that_does_not_arrive() -> None:
    graph = network()
    found = observed(graph)
    fault = locate_in_program(graph, [X], found, (found.outputs[0] + 1,))
    assert fault is not None
    assert (fault.layer, fault.lost) == ("sum", True)


def test_what_was_not_seen_is_left_to_the_next_layer() -> None:
    graph = network()
    found = observed(graph)
    del found.made["b"], found.read[2, "b"]
    assert locate_in_program(graph, [X], found, found.outputs) is None
    found.made["y"].array[2, 1] = 0
    fault = locate_in_program(graph, [X], found, found.outputs)
    assert fault is not None
    assert fault.layer == "sum"


def test_parts_that_are_not_known_do_not_count() -> None:
    graph = network()
    found = observed(graph)
    found.made["b"].array[0, 0] = 5e5
    found.made["b"].known[0, 0] = False
    assert locate_in_program(graph, [X], found, found.outputs) is None


def test_the_pass_that_changes_a_constant() -> None:
    source, changed = network(), network(W + 1)
    right = interpret_all(source, [X])

    def wrong(outputs: Sequence[Array]) -> bool:
        return bool(figures(outputs[0], right["y"]).wrong)

    stages = [("import", source), ("harmless", network()), ("guilty", changed), ("last", changed)]
    fault = locate_in_passes(stages, [X], right, wrong)
    assert fault is not None
    assert (fault.stage, fault.layer, fault.tensor) == ("guilty", "product", "b")
    assert locate_in_passes(stages[:2], [X], right, wrong) is None


def test_the_pass_that_leaves_a_layer_out() -> None:
    source = network()
    right = interpret_all(source, [X])
    left = source.with_nodes([source.nodes[1].rename({"a": "x"}), source.nodes[2]])
    fault = locate_in_passes([("import", source), ("guilty", left)], [X], right, lambda _outputs: True)
    assert fault is not None
    assert (fault.stage, fault.layer) == ("guilty", "clip")


def test_an_operator_that_is_declared_otherwise() -> None:
    source = network()
    theirs = interpret_all(source, [X])
    assert locate_in_model(source, theirs) == (None, ())
    theirs["b"] = theirs["b"] + 1
    theirs["y"] = theirs["b"] * 2
    fault, meant = locate_in_model(source, theirs)
    assert fault is not None
    assert (fault.where, fault.layer, meant) == ("model", "product", ())


def test_integers_stated_in_floats_are_meant_as_integers() -> None:
    kinds = {name: TensorType(INT8, (3,)) for name in ("x", "a", "y")}
    nodes = (Node("Relu", ("x",), ("a",), name="clip"), Node("Neg", ("a",), ("y",), name="sign"))
    source = Graph("integers", ("x",), ("y",), nodes, kinds)
    floats = [np.array(values, np.float32) for values in ([1, 2, 3], [1, 2, 4], [-1, -2, -4])]
    fault, meant = locate_in_model(source, dict(zip(("x", "a", "y"), floats, strict=True)))
    assert fault is None
    assert [node.label for node in meant] == ["clip"]


def test_some_layers_alone() -> None:
    graph = network()
    part = alone(graph, graph.nodes[1:2], "b")
    assert (part.inputs, part.outputs, set(part.constants)) == (("a",), ("b",), {"w"})
    tensors = interpret_all(graph, [X])
    np.testing.assert_array_equal(interpret(part, [tensors["a"]])[0], tensors["b"])


def test_figures() -> None:
    expected = np.array([[1.0, -2.0], [4.0, 0.0]], np.float32)
    found = figures(expected + np.array([[0, 0.5], [0, 1e-7]], np.float32), expected)
    assert (found.size, found.wrong, found.index, found.scale) == (4, 1, (0, 1), 4.0)
    assert (found.expected, found.got, found.worst) == (-2.0, -1.5, 0.5)
    assert found.relative == pytest.approx(0.125)
    nan = np.array([np.nan, np.inf], np.float32)
    assert figures(nan, nan).wrong == 0
    assert figures(nan, np.zeros(2, np.float32)).wrong == 2
    large = np.array([2**62], np.int64)
    assert figures(large + 1, large).wrong == 1
    empty = np.zeros((0, 2), np.float32)
    assert figures(empty, empty).size == 0


def test_integers_have_to_be_equal() -> None:
    assert not usual(np.ones(3, np.int8)).any()


def test_a_tie_may_fall_on_either_side() -> None:
    scale, zero = np.float32(0.5), np.int8(0)
    kinds = {"x": TensorType(FLOAT32, (3,)), "y": TensorType(INT8, (3,))}
    constants = {"s": np.array(scale), "z": np.array(zero)}
    node = Node("QuantizeLinear", ("x", "s", "z"), ("y",), attrs(), "quantise")
    types = {**kinds, **{name: type_of_array(array) for name, array in constants.items()}}
    graph = Graph("ties", ("x",), ("y",), (node,), types, constants)
    operands = {"x": np.array([0.25, 0.4, 0.6], np.float32), **constants}
    expected = interpret_all(graph, [operands["x"]])
    allowed = of_rounding(graph, node, operands, {"y": expected["y"]})
    assert allowed["y"].tolist() == [pytest.approx(1.0), 0.0, 0.0]


@pytest.mark.parametrize(
    ("got", "expected", "words"),
    [
        ([1, 3, 5], [1, 2, 4], "off by one"),
        ([60, 60, 3, 4, 5], [127, 127, 3, 4, 5], "should be clipped"),
        ([127, 127, 3, 4, 5], [90, 70, 3, 4, 5], "are clipped"),
        ([9, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8], "first of axis 0"),
        ([11, 12, 13], [1, 2, 3], "off by 10"),
        ([10, -4, 70, 8], [1, 2, 3, 8], "another arithmetic"),
    ],
)
def test_what_wrong_elements_have_in_common(got: list[int], expected: list[int], words: str) -> None:
    assert words in pattern(np.array(got, np.int8), np.array(expected, np.int8))


def test_infinities() -> None:
    ones = np.ones(3, np.float32)
    assert "overflow" in pattern(ones * np.inf, ones)
    assert "lost" in pattern(ones, ones * np.nan)
