"""Graphs of any stage as ONNX files: valid, and the same network when read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from msgspec.structs import replace

from onnx_models import check, model, node, onnxruntime_results, read, value, write
from stateful import running_sum
from tilewright.base.dtype import INT8, INT32
from tilewright.core.graph import Array, Graph, Node, Result, State, Step, TensorType, attrs
from tilewright.core.interpret import interpret
from tilewright.frontend import export, load, save

RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(1, 2, 6, 6)).astype(np.float32)


def float_network(tmp_path: Path) -> Graph:
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("Clip", "a - six", "b"),
        node("GlobalAveragePool", "b", "c"),
        node("Flatten", "c", "d"),
        node("Gemm", "d v", "y", alpha=0.5, transB=1),
    ]
    constants = {
        "w": RNG.normal(size=(3, 2, 3, 3)).astype(np.float32),
        "six": np.array(6, np.float32),
        "v": RNG.normal(size=(4, 3)).astype(np.float32),
    }
    return load(write(tmp_path / "m.onnx", model(nodes, [value("x", (1, 2, 6, 6))], ["y"], constants=constants)))


def integer_network() -> Graph:
    """A product with a fused requantisation behind it, as passes leave it."""
    product, result = TensorType(INT32, (3, 4)), TensorType(INT8, (3, 4))
    steps = (
        Step("Add", (Result(0), "bias"), product, attrs(widen=1)),
        Step("RequantShift", (Result(1), "mul", "add"), result, attrs(div=64, n_levels=256, signed=1)),
    )
    constants: dict[str, Array] = {
        "w": RNG.integers(-50, 50, (5, 4)).astype(np.int8),
        "bias": np.arange(4, dtype=np.int32),
        "mul": np.array(3, np.int32),
        "add": np.array(-7, np.int32),
    }
    empty = Graph("fused", ("x",), ("y",), (), {"x": TensorType(INT8, (3, 5)), "y": result})
    return empty.with_nodes([Node("MatMul", ("x", "w"), ("y",), epilogue=steps)], constants=constants)


def test_standard_operators_stay_standard(tmp_path: Path) -> None:
    graph = float_network(tmp_path)
    save(graph, tmp_path / "out.onnx")
    check(tmp_path / "out.onnx", types=True)
    written = read(tmp_path / "out.onnx")
    assert {n.domain for n in written.graph.node} == {""}
    wanted = interpret(graph, [IMAGE])[0]
    np.testing.assert_array_equal(interpret(load(tmp_path / "out.onnx"), [IMAGE])[0], wanted)


def test_other_tools_run_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = float_network(tmp_path)
    # The installed onnxruntime may not know the newest opset yet; these operators are older.
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 21)
    save(graph, tmp_path / "out.onnx")
    content = read(tmp_path / "out.onnx")
    content.ir_version = 10
    results = onnxruntime_results(content, {"x": IMAGE})
    # Terms of opposite signs cancel, and other tools add them up in another order.
    np.testing.assert_allclose(results[0], interpret(graph, [IMAGE])[0], rtol=1e-5, atol=1e-6)


def test_epilogues_become_nodes_and_types_survive(tmp_path: Path) -> None:
    graph = integer_network()
    save(graph, tmp_path / "out.onnx")
    check(tmp_path / "out.onnx")
    written = read(tmp_path / "out.onnx")
    assert [(n.op_type, n.domain) for n in written.graph.node] == [
        ("MatMul", export.DOMAIN),
        ("Add", export.DOMAIN),
        ("RequantShift", export.DOMAIN),
    ]
    again = load(tmp_path / "out.onnx")
    assert {name: again.types[name] for name in graph.types} == dict(graph.types)
    x = RNG.integers(-128, 127, (3, 5)).astype(np.int8)
    np.testing.assert_array_equal(interpret(again, [x])[0], interpret(graph, [x])[0])


def test_many_weights_go_into_a_file_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "INLINE_LIMIT", 10)
    graph = float_network(tmp_path)
    save(graph, tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx.data").stat().st_size == sum(a.nbytes for a in graph.constants.values())
    check(tmp_path / "out.onnx")
    np.testing.assert_array_equal(interpret(load(tmp_path / "out.onnx"), [IMAGE])[0], interpret(graph, [IMAGE])[0])


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    graph = float_network(tmp_path)
    save(graph, tmp_path / "a.onnx")
    save(graph, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_states_come_back(tmp_path: Path) -> None:
    path = running_sum(tmp_path, 3)
    graph = load(path, states={"s_in": "s_out"})
    start = np.arange(3, dtype=np.float32)
    save(replace(graph, states=(State("s_in", start),)), tmp_path / "stage.onnx")
    again = load(tmp_path / "stage.onnx")
    assert (again.fed, again.given, again.updates) == (("x",), ("y",), {"s_in": "s_out"})
    np.testing.assert_array_equal(again.states[0].initial, start)
