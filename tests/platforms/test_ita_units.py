"""Attention on the units of ITA in MemPool: exact, without findings of the checks, and all heads on the units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

import tilewright
from ita_networks import attention, fed, mhsa
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret


@pytest.mark.parametrize(
    ("graph", "rounds"),
    [
        pytest.param(lambda: attention(64, 64, 4, 32, "ITAPartialMax"), 1, id="four heads"),
        pytest.param(lambda: attention(48, 120, 5, 60, "ITAPartialMax", add=3), 2, id="padded, in two rounds"),
        pytest.param(lambda: attention(128, 64, 4, 64, "ITAPartialMax", values=512), 2, id="values from elsewhere"),
        pytest.param(lambda: mhsa(64, 96, 3, 64, term_bits=10), 1, id="MHSA"),
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


def _heads(op: str) -> bool:
    return op in ("ITAHeads", "ITAPartialMax")
