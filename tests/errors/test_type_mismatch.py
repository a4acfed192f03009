"""error[type-mismatch]: operands have element types that do not go together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def test_operands_of_different_types(tmp_path: Path) -> None:
    inputs = [value("x", (2, 3)), value("z", (2, 3), onnx.TensorProto.INT32)]
    built = model([node("Add", "x z", "y", name="sum")], inputs, ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "type-mismatch"
    assert "float32" in caught.value.what
    assert "int32" in caught.value.what
    assert "'sum'" in caught.value.what
    assert caught.value.help


def test_scales_of_integers_that_are_none(tmp_path: Path) -> None:
    nodes = [node("RequantShift", "x mul add", "y", name="scale", div=16.0, n_levels=256.0, signed=1.0)]
    constants = {"mul": np.array(0.5, np.float32), "add": np.array(1, np.float32)}
    built = model(nodes, [value("x", (2, 3))], ["y"], constants=constants)
    with pytest.raises(TilewrightError, match="'mul'") as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "type-mismatch"


@pytest.mark.parametrize("op", ["DequantizeLinear", "ConvInteger", "MatMulInteger"])
def test_a_zero_point_of_another_type(op: str, tmp_path: Path) -> None:
    shape = (2, 2, 1, 1) if op == "ConvInteger" else (2, 2)
    second = np.array(0.5, np.float32) if op == "DequantizeLinear" else np.ones(shape, np.uint8)
    constants = {"second": second, "zero": np.array(-3, np.int8)}
    built = model(
        [node(op, "x second zero", "y")], [value("x", shape, onnx.TensorProto.UINT8)], ["y"], constants=constants
    )
    with pytest.raises(TilewrightError, match="zero_point must be uint8") as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "type-mismatch"
