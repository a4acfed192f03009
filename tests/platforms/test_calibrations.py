"""What was measured of kernels belongs to what there is now."""

from __future__ import annotations

import pytest

from tilewright.api.calibrating import kernels_with_terms, outdated
from tilewright.machine.target import load_platform, platform_names

SIMULATED = [name for name in platform_names() if load_platform(name).timings]


@pytest.mark.parametrize("platform", SIMULATED)
def test_no_kernel_is_out_of_date(platform: str) -> None:
    """`tilewright calibrate --platform P --kernel NAME` brings one up to date."""
    assert outdated(platform) == []


@pytest.mark.parametrize("platform", SIMULATED)
def test_predictions_of_shapes_held_out(platform: str) -> None:
    machine = load_platform(platform)
    found = {k.path.name: machine.calibrations[k.path.name].held_out for k in kernels_with_terms(machine)}
    assert {name: errors["median"] for name, errors in found.items() if errors["median"] > 0.1} == {}
