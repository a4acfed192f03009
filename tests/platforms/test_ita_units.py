"""Attention on the units of ITA in MemPool: exact, without findings of the checks, and all heads on the units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from examples.encoders import Network

import tilewright
from ita_networks import attention, fed, mhsa
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.frontend import load


@pytest.mark.parametrize(
    ("graph", "rounds"),
    [
        pytest.param(lambda: attention(32, 32, 4, 16, "ITAPartialMax"), 1, id="four heads"),
        pytest.param(lambda: attention(48, 72, 5, 24, "ITAPartialMax", add=3), 2, id="padded, in two rounds"),
        pytest.param(lambda: attention(32, 64, 2, 32, "ITAPartialMax", values=480), 1, id="values from elsewhere"),
        pytest.param(lambda: mhsa(32, 48, 3, 16, term_bits=10), 1, id="MHSA"),
    ],
)
def test_on_the_units(graph: Callable[[], Graph], rounds: int) -> None:
    made = graph()
    inputs = fed(made)
    ran = tilewright.run(
        made, tilewright.Options(platform="mempool-ita"), inputs=inputs, expected=interpret(made, inputs)
    )
    assert ran.right
    plan = ran.compiled.plan
    engines = [choice.engine for node, choice in zip(plan.graph.nodes, plan.choices, strict=True) if _heads(node.op)]
    assert Counter(engines) == {"ita": rounds}


def test_a_layer_of_an_encoder(tmp_path: Path) -> None:
    """Attention on the units, the rest on the cores, from a file."""
    network = Network(32, 64, 0, "ITAPartialMax")
    attended = network.residual("input", network.attention("input", "input", (64, 64), 4, 16))
    path, x = tmp_path / "layer.onnx", network.example()
    path.write_bytes(network.model(network.feed_forward(attended, 64, 128)).SerializeToString())
    expected = interpret(load(path, samples=[x]), [x])
    ran = tilewright.run(path, tilewright.Options(platform="mempool-ita"), inputs=[x], expected=expected)
    assert ran.right
    plan = ran.compiled.plan
    engines = Counter(choice.engine for choice in plan.choices)
    assert engines["ita"] == 1
    assert sum(node.op == "MatMul" for node in plan.graph.nodes) == 3, "projection back and feed-forward"


def _heads(op: str) -> bool:
    return op in ("ITAHeads", "ITAPartialMax")
