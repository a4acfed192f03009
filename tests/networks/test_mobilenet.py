"""MobileNetV2 in int8 is the network that figures are published for, and compiles to integers from end to end."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np

from networks.mobilenet import mobilenet_v2
from onnx_models import onnxruntime_results, write
from tilewright.api import compile_model, run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret


def image(size: int) -> Array:
    noise = np.random.default_rng(5).normal(size=(1, size, size, 3))
    return np.clip(np.rint(noise * 32), -128, 127).astype(np.int8)


def multiplications(graph: Graph) -> int:
    """Of convolutions and products, whose weights hold every factor of one result channel once."""
    layers = [node for node in graph.nodes if node.op in ("Conv", "MatMul")]
    sizes = [(graph.types[node.outputs[0]].shape, graph.types[node.inputs[1]].shape) for node in layers]
    return sum(prod(made[:-1]) * prod(weights) for made, weights in sizes)


def test_the_network_is_the_published_one(tmp_path: Path) -> None:
    compiled = compile_model(write(tmp_path / "network.onnx", mobilenet_v2()))
    graph = compiled.plan.graph
    assert multiplications(graph) == 26_660_752
    assert len([node for node in graph.nodes if node.op == "Conv"]) == 52
    wide = max(graph.types[name].size for node in graph.nodes for name in node.outputs)
    assert wide == 72 * 72 * 48
    assert compiled.program.arena_bytes == 72 * 72 * 48 + 36 * 36 * 48


def test_every_layer_is_one_integer_node(tmp_path: Path) -> None:
    graph = compile_model(write(tmp_path / "network.onnx", mobilenet_v2(0.1, 64, 10))).plan.graph
    assert {str(graph.types[name].dtype) for node in graph.nodes for name in node.outputs} == {"int8"}
    assert sorted({node.op for node in graph.nodes}) == ["AveragePool", "Conv", "MatMul", "Reshape"]
    assert sum("Add" in [step.op for step in node.epilogue] for node in graph.nodes if node.op == "Conv") == 11


def test_results_are_those_of_other_runtimes(tmp_path: Path) -> None:
    model, x = mobilenet_v2(0.1, 32, 10), image(32)
    ran = run_model(write(tmp_path / "network.onnx", model), inputs=[x], flags=(*STRICT, *SANITIZE, "-O1"))
    (result,) = ran.outputs
    assert np.array_equal(result, interpret(ran.compiled.plan.graph, [x])[0])
    (other,) = onnxruntime_results(model, {"x": x})
    assert np.max(np.abs(result.astype(int) - other)) <= 1
    assert result.std() > 20
