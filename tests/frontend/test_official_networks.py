"""Every model that ships with onnx is imported, or refused with an error a user understands."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tilewright.errors import TilewrightError
from tilewright.frontend import load

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
LIGHT = sorted((DATA / "light").glob("*.onnx"))
REFUSALS = {"unsupported-operator", "not-constant", "dynamic-shape"}


@pytest.mark.parametrize("folder", ["simple", "pytorch-converted", "pytorch-operator"])
def test_small_models(folder: str) -> None:
    found = {path: outcome(path) for path in sorted((DATA / folder).glob("*/model.onnx"))}
    unexpected = {path.parent.name: code for path, code in found.items() if code not in {"", *REFUSALS}}
    assert found
    assert not unexpected


@pytest.mark.slow
def test_node_models() -> None:
    found = {path: outcome(path) for path in sorted((DATA / "node").glob("*/model.onnx"))}
    unexpected = {path.parent.name: code for path, code in found.items() if code not in {"", *REFUSALS}}
    assert len(found) > 1700
    assert not unexpected


@pytest.mark.parametrize("path", LIGHT, ids=[path.stem for path in LIGHT])
def test_whole_networks(path: Path) -> None:
    graph = load(path)
    assert graph.type(graph.outputs[0]).size == 1000


def outcome(path: Path) -> str:
    """Empty, or the code of the error."""
    try:
        load(path)
    except TilewrightError as error:
        return error.code
    return ""
