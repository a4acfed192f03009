"""Layers that a network says in ITA's arithmetic, on a cluster of Snitch's with ITA: exact, and on the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import MappingProxyType

import pytest

import tilewright
from ita_networks import attention, fed, layers, mhsa, residual
from plan.test_check_tiles import with_kernel
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes
from tilewright.plan import PlanError, check


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


def test_the_engine_keeps_sums_of_parts() -> None:
    """Where operands of a whole sum have no second place, parts of a tile's sum are loaded while others are added."""
    graph = layers(128, (512, 128))
    inputs = fed(graph)
    options = tilewright.Options(platform="snitch-ita", sizes=Sizes({"L1": 60_000}))
    ran = tilewright.run(graph, options, inputs=inputs, expected=interpret(graph, inputs))
    assert ran.right
    plan = ran.compiled.plan
    schedule = plan.schedule
    assert schedule is not None
    cut = next(group for group in schedule.groups if any(loop.dim == "K" for loop in group.loops))
    assert [loop.dim for loop in cut.loops][-1] == "K"
    assert cut.queued, "the next part is started before one is done"
    assert not any(work.sums for work in cut.works)
    step = cut.works[0].step
    with pytest.raises(PlanError) as caught:
        check(with_kernel(plan, step, when=MappingProxyType({"K": "== K_whole"})))
    assert "of 8, but it asks for == K_whole" in str(caught.value)


def computed(graph: Graph, engine: str) -> Counter[str]:
    """Runs a network and counts what an engine computes."""
    inputs = fed(graph)
    ran = tilewright.run(
        graph, tilewright.Options(platform="snitch-ita"), inputs=inputs, expected=interpret(graph, inputs)
    )
    assert ran.right
    plan = ran.compiled.plan
    return Counter(n.op for n, choice in zip(plan.graph.nodes, plan.choices, strict=True) if choice.engine == engine)
