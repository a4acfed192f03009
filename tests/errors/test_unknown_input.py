"""error[unknown-input]: an option names an input that the network does not have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.frontend import load


@pytest.fixture
def network(tmp_path: Path) -> Path:
    return write(tmp_path / "m.onnx", model([node("Relu", "image", "y")], [value("image", (2, 3))], ["y"]))


def test_input_type(network: Path) -> None:
    with pytest.raises(TilewrightError) as caught:
        load(network, input_types={"imgae": "int8"})
    assert caught.value.code == "unknown-input"
    assert caught.value.what.startswith("--input-type names 'imgae'")
    assert caught.value.help == "did you mean 'image'? known: image"


def test_constant(network: Path) -> None:
    with pytest.raises(TilewrightError) as caught:
        load(network, constants={"something else": np.zeros(1)})
    assert caught.value.code == "unknown-input"
    assert caught.value.help == "known: image"
