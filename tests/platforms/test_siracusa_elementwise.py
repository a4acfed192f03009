"""Element-wise kernels of Siracusa against the references, on the simulated chip with all its checks."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Options, Ran, run_model
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes


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


def _reals(shape: tuple[int, ...], seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Floats of all sizes: half of them any pattern of bits, infinite ones and NaN among them, half of usual size."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << 32, shape, np.uint32).view(np.float32)
    usual = (random.normal(size=shape) * 10 ** random.uniform(-3, 3, shape)).astype(np.float32)
    return np.where(random.random(shape) < 0.5, bits, usual)


def test_quotients_of_a_row() -> None:
    """A divisor of a row is inverted once: quotients are still those of a division, to the last bit."""
    b = Builder()
    shape = (96, 61)
    graph = b.graph(b.op("Div", b.input("x", "float32[96,61]"), b.input("d", "float32[96,1]")))
    fed = [_reals(shape, 1), _reals((96, 1), 2)]
    fed[0][:, :4] = np.asarray([0.0, -0.0, np.inf, np.nan], np.float32)
    fed[1][:6, 0] = np.asarray([0.0, np.inf, 1.9999999, 3.0, -(2.0**-31), 2.0**-149], np.float32)
    with np.errstate(all="ignore"):
        (wanted,) = interpret(graph, fed)
    (found,) = run_model(graph, Options(platform="siracusa"), inputs=fed).outputs
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("scale", [0.0173, 1 / 3, 1.0, 1.9999999, 3e-5, 2.5e-21])
def test_quantised_behind_a_layer(scale: float) -> None:
    """Quotients by a known scale are products, with the bytes of a division: halves, limits and what is no number."""
    b = Builder()
    operands = np.asarray(scale, np.float32), np.asarray(-9, np.int8)
    graph = b.graph(
        b.op("QuantizeLinear", b.op("Mul", b.input("x", "float32[40,33]"), b.input("y", "float32[33]")), *operands)
    )
    halves = (np.arange(40 * 33).reshape(40, 33) - 660) / 2
    fed = [np.where(halves % 3 > 1, _reals((40, 33), 3), halves * scale).astype(np.float32), np.ones(33, np.float32)]
    with np.errstate(all="ignore"):
        (wanted,) = interpret(graph, fed)
    (found,) = run_model(graph, Options(platform="siracusa"), inputs=fed).outputs
    np.testing.assert_array_equal(found, wanted)
