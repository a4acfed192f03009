"""The example networks on the simulated Siracusa: exact with much and little L1, on one and on eight cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.api import Options, run_case
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
