"""What was measured of kernels and loop nests belongs to what there is now."""

from __future__ import annotations

import pytest

from tilewright.api.calibrating import kernels_with_terms, outdated
from tilewright.machine.calibration import NESTS
from tilewright.machine.target import load_platform, platform_names

PLATFORMS = [load_platform(name) for name in platform_names()]
SIMULATED = [platform.name for platform in PLATFORMS if platform.timings]
COUNTED = [platform.name for platform in PLATFORMS if platform.qemu]
"""Of these, terms of some kernels of `generic` are not yet as close."""


@pytest.mark.parametrize("platform", SIMULATED + COUNTED)
def test_nothing_is_out_of_date(platform: str) -> None:
    """`tilewright calibrate --platform P --kernel NAME` brings a kernel up to date, `--nests` loop nests."""
    assert outdated(platform) == []


@pytest.mark.parametrize("platform", SIMULATED)
def test_predictions_of_shapes_held_out(platform: str) -> None:
    machine = load_platform(platform)
    found = {k.path.name: machine.calibrations[k.path.name].held_out for k in kernels_with_terms(machine)}
    # Operators of all kinds are less alike than layers of one kernel.
    assert not machine.timings or machine.calibrations[NESTS].held_out["median"] < 0.15
    assert {name: errors["median"] for name, errors in found.items() if errors["median"] > 0.1} == {}
