"""Loop and Scan of known length are unrolled; the others are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_models import model, node, onnxruntime_results, value, write
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.frontend import load

X = np.arange(12, dtype=np.float32).reshape(3, 4)
X_INPUT = value("x", (3, 4))


def scan(**attributes: object) -> onnx.ModelProto:
    """Runs over the columns or rows of x: a running sum, and each slice times the weights around it."""
    body = helper.make_graph(
        [node("Add", "total part", "sum"), node("Mul", "part w", "scaled")],
        "body",
        [value("total", None), value("part", None)],
        [value("sum", None), value("scaled", None)],
    )
    nodes = [node("Scan", "start x", "last all", body=body, num_scan_inputs=1, **attributes)]
    axes = attributes.get("scan_input_axes")
    extent = 3 if axes == [1] else 4
    constants = {"start": np.zeros(extent, np.float32), "w": np.arange(extent, dtype=np.float32)}
    return model(nodes, [X_INPUT], ["last", "all"], constants=constants)


def loop(again: list[onnx.NodeProto], inputs: str) -> onnx.ModelProto:
    """Doubles x in each step and collects the results; `again` makes the condition `go` of the next step."""
    body = helper.make_graph(
        [node("Add", "old old", "new"), *again],
        "body",
        [value("step", (), TensorProto.INT64), value("going", (), TensorProto.BOOL), value("old", None)],
        [value("go", (), TensorProto.BOOL), value("new", None), value("new", None)],
        [numpy_helper.from_array(np.array(1, np.int64), "one")],
    )
    constants = {"count": np.array(4, np.int64), "yes": np.array(True)}
    return model([node("Loop", inputs, "last all", body=body)], [X_INPUT], ["last", "all"], constants=constants)


KEEP_ON = [node("Identity", "going", "go")]
BUILT = {
    "scan rows": scan(),
    "scan columns": scan(scan_input_axes=[1]),
    "scan backward": scan(scan_input_directions=[1], scan_output_directions=[1], scan_output_axes=[-1]),
    "loop": loop(KEEP_ON, "count yes x"),
    "loop without condition": loop(KEEP_ON, "count - x"),
    "loop that ends early": loop([node("Less", "step one", "go")], "count yes x"),
    "loop without count": loop([node("Less", "step one", "go")], "- yes x"),
}


@pytest.mark.parametrize("name", BUILT)
def test_unrolled_loops_compute_the_same(name: str, tmp_path: Path) -> None:
    graph = load(write(tmp_path / "m.onnx", BUILT[name]))
    assert not {n.op for n in graph.nodes} & {"Loop", "Scan"}
    for found, wanted in zip(interpret(graph, [X]), onnxruntime_results(BUILT[name], {"x": X}), strict=True):
        assert found.shape == wanted.shape
        assert np.allclose(found, wanted)


@pytest.mark.parametrize(
    ("built", "code", "reason"),
    [
        (
            loop([node("ReduceSum", "new", "s", keepdims=0), node("Cast", "s", "go", to=9)], "count yes x"),
            "unsupported-operator",
            "its condition is known at run time only",
        ),
        (loop(KEEP_ON, "- yes x"), "too-large", "more than 20,000 nodes"),
        (loop([node("Less", "step one", "go")], "n yes x"), "not-constant", "--constant n=FILE.npy"),
    ],
)
def test_other_loops_are_refused(built: onnx.ModelProto, code: str, reason: str, tmp_path: Path) -> None:
    if code == "not-constant":
        built.graph.input.append(value("n", (), TensorProto.INT64))
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == code
    assert reason in str(caught.value)
