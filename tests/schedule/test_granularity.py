"""Prices of nodes, and networks that are cut as is best."""

from __future__ import annotations

import numpy as np

from schedule.small import chain, engine, machine, pair
from tilewright.api.scheduling import ScheduleOptions, schedule_network
from tilewright.core.split import Loops, OperationSplit
from tilewright.machine.parts import Net
from tilewright.mapping.results import Effort
from tilewright.schedule.checker import faults
from tilewright.schedule.costs import NodePrices
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network

WAYS: tuple[Loops, ...] = ((), (("OY", "all"),))
QUICK = Effort(mappings=20, steps=20)


def test_prices_follow_sizes_and_what_does_not_fit_is_streamed() -> None:
    bus = Net(name="bus", kind="bus", ends=("large", "small", "home"), bits=8)
    given = machine([engine("large", 1 << 20, 1 << 20), engine("small", 1 << 20, 1200)], [bus])
    fabric = fabric_of(given)
    prices = NodePrices(given, fabric, effort=QUICK)
    whole, rows = (
        prices.costs(split_network(chain(1), {"c0": OperationSplit(within=loops)}, fabric.slots), {}) for loops in WAYS
    )
    assert (rows.cycles[0, :2] < whole.cycles[0, :2]).all()
    assert 4 * rows.cycles[0, 0] < whole.cycles[0, 0] < 8 * rows.cycles[0, 0]
    assert whole.streamed[0, 0] == 0
    assert whole.streamed[0, 1] != 0
    assert whole.far_energy[0, 1] > 0
    assert whole.cycles[0, -1] == -1
    only = prices.costs(split_network(chain(1), {}, fabric.slots), {"c0": ("small",)})
    assert only.cycles[0].tolist() == [-1, whole.cycles[0, 1], -1]


def test_cutting_each_operation_by_itself_is_no_worse() -> None:
    options = ScheduleOptions(objective="edp", evaluations=10, effort=QUICK)
    found = schedule_network(chain(2), pair(), options=options)
    assert set(found.tried) == {"whole", "each by itself"}
    least = min(found.tried.values())
    assert found.schedule.latency * found.schedule.energy == least == found.tried["each by itself"]
    assert faults(found.schedule, found.costs) == []
    again = schedule_network(chain(2), pair(), options=options)
    assert again.splits == found.splits
    assert np.array_equal(again.schedule.start, found.schedule.start)
