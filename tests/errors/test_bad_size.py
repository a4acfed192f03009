"""error[bad-size]: a size that is known when the network runs cannot be one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_models import model, node, value, write
from stateful import kv_cache
from tilewright.api.compiling import Options, compile_model
from tilewright.errors import TilewrightError
from tilewright.frontend import load, save
from tilewright.machine.target import Sizes


def refused(path: Path, **dims: tuple[int, int]) -> TilewrightError:
    with pytest.raises(TilewrightError) as caught:
        load(path, dims=dims)
    assert caught.value.code == "bad-size"
    return caught.value


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("ReduceMean", "x", "y", keepdims=0)], "its result depends on all of"),
        ([node("Reshape", "x flat", "y")], "it joins or splits axis 0, which is size_0"),
        ([node("Concat", "x x", "y", axis=0)], "it reads inputs1 at"),
        ([node("Add", "x table", "y")], "it also reads something of fixed extent along D0"),
        ([node("Slice", "x one two axes", "y")], "it reads data at"),
        ([node("CumSum", "x axis", "y")], "its result depends on all of"),
    ],
)
def test_operators_that_would_need_the_size(nodes: list[object], reason: str, tmp_path: Path) -> None:
    constants = {
        "flat": np.asarray([-1]),
        "table": np.ones((6, 4), np.float32),
        "one": np.asarray([1]),
        "two": np.asarray([2]),
        "axes": np.asarray([0]),
        "axis": np.asarray(0),
    }
    built = model(nodes, [value("x", ("tokens", 4))], ["y"], constants=constants)  # type: ignore[arg-type]
    error = refused(write(tmp_path / "m.onnx", built), tokens=(1, 6))
    assert reason in error.reasons[0], error


def test_two_sizes_along_one_loop(tmp_path: Path) -> None:
    nodes = [node("Add", "x z", "y")]
    path = write(tmp_path / "m.onnx", model(nodes, [value("x", ("a", 4)), value("z", ("b", 4))], ["y"]))
    assert refused(path, a=(1, 6), b=(1, 6)).reasons == ("one loop is size_0 and size_1 long",)


def test_a_tensor_that_may_be_empty(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", ("a", 4))], ["y"]))
    assert refused(path, a=(0, 6)).reasons == ("'x' may be empty: an axis of it is size_0",)


def test_values_that_depend_on_a_size(tmp_path: Path) -> None:
    """A mean spelled out: the sum over the extent, which is a constant at compile time."""
    nodes = [
        node("Shape", "x", "shape", end=1),
        node("Cast", "shape", "count", to=1),
        node("ReduceSum", "x axes", "sum", keepdims=0),
        node("Div", "sum count", "y"),
    ]
    built = model(nodes, [value("x", ("tokens", 4))], ["y"], constants={"axes": np.asarray([0])})
    error = refused(write(tmp_path / "m.onnx", built), tokens=(1, 6))
    assert "computes with the value of a size" in error.what or "in a way that needs to know" in error.reasons[0]


def test_a_home_that_cores_do_not_read(tmp_path: Path) -> None:
    states = {"past_k": "present_k", "past_v": "present_v"}
    options = Options("siracusa", dims={"past": (0, 15)}, states=states, sizes=Sizes(home="L3"))
    with pytest.raises(TilewrightError) as caught:
        compile_model(kv_cache(tmp_path), options)
    assert caught.value.code == "bad-size"
    assert "reads L3" in caught.value.what


def test_a_stage_of_such_a_network(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", ("tokens", 4))], ["y"]))
    save(load(path, dims={"tokens": (1, 6)}), tmp_path / "stage.onnx")
    assert refused(tmp_path / "stage.onnx").reasons == ("they are tokens; the file has them at their largest",)


def test_ends_the_wrong_way_round(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", ("tokens", 4))], ["y"]))
    assert refused(path, tokens=(6, 1)).what == "--dim tokens=6..1 is no range of extents"


def test_a_slice_of_something_else_that_ends_at_the_size(tmp_path: Path) -> None:
    nodes = [
        node("Shape", "x", "shape", end=1),
        node("Slice", "z zero shape zero", "part"),
        node("ReduceMax", "part", "y", keepdims=0),
        node("Relu", "x", "w"),
    ]
    inputs = [value("x", ("tokens", 4)), value("z", (6,))]
    built = model(nodes, inputs, ["y", "w"], constants={"zero": np.asarray([0])})
    error = refused(write(tmp_path / "m.onnx", built), tokens=(1, 6))
    assert error.what == "Slice 'part' computes with the value of a size that is known when the network runs"
