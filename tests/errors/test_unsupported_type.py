"""error[unsupported-type]: an element type that no code handles. On import it is listed as unsupported-operator."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from onnx_models import model, node, value, write
from tilewright.core.op import call_of, parse_type
from tilewright.errors import TilewrightError
from tilewright.frontend import load
from tilewright.ops import operators


def test_the_operator_refuses_it() -> None:
    with pytest.raises(TilewrightError, match="'narrow'") as caught:
        call_of(operators()["Cast"], [parse_type("float32[2]")], {"to": onnx.TensorProto.FLOAT8E4M3FN}, name="narrow")
    assert caught.value.code == "unsupported-type"
    assert "float32" in caught.value.help


def test_the_import_lists_it(tmp_path: Path) -> None:
    nodes = [node("Cast", "x", "y", name="narrow", to=onnx.TensorProto.FLOAT8E4M3FN)]
    with pytest.raises(TilewrightError, match="'narrow'") as caught:
        load(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["y"])))
    assert caught.value.code == "unsupported-operator"
