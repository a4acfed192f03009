"""The standard networks over three engines: all of them can be scheduled, and the checker finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import Case
from tilewright.api.scheduling import ScheduleOptions, schedule_network
from tilewright.mapping.results import Effort
from tilewright.schedule.checker import faults

TRIO = Path(__file__).parent.parent.parent / "examples" / "many_core" / "trio.yaml"
QUICK = ScheduleOptions(split=(("K", 2), ("OY", 4)), evaluations=50, most_bits=8, effort=Effort(mappings=50, steps=50))
"""Any mapping of nodes will do."""


@pytest.mark.slow
@pytest.mark.cases("standard_networks")
def test_every_network_has_a_schedule(case: Case) -> None:
    found = schedule_network(case.network, TRIO, options=QUICK)
    assert faults(found.schedule, found.costs) == []
    assert found.bound <= found.schedule.latency
