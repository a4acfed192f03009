"""Times of transfers are those of single statements, as the simulator sees them."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from tilewright.api import calibrating_times
from tilewright.api.calibrating import calibrate, outdated
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import FILE, TIMES
from tilewright.machine.staleness import stale_times, warnings
from tilewright.machine.target import load_platform, with_times

PLATFORM = "siracusa"


def test_times_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured before plays no part: the few programs here say the same as all of them."""
    monkeypatch.setattr(calibrating_times, "COUNTS", (3,))
    (result,) = calibrate(PLATFORM, parts=[TIMES], output=tmp_path)
    found = json.loads((tmp_path / FILE).read_text())[PLATFORM][TIMES]
    assert result.name == TIMES
    assert found["terms"] == dict(result.calibration.terms)
    before = load_platform(PLATFORM).own_calibrations[TIMES].terms
    assert found["terms"].keys() == before.keys()
    for name in ("wait", "mchan.issue", "mchan.issue_rows", "wait far", "relay.issue", "udma.request"):
        assert found["terms"][name] == pytest.approx(before[name], rel=0.1)


def test_errors_are_those_of_programs_held_out() -> None:
    ran = [{"wait": [10.0, 10.0]}, {"wait": [20.0]}, {"network": [7.0]}]
    assert calibrating_times.medians(ran) == {"wait": 10.0, "network": 7.0}
    assert calibrating_times.held_out_errors(ran) == [1.0, 1.0, -0.5]


def test_a_faster_runtime_takes_its_place() -> None:
    platform = load_platform(PLATFORM)
    changed = with_times(platform, {"mchan.issue": 7.0, "wait": 5.0, "cluster.fork": 3.0})
    assert (changed.links["mchan"].issue, changed.operations["wait"], changed.cores.fork) == (7.0, 5.0, 3.0)
    assert changed.links["mchan"].issue_rows == platform.links["mchan"].issue_rows


def test_what_changed_is_told() -> None:
    platform = load_platform(PLATFORM)
    assert stale_times(platform) == ()
    assert stale_times(platform, {"compiler": "another"}) == ("their compiler changed",)
    assert (TIMES, ("their compiler changed",)) not in outdated(PLATFORM)
    key = MappingProxyType({**platform.own_calibrations[TIMES].key, "sources": "others"})
    changed = replace(platform.own_calibrations[TIMES], key=key)
    other = replace(platform, own_calibrations=MappingProxyType({TIMES: changed}))
    assert warnings(platform, []) == ()
    (line,) = warnings(other, [])
    assert "predicted cycles of transfers" in line
    assert line.endswith("run `tilewright calibrate --platform siracusa --times`")


def test_a_machine_without_such_a_dma_has_none() -> None:
    platform = load_platform(PLATFORM)
    without = replace(platform, links=MappingProxyType({"local": platform.links["local"]}))
    with pytest.raises(TilewrightError, match="times of 'siracusa' cannot be calibrated"):
        calibrating_times.measured_times(without)


def test_machines_in_qemu_are_refused() -> None:
    with pytest.raises(TilewrightError, match="times of 'cortex-m4' cannot be measured"):
        calibrate("cortex-m4", parts=[TIMES])
