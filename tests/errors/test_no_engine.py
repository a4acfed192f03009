"""error[no-engine]: a layer on an engine that cannot compute it."""

from __future__ import annotations

import numpy as np
import pytest

from schedule.small import chain, even_costs, pair
from tilewright.errors import TilewrightError
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling


def test_no_engine() -> None:
    fabric = fabric_of(pair())
    nodes = split_network(chain(), {}, fabric.slots)
    costs = even_costs(nodes, fabric)
    costs.cycles[1, 1] = -1
    with pytest.raises(TilewrightError) as caught:
        Scheduling(nodes, fabric, costs).evaluate(np.array([0, 1, 0]))
    assert caught.value.code == "no-engine"
    assert caught.value.what == "'c1' cannot run on 'b'"
