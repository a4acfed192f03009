"""Element-wise kernels of Siracusa against the references, on the simulated chip with all its checks."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Options, Ran, run_model
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.core.platform import Sizes


def run(graph: Graph, kernel: str, l1: int) -> Ran:
    """Runs it with one kernel and compares."""
    kind = graph.types["x"]
    limits = np.iinfo(kind.dtype.name)
    fed = np.random.default_rng(1).integers(limits.min, limits.max + 1, kind.shape).astype(kind.dtype.numpy)
    ran = run_model(graph, Options(platform="siracusa", sizes=Sizes({"L1": l1})), inputs=[fed])
    np.testing.assert_array_equal(ran.outputs[0], interpret(graph, [fed])[0])
    assert [choice.kernel.function for choice in ran.compiled.plan.choices if choice.kernel is not None] == [kernel]
    return ran


@pytest.mark.parametrize("shape", ["[5]", "[3,5,7]", "[2,64,9]"])
def test_leaky_relu(shape: str) -> None:
    b = Builder()
    run(b.graph(b.op("iLeakyReLU", b.input("x", f"int8{shape}"), mul=1, shift=3)), "ileakyrelu", 16384)


def test_leaky_relu_of_the_published_size() -> None:
    """65 536 elements, tiled: published are 43 005 cycles."""
    b = Builder()
    graph = b.graph(b.op("iLeakyReLU", b.input("x", "int8[1,16,64,64]"), mul=1, shift=3))
    cycles = run(graph, "ileakyrelu", 32768).cycles
    assert cycles is not None
    assert cycles <= 25_000


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("shape", ["[5]", "[3,5,7]", "[40,64,3]"])
def test_lookup(kind: str, shape: str) -> None:
    b = Builder()
    table = np.random.default_rng(0).integers(0, 256, 256).astype(np.uint8)
    results = table if kind == "int8" else table.view(np.int8)
    run(b.graph(b.op("Lookup", b.input("x", f"{kind}{shape}"), results)), "lookup_s8", 8192)
