"""What a fuzzing campaign is made of: samples that repeat, processes with limits, and networks made small."""

from __future__ import annotations

import importlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

from damage import damaged_arrays, damaged_network
from onnx_models import model, node, value
from random_types import by_onnxruntime
from reduction import smallest, smallest_network
from samples import KINDS, sample, unsteady

TOP = Path(__file__).resolve().parent.parent


def test_samples_repeat() -> None:
    for index in range(len(KINDS)):
        one, other = sample(5, index), sample(5, index)
        assert one.model.SerializeToString() == other.model.SerializeToString()
        for left, right in zip(one.inputs, other.inputs, strict=True):
            np.testing.assert_array_equal(left, right)
        assert one.model.SerializeToString() != sample(6, index).model.SerializeToString()


def test_operators_of_nnsmith_are_written_as_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """With graphs of the shape that NNSmith's have, so that it need not be installed."""
    monkeypatch.setattr(sys, "path", [str(TOP), *sys.path])
    smith: Any = importlib.import_module("benchmarks.fuzzing.smith")
    dims = {"x": [2, 3, 5], "padded": [2, 3, 6], "turned": [2, 6, 3], "least": [2, 3]}
    steps: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Input", [], "x", {"abs_tensor": SimpleNamespace(shape=dims["x"], dtype=SimpleNamespace(name="float32"))}),
        ("ConstPad", ["x"], "padded", {"padding_list": [2, -1]}),
        ("Transpose", ["padded"], "turned", {"extra_attrs": {"dim0": 1, "dim1": 2}}),
        ("ReduceMin", ["turned"], "least", {"extra_attrs": {"reduce_dim": 1}}),
    ]
    graph = SimpleNamespace(
        insts=[
            SimpleNamespace(
                iexpr=SimpleNamespace(op=type(kind, (), fields)(), args=given), retval=lambda name=result: name
            )
            for kind, given, result, fields in steps
        ],
        vars={
            name: SimpleNamespace(shape=shape, dtype=SimpleNamespace(name="float32")) for name, shape in dims.items()
        },
        leaf_var=lambda: ["least"],
    )
    written = smith.Writer(graph, 7)
    (found,) = by_onnxruntime(written.model(), written.fed)
    padded = np.pad(written.fed["x"], ((0, 0), (0, 0), (2, 0)))[..., :-1]
    np.testing.assert_array_equal(found, padded.swapaxes(1, 2).min(axis=1))


def test_damage_repeats_and_does_damage() -> None:
    whole = sample(5, 0).model
    found = [damaged_network(whole, seed) for seed in range(40)]
    assert found == [damaged_network(whole, seed) for seed in range(40)]
    assert sum(content != whole.SerializeToString() for content in found) > 35
    assert damaged_arrays(3) == damaged_arrays(3)


def test_the_smallest_part_of_a_list() -> None:
    rng = random.Random(1)
    for _ in range(30):
        wanted = {*rng.sample(range(40), rng.randrange(1, 4))}
        assert smallest(range(40), lambda some, wanted=wanted: wanted <= {*some}) == sorted(wanted)


def test_the_smallest_part_of_a_network() -> None:
    nodes = [node("Relu", "x", "a"), node("Exp", "a", "b"), node("Sin", "b", "c"), node("Neg", "c", "y")]
    built = model(nodes, [value("x", (3,))], ["y"])
    x = np.array([0.5, -1, 2], np.float32)

    def fails(network: tuple[onnx.ModelProto, dict[str, Any]]) -> bool:
        return any(each.op_type == "Sin" for each in network[0].graph.node)

    small, fed = smallest_network((built, {"x": x}), fails)
    assert [each.op_type for each in small.graph.node] == ["Sin"]
    np.testing.assert_allclose(fed["b"], np.exp(np.maximum(x, 0)), rtol=1e-6)


def test_what_rounding_decides() -> None:
    """A number just at a threshold; the other output is steady."""
    nodes = [node("Floor", "x", "y"), node("Neg", "x", "z")]
    built = model(nodes, [value("x", (1,))], ["y", "z"])
    x = np.array([3], np.float32)
    made = type(sample(0, 0))("x", "graph", built, {"x": x})
    assert unsteady(made, made.expected, 1e-3) == {0}


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(TOP), *sys.path])
    return importlib.import_module("benchmarks.fuzzing.workers")


def test_processes_with_limits(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "CPU_SECONDS", 1)

    def judge(items: Sequence[int]) -> Iterator[Any]:
        for index in items:
            if index == 1:
                os.kill(os.getpid(), 9)
            if index == 3:
                while True:
                    pass
            try:
                if index == 4:
                    bytearray(3 << 30)
                yield workers.Verdict(index, "right")
            except MemoryError as error:
                yield workers.failure(index, error)

    found = {verdict.index: verdict.status for verdict in workers.judged(judge, range(6))}
    assert found == {0: "right", 1: "crash", 2: "right", 3: "hang", 4: "memory", 5: "right"}


def test_a_network_is_reduced_by_hand(tmp_path: Path) -> None:
    """A flag that changes what the code means, and the node that it changes."""
    nodes = [node("Relu", "x", "a"), node("Sin", "a", "b"), node("Neg", "b", "y")]
    (tmp_path / "whole.onnx").write_bytes(model(nodes, [value("x", (3,))], ["y"]).SerializeToString())
    command = [sys.executable, "-m", "benchmarks", "reduce", str(tmp_path / "whole.onnx"), "-o", str(tmp_path)]
    flags = ["--cflag=-O0", "--cflag=-Dsinf=cosf"]
    done = subprocess.run([*command, *flags], cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "1 of 3 nodes, flags: -Dsinf=cosf" in done.stdout
    small = onnx.ModelProto.FromString((tmp_path / "reduced.onnx").read_bytes())
    assert [each.op_type for each in small.graph.node] == ["Sin"]


def test_a_campaign_goes_on_where_it_ended(tmp_path: Path) -> None:
    for count in (12, 20):
        command = [sys.executable, "-m", "benchmarks", "fuzz", "--minutes", "30", "--seed", "3", "--count", str(count)]
        options = ["--platform", "files", "--output", str(tmp_path)]
        done = subprocess.run([*command, *options], cwd=TOP, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        state = json.loads((tmp_path / "seed_3.json").read_text())["files"]
        assert state["next"] == sum(state["counts"].values()) == count
