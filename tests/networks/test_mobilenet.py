"""MobileNetV2 in int8 is the network that figures are published for, and compiles to integers from end to end."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from networks.mobilenet import mobilenet_v2
from onnx_models import onnxruntime_results, write
from tilewright.api import Options, compile_model, run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions
from tilewright.report.groups import group_table
from tilewright.sim import EmulatedMachine


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


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("l1", "cores", "extra", "moment"), [(67_904, 8, 0.10, "random"), (15_336, 1, 0.40, "wait")])
def test_fused_layers_need_little_memory(
    l1: int, cores: int, extra: float, moment: Literal["wait", "random"], tmp_path: Path
) -> None:
    """Published fused schedules need 67 905 bytes with 1.10 and 15 340 bytes with 1.40 times the multiplications.

    Weights are read in place, and no memory but L1 has room for anything between layers.
    """
    ports = 144 * 144 * 3 + 1000
    sizes = Sizes({"L1": l1, "L2": 0, "L3": ports, "W": 2_000_000}, "L3", cores)
    options = Options(platform="scratchpad", sizes=sizes, planning=PlanOptions(max_extra_macs=extra))
    x, model = image(144), write(tmp_path / "network.onnx", mobilenet_v2())
    ran = run_model(model, options, inputs=[x], flags=(*STRICT, *SANITIZE, "-O1"), machine=EmulatedMachine(moment, 3))
    plan = ran.compiled.plan
    assert np.array_equal(ran.outputs[0], interpret(plan.graph, [x])[0])
    assert plan.schedule is not None
    totals = group_table(plan, plan.schedule).totals
    assert totals.used["L1"] <= l1
    assert totals.activation_peak <= l1
    assert totals.extra_macs <= extra
