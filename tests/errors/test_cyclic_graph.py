"""error[cyclic-graph]: nodes that wait for each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def test_cyclic_graph(tmp_path: Path) -> None:
    nodes = [
        node("Add", "x c", "a", name="first"),
        node("Relu", "a", "b", name="second"),
        node("Neg", "b", "c", name="third"),
    ]
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "m.onnx", model(nodes, [value("x", (2, 3))], ["b"])))
    assert caught.value.code == "cyclic-graph"
    assert [reason.split("'")[1] for reason in caught.value.reasons] == ["first", "second", "third"]
    assert caught.value.help
