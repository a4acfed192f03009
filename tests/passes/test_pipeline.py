"""The whole pipeline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passes.build import Builder, applied, ops, platform
from support import Case
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.frontend import load
from tilewright.passes import PIPELINE, run_pipeline


def _network() -> Graph:
    b = Builder()
    x = b.input("x", "float32[1,3,8,8]")
    hidden = b.op("Relu", b.op("Conv", x, b.weights(8, 3, 3, 3), pads=(1, 1, 1, 1)))
    flat = b.op("Flatten", b.op("AveragePool", hidden, kernel_shape=(2, 2), strides=(2, 2)))
    return b.graph(b.op("Softmax", b.op("Gemm", flat, b.weights(10, 128), b.weights(10), transB=1), name="y"))


def test_the_meaning_stays_and_every_pass_is_observed() -> None:
    seen: list[str] = []
    graph = applied(_network(), lambda g, p: run_pipeline(g, p, lambda name, _: seen.append(name)))
    assert seen == [step.__name__ for step in PIPELINE]
    assert "Transpose" in ops(graph)
    assert ops(graph).count("Transpose") == 1


def test_twice_gives_the_same() -> None:
    graph, machine = _network(), platform()
    assert str(run_pipeline(graph, machine)) == str(run_pipeline(graph, machine))


def _inputs(network: Path) -> list[Array]:
    """The arrays of a case in graph order; extra ones come last."""
    beside = network.with_name("inputs.npz") if network.name == "network.onnx" else network.with_suffix(".npz")
    with np.load(beside) as arrays:
        return [arrays[name] for name in arrays.files if "output" not in name]


@pytest.mark.cases("standard_networks", "deeploy/Models")
def test_networks_compute_the_same(case: Case) -> None:
    graph = load(case.network)
    result = run_pipeline(graph, platform())
    inputs = _inputs(case.network)[: len(graph.inputs)]
    for before, after in zip(interpret(graph, inputs), interpret(result, inputs), strict=True):
        if before.dtype.kind == "f":
            np.testing.assert_allclose(after, before, rtol=1e-3, atol=1e-4)
        else:
            np.testing.assert_array_equal(after, before)
