"""A training step of a small classifier, as training exporters write it, against derivatives in plain numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import integer_oracle as oracle
from tilewright.api import run_model
from tilewright.codegen.build import SANITIZE, STRICT

BATCH, WIDTH, CLASSES, RATE = 3, 10, 5, 0.25


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    domain = "com.microsoft" if op.endswith("Grad") else "ai.onnx.preview.training" if op == "SGD" else ""
    return helper.make_node(op, inputs.split(), [output], domain=domain, **attributes)


def test_a_training_step(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
    w = rng.normal(size=(WIDTH, CLASSES)).astype(np.float32)
    scale, bias = rng.normal(size=(2, WIDTH)).astype(np.float32)
    labels = rng.integers(0, CLASSES, BATCH)
    nodes = [
        node("LayerNormalization", "x scale bias", "normal", epsilon=1e-5),
        node("Gelu", "normal", "active"),
        node("MatMul", "active w", "logits"),
        # The log-probabilities are declared as its only output.
        node("SoftmaxCrossEntropyLoss", "logits labels", "log_prob"),
        node("SoftmaxCrossEntropyLossGrad", "log_prob labels", "d_logits"),
        node("Gemm", "active d_logits", "d_w", transA=1),
        node("SGD", "w d_w", "w_new", lr=RATE),
        node("Gemm", "d_logits w", "d_active", transB=1),
        node("GeluGrad", "d_active normal", "d_normal"),
        node("LayerNormalizationGrad", "d_normal x scale bias", "d_x", epsilon=1e-5),
        node("Softmax", "x", "weights"),
        node("SoftmaxGrad", "d_x weights", "d_scores"),
    ]
    inputs = {"x": x, "labels": labels, "w": w}
    shapes = {"log_prob": (BATCH, CLASSES), "w_new": (WIDTH, CLASSES), "d_x": x.shape, "d_scores": x.shape}
    graph = helper.make_graph(
        nodes,
        "training",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items()],
        [numpy_helper.from_array(scale, "scale"), numpy_helper.from_array(bias, "bias")],
        value_info=[helper.make_tensor_value_info("log_prob", TensorProto.FLOAT, shapes["log_prob"])],
    )
    domains = ("com.microsoft", "ai.onnx.preview.training")
    opsets = [helper.make_opsetid("", 20), *(helper.make_opsetid(domain, 1) for domain in domains)]
    path = tmp_path / "network.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())

    wide = x.astype(np.float64)
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * scale + bias
    active = normal * oracle.normal_distribution(normal)
    log_prob = oracle.log_softmax(active @ w)
    d_logits = oracle.cross_entropy_grad(log_prob, labels)
    d_x = oracle.layer_norm_grad(oracle.gelu_grad(d_logits @ w.T, normal), x, scale, 1e-5)
    d_scores = oracle.softmax_grad(d_x, np.exp(oracle.log_softmax(x)))
    expected = [log_prob, w - RATE * active.T @ d_logits, d_x, d_scores]
    ran = run_model(
        path,
        inputs=list(inputs.values()),
        expected=[array.astype(np.float32) for array in expected],
        flags=(*STRICT, *SANITIZE, "-O1"),
    )
    assert [c.name for c in ran.comparisons if c.wrong] == []
