"""Networks with sizes that are known when they run: what onnxruntime gives for that size, and nothing beyond it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_models import Array, model, node, onnxruntime_results, read, value, write
from stateful import PLATFORMS, kv_cache, noise, ran, stepped, zeros
from tilewright.api.compiling import Options, compile_model
from tilewright.api.running import run_model
from tilewright.core.interpret import interpret_steps
from tilewright.machine.target import Sizes

CACHES = {"past_k": "present_k", "past_v": "present_v"}


def positions(count: int) -> Array:
    return np.arange(count, dtype=np.int32)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("platform", [*PLATFORMS, "cortex-m7"])
def test_a_cache_that_grows(platform: str, tmp_path: Path) -> None:
    """Up to its last row; each step writes one row and reads those that are there."""
    path, x = kv_cache(tmp_path), noise(1, 16, 1, 16)
    expected = stepped(path, CACHES, {"x": x}, dict.fromkeys(CACHES, zeros(2, 0, 8)))
    made = ran(path, platform, CACHES, {"x": x, "past": positions(16)}, expected, dims={"past": (0, 15)})
    plan = made.compiled.plan
    assert plan.state_bytes == 2 * 2 * 16 * 8 * 4
    assert all(plan.places[old] == plan.places[new] for old, new in plan.graph.updates.items())
    (again,) = interpret_steps(made.compiled.source, [x, positions(16)], 16)
    np.testing.assert_allclose(again, expected, atol=1e-5)


def test_time_grows_with_the_cache(tmp_path: Path) -> None:
    """On the simulated chip: each further row costs about the same."""
    path, x = kv_cache(tmp_path, heads=4, width=32), noise(2, 4, 1, 128)
    at = np.asarray([0, 40, 80, 120], np.int32)
    options = Options("siracusa", dims={"past": (0, 127)}, states=CACHES)
    cycles = run_model(path, options, inputs=(x, at), steps=4).step_cycles
    added = np.diff(cycles[1:])
    assert cycles[3] > 1.3 * cycles[1]
    assert added.min() > 0.7 * added.max()


def test_a_size_beyond_its_bound_is_the_bound(tmp_path: Path) -> None:
    path, x = kv_cache(tmp_path), noise(3, 2, 1, 16)
    options = Options(dims={"past": (0, 7)}, states=CACHES)
    beyond, at = np.asarray([2**31 - 1, -5], np.int32), np.asarray([7, 0], np.int32)
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    found = [run_model(path, options, inputs=(x, sizes), steps=2, flags=flags).outputs[0] for sizes in (beyond, at)]
    np.testing.assert_array_equal(found[0], found[1])


def layers(folder: Path) -> Path:
    """Rows of tokens through layers, and attention among themselves."""
    rng = np.random.default_rng(6)
    weights: dict[str, Array] = {f"w{i}": rng.normal(size=(12, 12)).astype(np.float32) / 3 for i in range(4)}
    weights["bias"] = rng.normal(size=12).astype(np.float32)
    nodes = [
        *(node("MatMul", f"x w{i}", f"m{i}") for i in range(3)),
        node("Add", "m0 bias", "a"),
        node("Relu", "a", "q"),
        node("Transpose", "m1", "turned", perm=[1, 0]),
        node("MatMul", "q turned", "scores"),
        node("Softmax", "scores", "weights"),
        node("MatMul", "weights m2", "mixed"),
        node("Add", "mixed x", "residual"),
        node("MatMul", "residual w3", "y"),
    ]
    return write(folder / "layers.onnx", model(nodes, [value("x", ("tokens", 12))], ["y"], constants=weights))


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_inputs_and_outputs_of_any_length(platform: str, tmp_path: Path) -> None:
    path = layers(tmp_path)
    options = Options(platform, dims={"tokens": (1, 20)})
    for tokens in (1, 7, 20) if platform == "generic" else (7,):
        x = noise(tokens, tokens, 12)
        given = (x, np.asarray(tokens, np.int32))
        made = run_model(path, options, inputs=given, expected=onnxruntime_results(read(path), {"x": x}))
        assert made.right, (tokens, made.comparisons)
        assert made.outputs[0].shape == (tokens, 12)


def test_nothing_is_written_beyond_the_size(tmp_path: Path) -> None:
    """Buffers of the example program are zero at first."""
    x = np.zeros((1, 20, 12), np.float32)
    x[0, :5] = noise(8, 5, 12)
    options = Options(dims={"tokens": (1, 20)})
    (y,) = run_model(layers(tmp_path), options, inputs=(x, np.asarray([5], np.int32)), steps=1).outputs
    assert np.all(y[0, :5].any(axis=1))
    assert not y[0, 5:].any()


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_several_rows_at_a_time_and_two_sizes(platform: str, tmp_path: Path) -> None:
    """Two rows are appended at each step, in front of an axis that is not the first; other tensors have a size, too."""
    nodes = [
        node("Concat", "past rows", "present", axis=1),
        node("MatMul", "x present", "y"),
    ]
    inputs = [value("x", ("queries", 6)), value("rows", (6, 2)), value("past", (6, "length"))]
    path = write(tmp_path / "two.onnx", model(nodes, inputs, ["y", "present"]))
    options = Options(platform, dims={"queries": (1, 5), "length": (0, 8)}, states={"past": "present"})
    x, rows = noise(10, 2, 5, 6), noise(11, 2, 6, 2)
    queries, length = np.asarray([5, 3], np.int32), np.asarray([0, 2], np.int32)
    (y,) = run_model(path, options, inputs=(x, rows, queries, length), steps=2).outputs
    cache = np.concatenate(list(rows), axis=1)
    for step, (q, n) in enumerate(((5, 2), (3, 4))):
        wanted = x[step, :q] @ cache[:, :n]
        np.testing.assert_allclose(y[step].reshape(-1)[: q * n].reshape(q, n), wanted, atol=1e-5)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("heads", "width", "high"), [(4, 32, 15), (2, 8, 255), (8, 16, 63)])
@pytest.mark.parametrize("near", [32768, 131072])
def test_plans_of_many_shapes_are_right(heads: int, width: int, high: int, near: int, tmp_path: Path) -> None:
    """Plans are checked when they are made."""
    path, machine = kv_cache(tmp_path, heads, width), Sizes({"L1": near})
    for platform in ("scratchpad", "siracusa"):
        compile_model(path, Options(platform, dims={"past": (0, high)}, states=CACHES, sizes=machine))
