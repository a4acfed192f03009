"""Loop nests are measured on layers that no kernel fits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tilewright.api import calibrating_nests
from tilewright.api.calibrating import calibrate, outdated
from tilewright.api.sampled_layers import draw_nest, network
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY, call_node
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import FILE, NESTS
from tilewright.machine.staleness import stale_nests, warnings
from tilewright.machine.target import load_platform

PLATFORM = "siracusa"
FEW = ("Neg", "Sin", "Sub", "ReduceSum", "Sign")


def test_cycles_of_operations_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrating_nests, "operators", lambda: {name: REGISTRY[name] for name in FEW})
    monkeypatch.setattr(calibrating_nests, "TOGETHER", 2)
    (result,) = calibrate(PLATFORM, parts=[NESTS], output=tmp_path)
    found = json.loads((tmp_path / FILE).read_text())[PLATFORM][NESTS]
    assert result.name == NESTS
    assert found["terms"] == dict(result.calibration.terms)
    assert 60 < found["terms"]["sinf"] < 300
    assert "begin" not in found


def test_layers_are_for_no_kernel() -> None:
    platform, random = load_platform(PLATFORM), np.random.default_rng(0)
    kernels = [kernel for kernel in platform.kernels if kernel.op == "Conv"]
    drawn = [draw_nest(REGISTRY["Conv"], kernels, random, "x") for _ in range(20)]
    found = [layer for layer in drawn if layer is not None]
    assert found
    for graph in (network([layer]) for layer in found):
        node = graph.nodes[0]
        call = call_node(graph, node)
        names = binding_names(call)
        assert all(why_not(kernel, call, node, graph, names, {}) for kernel in kernels)


def test_another_function_or_compiler_is_told() -> None:
    platform = load_platform(PLATFORM)
    assert stale_nests(platform) == ()
    assert stale_nests(platform, {"compiler": "another"}) == ("their compiler changed",)
    assert warnings(platform, [None]) == ()
    assert (NESTS, ("their compiler changed",)) not in outdated(PLATFORM)


def test_machines_in_qemu_are_refused() -> None:
    with pytest.raises(TilewrightError, match="loop nests of 'cortex-m4' cannot be measured"):
        calibrate("cortex-m4", parts=[NESTS])
