"""Integer networks that their files declare as float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_models import Array, model, node, value, write
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.frontend import load

REQUANT = {"div": 16.0, "n_levels": 256.0, "signed": 1.0}


def floats(*shape: int, seed: int = 0) -> Array:
    """Whole numbers that fit int8, as float32."""
    return np.random.default_rng(seed).integers(-120, 120, shape).astype(np.float32)


def requant(source: str, target: str, **changes: float) -> onnx.NodeProto:
    return node("RequantShift", f"{source} mul add", target, **{**REQUANT, **changes})


SCALE: dict[str, Array] = {"mul": np.array([3], np.float32), "add": np.array([-8], np.float32)}


def build(tmp_path: Path, nodes: list[onnx.NodeProto], constants: dict[str, Array], *shapes: tuple[int, ...]) -> Path:
    inputs = [value(f"x{index}", shape) for index, shape in enumerate(shapes)]
    return write(tmp_path / "m.onnx", model(nodes, inputs, ["y"], constants={**SCALE, **constants}))


def dtypes(graph: Graph, *names: str) -> list[str]:
    return [str(graph.type(name).dtype) for name in names]


def test_dialect_operators_make_the_network_integer(tmp_path: Path) -> None:
    w, bias = floats(4, 2, 3, 3), floats(4, seed=1) * 1000
    nodes = [node("Conv", "x0 w b", "a"), requant("a", "y")]
    graph = load(build(tmp_path, nodes, {"w": w, "b": bias}, (1, 2, 5, 5)))
    conv, scale = graph.nodes
    assert dtypes(graph, "x0", *conv.inputs[1:], "a", *scale.inputs[1:], "y") == [
        "int8", "int8", "int32", "int32", "int32", "int32", "int8",
    ]  # fmt: skip
    assert scale.attrs["div"] == 16
    assert isinstance(scale.attrs["div"], int)


def test_wide_scales_take_64_bits(tmp_path: Path) -> None:
    graph = load(build(tmp_path, [requant("x0", "y")], {"add": np.array([2.0**40], np.float32)}, (4,)))
    assert dtypes(graph, *graph.nodes[0].inputs[1:]) == ["int32", "int64"]


@pytest.mark.parametrize(
    ("lo", "hi", "dtype"), [(-128, 127, "int8"), (0, 255, "uint8"), (-1, 255, "int16"), (0, 70000, "int32")]
)
def test_samples_widen_the_default(lo: int, hi: int, dtype: str, tmp_path: Path) -> None:
    path = build(tmp_path, [requant("x0", "y")], {}, (2,))
    assert dtypes(load(path, samples=[np.array([lo, hi], np.float32)]), "x0") == [dtype]


def test_a_pinned_type_counts_more_than_a_sample(tmp_path: Path) -> None:
    path = build(tmp_path, [requant("x0", "y")], {}, (2,))
    graph = load(path, input_types={"x0": "int16"}, samples=[np.array([0, 1], np.int64)])
    assert dtypes(graph, "x0") == ["int16"]


def test_integer_samples_make_a_network_integer(tmp_path: Path) -> None:
    path = build(tmp_path, [node("MatMul", "x0 w", "y")], {"w": floats(3, 2)}, (4, 3))
    assert dtypes(load(path), "x0", "y") == ["float32", "float32"]
    assert dtypes(load(path, samples=[np.ones((4, 3), np.int64)]), "x0", "y") == ["int8", "int32"]
    assert dtypes(load(path, input_types={"x0": "uint8"}), "x0", "y") == ["uint8", "int32"]


def test_arithmetic_widens(tmp_path: Path) -> None:
    nodes = [node("Add", "x0 x1", "a"), node("Mul", "a c", "b"), node("ReduceSum", "b axes", "y", keepdims=0)]
    constants = {"c": np.array([100], np.float32), "axes": np.array([1], np.int64)}
    path = build(tmp_path, nodes, constants, (2, 3), (3,))
    a, b = floats(2, 3), floats(3, seed=1)
    graph = load(path, samples=[a.astype(np.int8), b.astype(np.int8)])
    assert dtypes(graph, "a", "b", "y") == ["int32"] * 3
    np.testing.assert_array_equal(interpret(graph, [a, b])[0], ((a + b) * 100).sum(1))


def test_means_round(tmp_path: Path) -> None:
    graph = load(
        build(tmp_path, [node("ReduceMean", "x0 axes", "y")], {"axes": np.array([1])}, (1, 4)),
        input_types={"x0": "int8"},
    )
    assert graph.nodes[0].op == "IntegerMean"
    assert interpret(graph, [np.array([[1, 2, 2, 2]])])[0].tolist() == [[2]]


def test_division_with_delta_is_the_integer_one(tmp_path: Path) -> None:
    nodes = [node("Div", "x0 x1", "y", Delta=16, eps=1, eta=20)]
    path = build(tmp_path, nodes, {}, (3,), (3,))
    assert load(path, input_types={"x0": "int8", "x1": "uint8"}).nodes[0].op == "IntegerDiv"
    assert load(path).nodes[0].op == "Div"


def test_operands_of_several_types_meet_in_one_that_holds_them(tmp_path: Path) -> None:
    path = build(tmp_path, [node("Concat", "x0 x1", "y", axis=0)], {}, (2,), (3,))
    graph = load(path, input_types={"x0": "int8", "x1": "uint8"})
    assert dtypes(graph, "y") == ["int16"]
    assert interpret(graph, [np.array([-5, 5]), np.array([0, 200, 255])])[0].tolist() == [-5, 5, 0, 200, 255]


def test_dequantisation_goes_to_float(tmp_path: Path) -> None:
    nodes = [node("Sub", "x0 zero", "a"), node("Mul", "a scale", "y")]
    constants = {"zero": np.array(3, np.float32), "scale": np.array(0.1, np.float32)}
    graph = load(build(tmp_path, nodes, constants, (3,)), input_types={"x0": "int8"})
    assert dtypes(graph, "a", "y") == ["int32", "float32"]
    result = interpret(graph, [np.array([-128, 3, 127])])[0]
    np.testing.assert_allclose(result, np.array([-131, 0, 124]) * np.float32(0.1), rtol=1e-6)


def test_quantisation_stays_float(tmp_path: Path) -> None:
    nodes = [node("Div", "x0 scale", "a"), node("Round", "a", "b"), requant("b", "y")]
    graph = load(build(tmp_path, nodes, {"scale": np.array(0.5, np.float32)}, (3,)))
    assert dtypes(graph, "x0", "b", "y") == ["float32", "float32", "int8"]


def test_clip_bounds_outside_the_type_bound_nothing(tmp_path: Path) -> None:
    constants = {"lo": np.array(0, np.float32), "hi": np.array(1e9, np.float32)}
    graph = load(build(tmp_path, [node("Clip", "x0 lo hi", "y")], constants, (3,)), input_types={"x0": "int8"})
    assert interpret(graph, [np.array([-5, 5, 127])])[0].tolist() == [0, 5, 127]


def test_operators_without_integer_meaning_get_floats(tmp_path: Path) -> None:
    graph = load(build(tmp_path, [node("Sigmoid", "x0", "y")], {}, (3,)), input_types={"x0": "int8"})
    assert [n.op for n in graph.nodes] == ["Cast", "Sigmoid"]
    assert dtypes(graph, "y") == ["float32"]


def test_operators_of_ita_make_the_network_integer(tmp_path: Path) -> None:
    constants = {f"w{name}": floats(2, 16, 16) for name in "qkvo"}
    constants |= {f"b{name}": floats(2, 16) * 1000 for name in "qkvo"}
    weights = " ".join(f"w{name} b{name}" for name in "qkvo")
    scales = {
        f"{s}_requant_{what}": 64.0 for s in ("wq", "wk", "wv", "wo", "preattn", "postattn") for what in ("mul", "div")
    }
    nodes = [
        node("MHSA", f"x0 x0 x0 {weights}", "a", heads=2, dim_head=16, **scales),
        node("ITAGelu", "a", "g", b=-80, c=-7091, mult=74, shift=20),
        node("ITASoftmax", "g", "y"),
    ]
    graph = load(build(tmp_path, nodes, constants, (16, 16)))
    assert dtypes(graph, *graph.nodes[0].inputs[3:5], "a", "g", "y") == ["int8", "int32", "int8", "int8", "uint8"]
