"""error[no-room]: an operand fits into no memory of the engine."""

from __future__ import annotations

import numpy as np
import pytest

from schedule.small import chain, even_costs, pair
from tilewright.core.split import OperationSplit
from tilewright.errors import TilewrightError
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling


def test_no_room() -> None:
    fabric = fabric_of(pair(bits=600))
    nodes = split_network(chain(1), {}, fabric.slots)
    with pytest.raises(TilewrightError) as caught:
        Scheduling(nodes, fabric, even_costs(nodes, fabric)).evaluate(np.array([0]))
    assert caught.value.code == "no-room"
    assert "'c0' of 'c0' fits into no memory of 'a'" in caught.value.what
    assert "it has 576 bits" in caught.value.reasons[0]
    split = split_network(chain(1), {"c0": OperationSplit(within=(("OY", "all"),))}, fabric.slots)
    assert Scheduling(split, fabric, even_costs(split, fabric)).evaluate(np.array([0])).latency
