"""Random networks against onnxruntime: what the importer and every pass leave, and what the generated C computes."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from random_graphs import Network
from tilewright.api import run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.frontend import load
from tilewright.machine.target import load_platform
from tilewright.passes import PIPELINE

INTERPRETED = 160
SEEDS_PER_TEST = 40
BUILT = 5
_runtime: Any = importlib.import_module("onnxruntime")


def specified(network: Network) -> tuple[bytes, list[Array]]:
    """The file, and the outputs by onnxruntime without optimisations, which is the standard to the letter."""
    content = network.model().SerializeToString()
    options = _runtime.SessionOptions()
    options.graph_optimization_level = _runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = _runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return content, session.run(None, network.fed)


def assert_equal(found: Sequence[Array], expected: Sequence[Array], what: str) -> None:
    for index, (left, right) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-3, err_msg=f"{what}, output {index}")


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("first", range(0, INTERPRETED, SEEDS_PER_TEST))
def test_every_pass_keeps_what_a_network_computes(first: int, tmp_path: Path) -> None:
    platform = load_platform("generic")
    for seed in range(first, first + SEEDS_PER_TEST):
        network = Network(seed)
        content, expected = specified(network)
        path = tmp_path / f"{seed}.onnx"
        path.write_bytes(content)
        graph, fed = load(path), list(network.fed.values())
        assert_equal(interpret(graph, fed), expected, f"seed {seed}, import")
        for step in PIPELINE:
            before, graph = graph, step(graph, platform)
            if graph is not before:
                assert_equal(interpret(graph, fed), expected, f"seed {seed}, {step.__name__}")


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("seed", range(1000, 1000 + BUILT))
def test_generated_code_computes_a_network(seed: int, tmp_path: Path) -> None:
    network = Network(seed, steps=30)
    content, expected = specified(network)
    path = tmp_path / "network.onnx"
    path.write_bytes(content)
    ran = run_model(path, inputs=list(network.fed.values()), flags=(*STRICT, *SANITIZE, "-O1"))
    assert_equal(ran.outputs, expected, f"seed {seed}")
