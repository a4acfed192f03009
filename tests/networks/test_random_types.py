"""Random networks over many element types against onnxruntime, and what is rounded where."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from onnx_models import model, node, value, write
from random_types import Soup, by_onnxruntime
from tilewright.api import run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.frontend import load
from tilewright.machine.target import load_platform
from tilewright.passes import PIPELINE
from tilewright.quantize import to_integers

INTERPRETED = 60
SEEDS_PER_TEST = 20
BUILT = 4
FLAGS = (*STRICT, *SANITIZE, "-O1")


def assert_equal(found: Sequence[Array], expected: Sequence[Array], what: str) -> None:
    """Integers are equal, whatever their size; floats come from few operators on small numbers."""
    for index, (left, right) in enumerate(zip(found, expected, strict=True)):
        assert (left.dtype, left.shape) == (right.dtype, right.shape), f"{what}, output {index}"
        if right.dtype.kind == "f":
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5, err_msg=f"{what}, output {index}")
        else:
            np.testing.assert_array_equal(left, right, err_msg=f"{what}, output {index}")


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("first", range(0, INTERPRETED, SEEDS_PER_TEST))
def test_every_pass_keeps_what_a_network_of_many_types_computes(first: int, tmp_path: Path) -> None:
    platform = load_platform("generic")
    for seed in range(first, first + SEEDS_PER_TEST):
        content, fed = Soup(seed).model()
        expected, inputs = by_onnxruntime(content, fed), list(fed.values())
        graph = load(write(tmp_path / f"{seed}.onnx", content))
        assert_equal(interpret(graph, inputs), expected, f"seed {seed}, import")
        for step in (to_integers, *PIPELINE):
            before, graph = graph, step(graph, platform)
            if graph is not before:
                assert_equal(interpret(graph, inputs), expected, f"seed {seed}, {step.__name__}")


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("seed", range(1000, 1000 + BUILT))
def test_generated_code_computes_a_network_of_many_types(seed: int, tmp_path: Path) -> None:
    content, fed = Soup(seed, steps=30).model()
    path = write(tmp_path / "network.onnx", content)
    ran = run_model(path, inputs=list(fed.values()), flags=FLAGS)
    assert_equal(ran.outputs, by_onnxruntime(content, fed), f"seed {seed}")


def test_halves_are_rounded_behind_every_operator_that_is_fused(tmp_path: Path) -> None:
    """Of x + 2048 a float16 keeps even numbers; a float32 between the steps would give x back."""
    nodes = [
        node("Add", "x large", "sum"),
        node("Sub", "sum large", "even"),
        node("Mul", "even third", "scaled"),
        node("Floor", "scaled", "y"),
    ]
    constants = {"large": np.array(2048, np.float16), "third": np.array(1 / 3, np.float16)}
    x = np.arange(-40, 41).astype(np.float16) * np.float16(0.37)
    content = model(nodes, [value("x", x.shape, TensorProto.FLOAT16)], ["y"], constants=constants)
    ran = run_model(write(tmp_path / "network.onnx", content), inputs=[x], flags=FLAGS)
    assert [len(step.epilogue) for step in ran.compiled.plan.graph.nodes] == [3]
    expected = np.floor((x + constants["large"] - constants["large"]) * constants["third"])
    np.testing.assert_array_equal(ran.outputs[0], expected)


def test_int64_beyond_32_bits_is_clipped_and_signed_as_it_is(tmp_path: Path) -> None:
    """onnxruntime looks at the lower halves of such numbers, and is no judge here."""
    nodes = [node("Clip", "x low high", "clipped"), node("Sign", "x", "signs"), node("Pow", "x two", "squares")]
    constants = {"low": np.array(-6), "high": np.array(2**32 - 6), "two": np.array(2)}
    x = np.array([0, 5, -7, 3_000_000_000, -3_000_000_000, 2**32, 2**31 + 1])
    content = model(
        nodes, [value("x", x.shape, TensorProto.INT64)], ["clipped", "signs", "squares"], constants=constants
    )
    ran = run_model(write(tmp_path / "network.onnx", content), inputs=[x], flags=FLAGS)
    for found, expected in zip(ran.outputs, (np.clip(x, -6, 2**32 - 6), np.sign(x), x * x), strict=True):
        np.testing.assert_array_equal(found, expected)
