"""Networks on scratchpads that are almost too small, run in many ways, against the references of the operators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from networks.mobilenet import mobilenet_v2
from networks.test_integer_networks import FAMILIES, Branches
from onnx_models import write
from random_graphs import Network
from tilewright.api import Options, compile_model, run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions
from tilewright.sim import EmulatedMachine

RANDOM = 12
FLAGS = (*STRICT, *SANITIZE, "-O0")


@dataclass(frozen=True)
class Way:
    """How a network is run; `room` times the smallest L1 is what it gets."""

    room: float
    home: str
    cores: int
    planning: PlanOptions
    machine: EmulatedMachine


WAYS = (
    Way(1.0, "L2", 8, PlanOptions(), EmulatedMachine("wait")),
    Way(1.5, "L3", 1, PlanOptions(fuse="off", buffers=2), EmulatedMachine("random", 3)),
    Way(4.0, "L3", 8, PlanOptions(order="time"), EmulatedMachine("random", 4)),
    Way(1.2, "L2", 3, PlanOptions(buffers=1), EmulatedMachine("start")),
    Way(8.0, "L2", 8, PlanOptions(joint=False, order="given"), EmulatedMachine("wait", 5)),
)


def options(way: Way, l1: int) -> Options:
    return Options(platform="scratchpad", sizes=Sizes({"L1": l1}, way.home, way.cores), planning=way.planning)


def least(model: Path, way: Way) -> int:
    """The smallest L1 that works, as the error for a smaller one says."""
    with pytest.raises(TilewrightError) as caught:
        compile_model(model, options(way, 8))
    assert caught.value.code == "does-not-fit"
    found = re.search(r"needs at least (\d+) bytes of L1", str(caught.value))
    assert found is not None, str(caught.value)
    return int(found.group(1))


def assert_right(model: Path, inputs: Sequence[Array], way: Way) -> None:
    """At the size that the way says, and the smallest size is exactly that."""
    smallest = least(model, way)
    with pytest.raises(TilewrightError, match=f"needs at least {smallest} bytes of L1"):
        compile_model(model, options(way, smallest - 1))
    l1 = int(smallest * way.room)
    ran = run_model(model, options(way, l1), inputs=inputs, flags=FLAGS, machine=way.machine)
    schedule = ran.compiled.plan.schedule
    assert schedule is not None
    assert schedule.used["L1"] <= l1
    for found, expected in zip(ran.outputs, interpret(ran.compiled.plan.graph, inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        if found.dtype.kind in "iu":
            assert np.array_equal(found, expected)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("seed", range(RANDOM))
def test_random_networks(seed: int, tmp_path: Path) -> None:
    network = Network(2000 + seed, steps=16)
    inputs = [network.fed[name] for name in network.fed]
    assert_right(write(tmp_path / "network.onnx", network.model()), inputs, WAYS[seed % len(WAYS)])


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("number", range(len(FAMILIES)))
def test_integer_networks(number: int, tmp_path: Path) -> None:
    branches = Branches(number)
    FAMILIES[number](branches)
    model = write(tmp_path / "network.onnx", branches.model())
    way = WAYS[number % len(WAYS)]
    graph = compile_model(model, options(way, 1 << 20)).plan.graph
    given = [branches.fed[name].astype(graph.types[name].dtype.numpy) for name in graph.inputs]
    assert_right(model, given, way)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.room}-{way.home}-{way.cores}")
def test_a_network_of_convolutions(way: Way, tmp_path: Path) -> None:
    x = np.random.default_rng(1).integers(-100, 100, (1, 32, 32, 3)).astype(np.int8)
    assert_right(write(tmp_path / "network.onnx", mobilenet_v2(0.1, 32, 10)), [x], way)
