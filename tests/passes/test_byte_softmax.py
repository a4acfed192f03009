"""Softmax of bytes along axes that no kernel takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_models import model, node, value, write
from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.api import Options
from tilewright.api.running import run_model
from tilewright.passes.byte_softmax import byte_softmax


def test_an_axis_before_others(golden: Golden) -> None:
    b = Builder()
    made = b.op("Softmax", b.input("x", "int8[2,5,4]"), name="y", axis=1, x_scale=0.05)
    golden("passes/byte_softmax.txt", text(b.graph(made), byte_softmax))


@pytest.mark.parametrize(("kind", "axis"), [("int8[2,5,4]", -1), ("uint8[2,5,1]", 1), ("float32[2,5,4]", 1)])
def test_what_kernels_take_stays(kind: str, axis: int) -> None:
    b = Builder()
    graph = b.graph(b.op("Softmax", b.input("x", kind), name="y", axis=axis))
    assert ops(applied(graph, byte_softmax)) == ["Softmax"]


@pytest.mark.parametrize("platform", ["generic", "siracusa"])
def test_a_quantised_network_has_classes_of_pixels(platform: str, tmp_path: Path) -> None:
    """Between QuantizeLinear and DequantizeLinear, along channels."""
    steps = {"step": np.array(0.05, np.float32), "unit": np.array(1 / 256, np.float32)}
    constants = {**steps, "zero": np.array(3, np.int8), "least": np.array(-128, np.int8)}
    nodes = [
        node("DequantizeLinear", "x step zero", "a"),
        node("Softmax", "a", "b", axis=1),
        node("QuantizeLinear", "b unit least", "y"),
    ]
    built = model(nodes, [value("x", (1, 5, 4, 4), onnx.TensorProto.INT8)], ["y"], constants=constants)
    built.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT8
    x = np.random.default_rng(0).integers(-128, 128, (1, 5, 4, 4)).astype(np.int8)
    ran = run_model(write(tmp_path / "m.onnx", built), Options(platform=platform), inputs=[x])
    powers = np.exp((x - 3.0) * 0.05)
    wanted = np.rint(powers / powers.sum(1, keepdims=True) * 256) - 128
    assert np.abs(ran.outputs[0] - np.clip(wanted, -128, 127)).max() <= 1
