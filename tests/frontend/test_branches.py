"""If whose condition is known at run time only: both branches are computed and one is chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_models import model, node, onnxruntime_results, value, write
from tilewright.api import Options, run_model
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.frontend import load

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def branch(name: str, nodes: list[onnx.NodeProto], outputs: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [value(output, None) for output in outputs.split()])


def network(
    outputs: str, then: onnx.GraphProto, other: onnx.GraphProto, condition: tuple[int, ...], unread: str = ""
) -> onnx.ModelProto:
    """`rate` decides between two branches that read `x` from around them."""
    nodes = [
        node("Equal", "rate known", "c"),
        node("If", "c", outputs, name="choice", then_branch=then, else_branch=other),
    ]
    results = [name for name in outputs.split() if name != unread]
    inputs = [value("x", (2, 3)), value("rate", condition, TensorProto.INT64)]
    return model(nodes, inputs, results, constants={"known": np.array(16, np.int64)})


def assert_right(content: onnx.ModelProto, shape: tuple[int, ...], folder: Path) -> None:
    for rate in (16, 8):
        inputs: list[Array] = [X, np.full(shape, rate, np.int64)]
        expected = onnxruntime_results(content, dict(zip(("x", "rate"), inputs, strict=True)))
        path = write(folder / "network.onnx", content)
        assert run_model(path, Options(), inputs=inputs, expected=expected, rule="official").right
        assert load(path).inputs == ("x", "rate")


@pytest.mark.parametrize("shape", [(), (1,)])
def test_results_of_one_element_keep_their_shape(shape: tuple[int, ...], tmp_path: Path) -> None:
    then = branch("then", [node("ReduceSum", "x", "s", keepdims=0), node("Neg", "x", "n")], "s n")
    other = branch("else", [node("ReduceMax", "x", "s", keepdims=0), node("Abs", "x", "n")], "s n")
    assert_right(network("y z", then, other, shape), shape, tmp_path)


@pytest.mark.parametrize("unread", ["", "w"])
def test_a_branch_may_give_one_tensor_twice_and_others_not_at_all(unread: str, tmp_path: Path) -> None:
    """By numpy, because onnxruntime leaves one of two equal results unset."""
    then = branch("then", [node("Neg", "x", "n"), node("Floor", "x", "f")], "n n f")
    other = branch("else", [node("Abs", "x", "n"), node("Relu", "x", "r")], "n r r")
    path = write(tmp_path / "network.onnx", network("y z w", then, other, (), unread))
    positive = np.maximum(X, 0)
    for rate, expected in ((16, [-X, -X, X]), (8, [np.abs(X), positive, positive])):
        found = interpret(load(path), [X, np.array(rate)])
        np.testing.assert_array_equal(found, expected[: len(found)])
        assert len(found) == (2 if unread else 3)


def test_a_branch_that_is_wrong_for_the_shapes_needs_the_condition(tmp_path: Path) -> None:
    then = branch("then", [node("Neg", "x", "n")], "n")
    other = branch("else", [node("MatMul", "x x", "n")], "n")
    path = write(tmp_path / "network.onnx", network("y", then, other, ()))
    with pytest.raises(TilewrightError) as caught:
        load(path)
    assert caught.value.code == "not-constant"
    assert "the else branch of If 'choice' cannot be computed" in caught.value.what
    assert caught.value.help == "state its value: --constant rate=FILE.npy"
    ran = run_model(path, Options(constants={"rate": np.array(16, np.int64)}), inputs=[X, np.array(16)], expected=[-X])
    assert ran.right


def test_branches_of_different_shapes_are_refused(tmp_path: Path) -> None:
    then = branch("then", [node("Neg", "x", "n")], "n")
    other = branch("else", [node("ReduceMax", "x", "n", keepdims=0)], "n")
    with pytest.raises(TilewrightError, match="its branches give different types") as caught:
        load(write(tmp_path / "network.onnx", network("y", then, other, ())))
    assert caught.value.code == "unsupported-operator"
