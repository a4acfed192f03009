"""Forms of old opsets mean what they always meant: onnxruntime is the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_models import Array, model, node, onnxruntime_results, value, write
from tilewright.core.interpret import interpret
from tilewright.frontend import load

Case = tuple[int, tuple[int, ...], onnx.NodeProto, dict[str, Array]]


def floats(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


PLACES = np.linspace(-1.2, 1.2, 12, dtype=np.float32).reshape(1, 2, 3, 2)

CASES: dict[str, Case] = {
    "squeeze": (11, (1, 3, 1), node("Squeeze", "x", "y", axes=[0]), {}),
    "squeeze-all": (11, (1, 3, 1), node("Squeeze", "x", "y"), {}),
    "unsqueeze": (11, (3, 4), node("Unsqueeze", "x", "y", axes=[0, 3]), {}),
    "reduce-sum": (11, (3, 4, 5), node("ReduceSum", "x", "y", axes=[-1, 0], keepdims=0), {}),
    "reduce-mean": (13, (3, 4, 5), node("ReduceMean", "x", "y", axes=[1]), {}),
    "reduce-l2": (13, (3, 4, 5), node("ReduceL2", "x", "y"), {}),
    "split": (11, (6, 2), node("Split", "x", "y z", axis=0, split=[2, 4]), {}),
    "split-even": (11, (6, 2), node("Split", "x", "y z w"), {}),
    "split-even-13": (13, (6, 2), node("Split", "x", "y z w"), {}),
    "clip": (7, (3, 4), node("Clip", "x", "y", min=-0.5, max=0.25), {}),
    "clip-below": (7, (3, 4), node("Clip", "x", "y", min=0.0), {}),
    "pad": (10, (2, 3), node("Pad", "x", "y", pads=[0, 1, 2, 0], value=1.5), {}),
    "pad-reflect": (10, (2, 3), node("Pad", "x", "y", pads=[0, 1, 1, 2], mode="reflect"), {}),
    "slice": (9, (4, 5, 6), node("Slice", "x", "y", starts=[1, -3], ends=[3, 9], axes=[0, 2]), {}),
    "slice-no-axes": (9, (4, 5, 6), node("Slice", "x", "y", starts=[1, 0], ends=[-1, 2]), {}),
    "top-k": (9, (4, 6), node("TopK", "x", "y z", k=3, axis=1), {}),
    "top-k-10": (10, (4, 6), node("TopK", "x k", "y z", axis=0), {"k": np.array([2], np.int64)}),
    "softmax": (11, (2, 3, 4, 5), node("Softmax", "x", "y", axis=2), {}),
    "softmax-default": (11, (2, 3, 4), node("Softmax", "x", "y"), {}),
    "softmax-last": (11, (2, 3, 4), node("Softmax", "x", "y", axis=-1), {}),
    "log-softmax": (11, (2, 3, 4), node("LogSoftmax", "x", "y", axis=0), {}),
    "hardmax": (11, (2, 3, 4), node("Hardmax", "x", "y", axis=1), {}),
    "upsample": (7, (1, 2, 3, 4), node("Upsample", "x", "y", mode="nearest", scales=[1.0, 1.0, 2.0, 3.0]), {}),
    "upsample-9": (9, (1, 2, 3, 4), node("Upsample", "x s", "y", mode="linear"), {"s": floats(1, 1, 2, 2)}),
    "resize-10": (10, (1, 2, 4, 6), node("Resize", "x s", "y", mode="nearest"), {"s": floats(1, 1, 0.5, 0.4)}),
    "resize-10-grow": (10, (1, 2, 4, 6), node("Resize", "x s", "y", mode="linear"), {"s": floats(1, 1, 1.5, 2)}),
    "resize-10-both": (10, (1, 2, 5, 4), node("Resize", "x s", "y", mode="nearest"), {"s": floats(1, 1, 0.7, 2.6)}),
    "grid-sample": (16, (1, 2, 3, 4), node("GridSample", "x g", "y", mode="bilinear"), {"g": PLACES}),
    "grid-sample-cubic": (16, (1, 2, 3, 4), node("GridSample", "x g", "y", mode="bicubic"), {"g": PLACES}),
    "roi-align": (
        10,
        (1, 2, 5, 6),
        node("RoiAlign", "x r i", "y", output_height=2, output_width=3, sampling_ratio=2),
        {"r": floats(0.5, 1, 4, 3.5, 1, 1, 1.2, 1.3).reshape(2, 4), "i": np.array([0, 0])},
    ),
    "dropout": (7, (3, 4), node("Dropout", "x", "y", ratio=0.3), {}),
    "dropout-mask": (12, (3, 4), node("Dropout", "x", "y z"), {}),
    "batch-norm": (
        7,
        (2, 3, 4),
        node("BatchNormalization", "x a b m v", "y", epsilon=0.01, momentum=0.8),
        {"a": floats(1, 2, 3), "b": floats(0, -1, 1), "m": floats(0.5, 0, 1), "v": floats(1, 2, 0.3)},
    ),
    "group-norm": (
        18,
        (2, 6, 5),
        node("GroupNormalization", "x a b", "y", num_groups=2),
        {"a": floats(1, 2), "b": floats(0, -1)},
    ),
    "instance-norm": (
        9,
        (2, 3, 5),
        node("InstanceNormalization", "x a b", "y", epsilon=0.01),
        {"a": floats(1, 2, 3), "b": floats(0, -1, 4)},
    ),
    "rms-norm-one-scale": (
        23,
        (2, 3, 4),
        node("RMSNormalization", "x a", "y", axis=1),
        {"a": np.array(2.5, np.float32)},
    ),
    "rms-norm-scales": (
        23,
        (2, 3, 4),
        node("RMSNormalization", "x a", "y", axis=-2),
        {"a": floats(1, -2, 3).reshape(3, 1)},
    ),
    "layer-norm-scales": (
        17,
        (2, 3, 4),
        node("LayerNormalization", "x a b", "y", axis=1),
        {"a": floats(1, 2, 3, -4), "b": floats(1).reshape(1, 1)},
    ),
    "scatter": (
        9,
        (3, 4),
        node("Scatter", "x i u", "y", axis=1),
        {"i": np.array([[1], [2], [0]]), "u": floats(7, 8, 9).reshape(3, 1)},
    ),
    "gemm": (
        7,
        (3, 4),
        node("Gemm", "x w b", "y", transB=1),
        {"w": floats(*range(8)).reshape(2, 4), "b": floats(1, 2)},
    ),
    "expand": (8, (3, 1), node("Expand", "x s", "y"), {"s": np.array([2, 1, 4])}),
    "constant-of-shape": (9, (4,), node("ConstantOfShape", "s", "y"), {"s": np.array([4])}),
    "eye-like": (9, (4, 5), node("EyeLike", "x", "y", k=1), {}),
    "average-pool": (7, (1, 2, 6), node("AveragePool", "x", "y", kernel_shape=[3], pads=[1, 1]), {}),
    "max-pool": (8, (1, 2, 6), node("MaxPool", "x", "y", kernel_shape=[2], strides=[2], storage_order=0), {}),
    "cast": (9, (4,), node("Cast", "x", "y", to=6), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_old_form(name: str, tmp_path: Path) -> None:
    opset, shape, old, constants = CASES[name]
    built = model([old], [value("x", shape)], list(old.output), constants=constants, opset=opset)
    path = write(tmp_path / "m.onnx", built)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    results = interpret(load(path), [x])
    for result, wanted in zip(results, _oracle(built, x), strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def _oracle(built: onnx.ModelProto, x: Array) -> list[Array]:
    # The outputs' declared types are placeholders that onnxruntime would reject.
    types = {"TopK": [1, 7], "Dropout": [1, 9], "Cast": [6]}.get(built.graph.node[0].op_type, [])
    for output, kind in zip(built.graph.output, types, strict=False):
        output.type.tensor_type.elem_type = kind
    return onnxruntime_results(built, {"x": x})


def test_old_forms_in_new_opsets_are_taken_too(tmp_path: Path) -> None:
    built = model([node("Pad", "x", "y", pads=[0, 0, 1, 1], value=2.0)], [value("x", (1, 1))], ["y"], opset=13)
    graph = load(write(tmp_path / "m.onnx", built))
    np.testing.assert_array_equal(interpret(graph, [np.ones((1, 1))])[0], [[1, 2], [2, 2]])


@pytest.mark.parametrize("given", [{}, {"eps": 0.5}])
def test_rms_norm_by_the_name_of_quantisers(given: dict[str, float], tmp_path: Path) -> None:
    built = model([node("RMSNorm", "x w", "y", **given)], [value("x", (2, 3))], ["y"], constants={"w": floats(1, 2, 3)})
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    graph = load(write(tmp_path / "m.onnx", built))
    assert [made.op for made in graph.nodes] == ["RMSNormalization"]
    wanted = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + given.get("eps", 1e-12)) * [1, 2, 3]
    np.testing.assert_allclose(interpret(graph, [x])[0], wanted, rtol=1e-5)


def test_stacked_gemm(tmp_path: Path) -> None:
    w = np.arange(8, dtype=np.float32).reshape(4, 2)
    constants = {"w": w, "b": floats(1, 2)}
    built = model([node("Gemm", "x w b", "y")], [value("x", (2, 3, 4))], ["y"], constants=constants)
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    result = interpret(load(write(tmp_path / "m.onnx", built)), [x])[0]
    np.testing.assert_allclose(result, x @ w + [1, 2], rtol=1e-5)


def test_log_probabilities_alone_are_known_by_their_rank(tmp_path: Path) -> None:
    inputs = [value("x", (2, 3)), value("labels", (2,), onnx.TensorProto.INT64)]
    built = model([node("SoftmaxCrossEntropyLoss", "x labels", "y")], inputs, ["y"], opset=13)
    built.graph.output[0].CopyFrom(value("y", (2, 3)))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    result = interpret(load(write(tmp_path / "m.onnx", built)), [x, np.array([0, 2])])[0]
    np.testing.assert_allclose(result, x - np.log(np.exp(x).sum(1, keepdims=True)), rtol=1e-5)
