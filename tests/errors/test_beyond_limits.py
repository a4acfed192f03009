"""error[beyond-limits]: no schedule keeps to what must not be exceeded."""

from __future__ import annotations

import pytest

from schedule.small import chain, pair
from tilewright.api.scheduling import ScheduleOptions, schedule_network
from tilewright.errors import TilewrightError
from tilewright.mapping.results import Effort


def test_beyond_limits() -> None:
    options = ScheduleOptions(split=(), limits={"latency": 5.0, "energy": 1e12}, effort=Effort(mappings=20, steps=20))
    with pytest.raises(TilewrightError) as caught:
        schedule_network(chain(1), pair(), options=options)
    assert caught.value.code == "beyond-limits"
    assert "its latency is" in caught.value.reasons[0]
    assert "energy" not in caught.value.reasons[0]
