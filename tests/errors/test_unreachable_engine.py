"""error[unreachable-engine]: a tensor has to go where no channel leads."""

from __future__ import annotations

import numpy as np
import pytest

from schedule.small import chain, engine, even_costs, machine
from tilewright.errors import TilewrightError
from tilewright.machine.parts import Net
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling


def test_unreachable_engine() -> None:
    out = Net(name="out", kind="one_way", ends=("a", "home"), to=("a", "home"), bits=8)
    fabric = fabric_of(machine([engine("a", 1 << 20, 1 << 20), engine("b", 1 << 20, 1 << 20)], [out]))
    nodes = split_network(chain(2), {}, fabric.slots)
    with pytest.raises(TilewrightError) as caught:
        Scheduling(nodes, fabric, even_costs(nodes, fabric)).evaluate(np.array([0, 1]))
    assert caught.value.code == "unreachable-engine"
    assert "there is no way from 'home' to 'b', by which 'c1.W' has to go for 'c1'" in caught.value.what
