"""`--allow ita-softmax`: attention with another softmax runs on ITA only if allowed, and what that changes is told."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import tilewright
from ita_networks import Made, attention, fed
from tilewright.base.dtype import INT8
from tilewright.cli.app import run
from tilewright.core.graph import Graph, TensorType
from tilewright.core.interpret import interpret
from tilewright.frontend import save
from tilewright.machine.permissions import ITA_SOFTMAX
from tilewright.machine.target import load_platform
from tilewright.passes.ita_units import ita_units


def quantised(count: int, rows: int, size: int) -> Graph:
    """Attention with a plain softmax between quantisations."""
    kind, turned = TensorType(INT8, (1, count, rows, size)), TensorType(INT8, (1, count, size, rows))
    made = Made(q=kind, k=turned, v=kind)

    def step(name: str, op: str, scale: float, zero: int, dtype: type[np.generic]) -> str:
        parameters = (made.constant(np.array(scale, np.float32)), made.constant(np.array(zero, dtype)))
        return made.add(op, (name, *parameters))

    def through(name: str, scale: float, zero: int, dtype: type[np.generic]) -> str:
        there = step(name, "QuantizeLinear", scale, zero, dtype)
        return step(there, "DequantizeLinear", scale, zero, dtype)

    q, k, v = (step(name, "DequantizeLinear", 0.005, 0, np.int8) for name in "qkv")
    scores = through(made.add("MatMul", (q, k)), 0.04, 3, np.int8)
    weights = through(made.add("Softmax", (scores,), axis=-1), 1 / 256, -128, np.int8)
    return made.graph(step(made.add("MatMul", (weights, v)), "QuantizeLinear", 0.004, 0, np.int8))


@pytest.mark.parametrize(
    ("platform", "graph", "op", "replaced"),
    [
        pytest.param("snitch-ita", quantised(1, 64, 64), "ITAAttention", "Softmax", id="a cluster"),
        pytest.param("mempool-ita", attention(64, 64, 4, 32, "iSoftmax"), "ITAHeads", "iSoftmax", id="units"),
    ],
)
def test_only_if_allowed(platform: str, graph: Graph, op: str, replaced: str) -> None:
    inputs = fed(graph)
    options = tilewright.Options(platform=platform)
    kept = tilewright.compile(graph, options)
    assert kept.change is None
    assert op not in {node.op for node in kept.plan.graph.nodes}
    options = tilewright.Options(platform=platform, allow=(ITA_SOFTMAX,))
    ran = tilewright.run(graph, options, inputs=inputs, expected=interpret(graph, inputs))
    assert ran.right, "the program computes what the network as changed says"
    assert op in {node.op for node in ran.compiled.plan.graph.nodes}
    found = ran.compiled.change
    assert found is not None
    assert (found.allowed, found.replaced, len(found.layers), found.noise) == (ITA_SOFTMAX, (replaced,), 1, False)
    assert 0 < found.worst < 40, "of 255 steps"


def test_scores_far_from_zero_keep_their_offset() -> None:
    """Without it all scores would be at the end of a byte; the units add numbers of 32 bits."""
    made = Made(q=TensorType(INT8, (1, 32, 16)), k=TensorType(INT8, (1, 16, 32)), v=TensorType(INT8, (1, 32, 16)))
    scores = made.scaled(made.add("MatMul", ("q", "k")), 80, 14, -300)
    weights = made.add("ITAPartialMax", (scores,), group_width=16, n_levels=256)
    graph = made.graph(made.scaled(made.add("MatMul", (weights, "v")), 129, 14))
    platform = replace(load_platform("mempool-ita"), allowed=(ITA_SOFTMAX,))
    changed = ita_units(graph, platform)
    assert [node.attrs["replaces"] for node in changed.nodes if node.op == "ITAHeads"] == ["ITAPartialMax"]
    rng = np.random.default_rng(0)
    q, k = (rng.integers(60, 100, shape).astype(np.int8) for shape in ((1, 32, 16), (1, 16, 32)))
    inputs = [q, k, rng.integers(-128, 128, (1, 32, 16)).astype(np.int8)]
    np.testing.assert_allclose(interpret(changed, inputs)[0], interpret(graph, inputs)[0], atol=1)


def test_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "attention.onnx"
    save(quantised(1, 64, 64), path)
    arguments = ["compile", str(path), "--platform", "snitch-ita", "--allow", ITA_SOFTMAX, "--json"]
    assert run([*arguments, "-o", str(tmp_path / "made")]) == 0
    said = json.loads(capsys.readouterr().out)["changed"]
    assert said["allowed"] == ITA_SOFTMAX
    assert said["noise"]
    page = unescape((tmp_path / "made" / "report.html").read_text())
    assert "ita-softmax: ITA's softmax for Softmax in 1 layer; outputs differ by " in page
