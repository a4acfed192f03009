"""A layer of an encoder on a cluster with ITA: exact, all of it on the engine but the cut into tiles, and fast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples.encoders import ENCODERS, encoder

import tilewright
from tilewright.core.interpret import interpret
from tilewright.frontend import load


@pytest.mark.parametrize("name", ENCODERS)
def test_a_network_is_the_same_again(name: str) -> None:
    (model, x, macs), (again, y, _) = (encoder(name, 1, 3) for _ in range(2))
    assert model.SerializeToString() == again.SerializeToString()
    np.testing.assert_array_equal(x, y)
    assert macs > ENCODERS[name].rows * ENCODERS[name].width


def test_a_layer_of_mobilebert(tmp_path: Path) -> None:
    model, x, macs = encoder("mobilebert", 1)
    path = tmp_path / "layer.onnx"
    path.write_bytes(model.SerializeToString())
    expected = interpret(load(path, samples=[x]), [x])
    ran = tilewright.run(path, tilewright.Options(platform="snitch-ita"), inputs=[x], expected=expected, profile=True)
    assert ran.right
    plan = ran.compiled.plan
    by_cores = {node.op for node, choice in zip(plan.graph.nodes, plan.choices, strict=True) if choice.engine != "ita"}
    assert by_cores == {"Transpose", "Reshape"}
    assert ran.cycles is not None
    assert macs / 1024 / ran.cycles > 0.45, "of the engine's peak"
    # Some jobs are started before anything is waited for.
    assert all(group.cycles == sum(group.phases.values()) for group in ran.groups)
    assert 0 <= ran.cycles - sum(group.cycles for group in ran.groups) < 500
