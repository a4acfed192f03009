"""Networks on the simulated Siracusa: exact with much and little L1, on one core and on several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_models import write
from onnx_networks import Model
from tilewright.api import Options, run_case, run_model
from tilewright.codegen.build import STRICT
from tilewright.machine.target import Sizes

MODELS = sorted((Path(__file__).parent.parent.parent / "examples" / "models").glob("*.onnx"))


@pytest.mark.sample(every=3, by=("model",))
@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
@pytest.mark.parametrize(("l1", "cores"), [(16384, 8), (65536, 1), (229376, 8)])
def test_examples(model: Path, l1: int, cores: int) -> None:
    options = Options(platform="siracusa", sizes=Sizes({"L1": l1}, cores=cores))
    result = run_case(model.stem, model, options, flags=STRICT)
    assert result.status == "pass", result.detail


def test_what_is_found_of_tensors_side_by_side(tmp_path: Path) -> None:
    """Values and indices are of one type, and few: gcc must not take them for one array, and read another core's."""
    m = Model()
    values = np.array([[61, -1]] * 4)
    found = m.ops("TopK", m.input("x", values), np.array([2]), outputs=2, largest=0)
    content, inputs = m.network(*found, types=[onnx.TensorProto.INT64] * 2)
    options = Options(platform="siracusa", sizes=Sizes({"L1": 2048}, home="L3", cores=3))
    ran = run_model(write(tmp_path / "network.onnx", content), options, inputs=inputs)
    assert np.array_equal(ran.outputs[0], np.sort(values))
