"""error[bad-attribute]: an attribute is unknown, missing or out of range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onnx_models import model, node, value, write
from tilewright.core.op import call_of, parse_type
from tilewright.errors import TilewrightError
from tilewright.frontend import load
from tilewright.ops import operators


@pytest.mark.parametrize(
    ("operator", "attributes", "said"),
    [
        ("Concat", {"axis": 2}, "axis=2 is outside a tensor of rank 2"),
        ("Transpose", {"perm": [0, 0]}, "perm=[0, 0]"),
        ("Cast", {}, "needs the attribute to"),
        ("LeakyRelu", {"alpha": ""}, "'alpha' must be a number"),
    ],
)
def test_bad_attribute(operator: str, attributes: dict[str, Any], said: str, tmp_path: Path) -> None:
    built = model([node(operator, "x", "y", name="here", **attributes)], [value("x", (2, 3))], ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert caught.value.code == "bad-attribute"
    assert said in caught.value.what
    assert "'here'" in caught.value.what


def test_unknown_attributes_of_a_call() -> None:
    with pytest.raises(TilewrightError, match="has no attribute colour") as caught:
        call_of(operators()["Softmax"], [parse_type("float32[2]")], {"colour": 1}, name="here")
    assert caught.value.code == "bad-attribute"
    assert "axis" in caught.value.help


def test_long_attributes_are_shortened(tmp_path: Path) -> None:
    built = model([node("Transpose", "x", "y", perm=list(range(5000)))], [value("x", (2, 3))], ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", built))
    assert len(str(caught.value)) < 3000
    assert "characters left out" in str(caught.value)
