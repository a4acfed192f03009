"""Work grows with the network: what is done for twice as many nodes is counted, not timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support import assert_linear, lines_run
from tilewright import compile
from tilewright.report import render_report


def _model(path: Path, inputs: list[str], output: str, nodes: list[onnx.NodeProto], weights: list[str]) -> Path:
    random = np.random.default_rng(0)
    graph = helper.make_graph(
        nodes,
        "growing",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 4)) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(random.standard_normal((4, 4)).astype(np.float32), name) for name in weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def chain(path: Path, count: int) -> Path:
    """Layers that do not fuse, one behind the other."""
    nodes: list[onnx.NodeProto] = []
    for i in range(0, count, 2):
        nodes.append(helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]))
        nodes.append(helper.make_node("Softmax", [f"t{i + 1}"], [f"t{i + 2}"]))
    return _model(path, ["t0"], f"t{count}", nodes, [f"w{i}" for i in range(0, count, 2)])


def pointwise(path: Path, count: int) -> Path:
    """Element-wise operators, which become one layer."""
    nodes: list[onnx.NodeProto] = []
    for i in range(0, count, 2):
        nodes.append(helper.make_node("Mul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]))
        nodes.append(helper.make_node("Tanh", [f"t{i + 1}"], [f"t{i + 2}"]))
    return _model(path, ["t0"], f"t{count}", nodes, [f"w{i}" for i in range(0, count, 2)])


def products(path: Path, count: int) -> Path:
    """Products of products, each of which is the square of the one before."""
    nodes = [helper.make_node("Mul", [f"t{i}", f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
    nodes.append(helper.make_node("Tanh", [f"t{count}"], ["out"]))
    return _model(path, ["t0"], "out", nodes, [])


def residual(path: Path, count: int) -> Path:
    """Layers with additions around them."""
    nodes: list[onnx.NodeProto] = []
    for i in range(0, count, 2):
        nodes.append(helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]))
        nodes.append(helper.make_node("Add", [f"t{i}", f"t{i + 1}"], [f"t{i + 2}"]))
    return _model(path, ["t0"], f"t{count}", nodes, [f"w{i}" for i in range(0, count, 2)])


def total(path: Path, count: int) -> Path:
    """One operator of many inputs."""
    names = [f"x{i}" for i in range(count)]
    return _model(path, names, "out", [helper.make_node("Sum", names, ["out"])], [])


def joined(path: Path, count: int) -> Path:
    """Many inputs behind each other."""
    names = [f"x{i}" for i in range(count)]
    return _model(path, names, "out", [helper.make_node("Concat", names, ["out"], axis=1)], [])


def compiled(model: Path) -> None:
    made = compile(model)
    render_report(made.plan, made.program, title="growing")


@pytest.mark.parametrize("network", [chain, pointwise, products, residual, total, joined])
def test_twice_the_nodes_take_twice_the_work(network: Callable[[Path, int], Path], tmp_path: Path) -> None:
    compiled(network(tmp_path / "first.onnx", 4))  # what is loaded once is not counted
    assert_linear([lines_run(lambda n=n: compiled(network(tmp_path / f"{n}.onnx", n))) for n in (50, 100, 200)])
