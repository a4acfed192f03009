"""Why a layer costs what it costs: every number is the sum or product of the numbers below it."""

from __future__ import annotations

import pytest

import tilewright
from tilewright.core.workload_file import equation_layer
from tilewright.price.why import Why, explain


def part(why: Why, *names: str) -> Why:
    for name in names:
        why = next(each for each in why.parts if each.what == name)
    return why


@pytest.mark.parametrize("machine", ["tpu-like", "analog-imc"])
def test_parts_add_up(machine: str) -> None:
    layer = equation_layer("O[m][n] += A[m][k] * B[k][n]", {"M": 16, "N": 24, "K": 20})
    (found,) = tilewright.search(layer, machine)
    why = explain(found.cost)
    energy, latency = part(why, "energy"), part(why, "latency")
    assert energy.value == found.cost.energy
    assert energy.value == pytest.approx(sum(p.value for p in energy.parts))
    memories = part(energy, "memories")
    assert memories.value == pytest.approx(sum(p.value for p in memories.parts))
    for memory in memories.parts:
        assert memory.value == pytest.approx(sum(p.value for p in memory.parts))
    assert latency.value == found.cost.cycles == pytest.approx(sum(p.value for p in latency.parts))


def test_numbers_are_put_in() -> None:
    layer = equation_layer("O[m][n] += A[m][k] * B[k][n]", {"M": 64, "N": 64, "K": 64})
    (found,) = tilewright.search(layer, "tpu-like")
    text = "\n".join(explain(found.cost).lines())
    assert "accesses: 512 words = int(ceil(4,096 elements * 8 bits / 64) * 1 times * 1 copies)" in text
    assert "multiply-accumulates: 10,485.8 pJ" in text
    (found,) = tilewright.search(layer, "tpu-like", tilewright.MapOptions(density={"A": 0.5, "B": 0.25}))
    assert "array: 1,310.72 pJ = 262,144 operations * 0.125 without a zero" in "\n".join(explain(found.cost).lines())
