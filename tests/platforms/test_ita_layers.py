"""Layers that a network says in ITA's arithmetic, on a cluster of Snitch's with ITA: exact, and on the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

import tilewright
from ita_networks import attention, fed, layers, mhsa, residual
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret


@pytest.mark.parametrize(
    ("graph", "jobs"),
    [
        pytest.param(lambda: layers(128, (64, 192, 64)), {"ITALinear": 2}, id="whole"),
        pytest.param(lambda: layers(100, (96, 130)), {"ITALinear": 1}, id="padded"),
        pytest.param(lambda: residual(100, 96), {"ITALinear": 2, "ITAAdd": 1}, id="residual"),
        # Heads that share tiles, that are padded, and that have whole ones.
        pytest.param(lambda: attention(128, 64, 2, 32), {"ITALinear": 4, "ITAAttention": 1}, id="shared"),
        pytest.param(lambda: attention(64, 64, 2, 40), {"ITALinear": 4, "ITAAttention": 1}, id="padded heads"),
        pytest.param(lambda: mhsa(64, 64, 2, 64, softmax="ITASoftmax"), {"ITALinear": 3, "ITAAttention": 1}, id="MHSA"),
    ],
)
def test_on_the_engine(graph: Callable[[], Graph], jobs: dict[str, int]) -> None:
    """Exact, without findings of the checks, and every layer on ITA."""
    assert computed(graph(), "ita") == jobs


def test_the_dma_cuts_matrices_into_tiles() -> None:
    """And puts them together again."""
    assert computed(layers(128, (192, 192)), "mover") == {"Transpose": 2}


def computed(graph: Graph, engine: str) -> Counter[str]:
    """Runs a network and counts what an engine computes."""
    inputs = fed(graph)
    ran = tilewright.run(
        graph, tilewright.Options(platform="snitch-ita"), inputs=inputs, expected=interpret(graph, inputs)
    )
    assert ran.right
    plan = ran.compiled.plan
    return Counter(n.op for n, choice in zip(plan.graph.nodes, plan.choices, strict=True) if choice.engine == engine)
