"""Prices of nodes, and networks that are cut as is best."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from schedule.small import chain, engine, even_costs, machine, pair
from tilewright.api.scheduling import ScheduleOptions, schedule_network
from tilewright.core.split import Loops, OperationSplit
from tilewright.frontend.stream_mapping import StreamEntry, StreamMapping
from tilewright.machine.parts import Net
from tilewright.mapping.results import Effort
from tilewright.schedule.checker import faults
from tilewright.schedule.costs import NodePrices
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling

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


def test_a_dataflow_names_what_is_unrolled() -> None:
    bus = Net(name="bus", kind="bus", ends=("free", "named", "other", "home"))
    flows = {"free": {}, "named": {"D1": (("C", 2),)}, "other": {"D1": (("Q", 2),)}}
    engines = [replace(engine(name, 1 << 20, 1 << 20), dataflow=flow) for name, flow in flows.items()]
    given = machine(engines, [bus])
    fabric = fabric_of(given)
    cycles = NodePrices(given, fabric, effort=QUICK).costs(split_network(chain(1), {}, fabric.slots), {}).cycles[0]
    assert cycles[0] == cycles[2] < cycles[1]


def test_cutting_each_operation_by_itself_is_no_worse() -> None:
    options = ScheduleOptions(objective="edp", evaluations=100, effort=QUICK)
    found = schedule_network(chain(2), pair(), options=options)
    assert set(found.tried) == {"whole", "each by itself"}
    assert found.evaluated <= 100
    assert found.schedule.latency * found.schedule.energy == pytest.approx(found.tried["each by itself"])
    assert found.tried["each by itself"] <= found.tried["whole"]
    assert faults(found.schedule, found.costs) == []
    again = schedule_network(chain(2), pair(), options=replace(options, workers=3))
    assert again.how == found.how
    assert np.array_equal(again.schedule.start, found.schedule.start)


def test_where_fusion_ends_all_before_is_done() -> None:
    fabric = fabric_of(pair())
    rows = {f"c{i}": OperationSplit(within=(("OY", "all"),)) for i in range(3)}
    nodes = split_network(chain(3), rows, fabric.slots, cuts={"c0", "c2"})
    fused = split_network(chain(3), rows, fabric.slots)
    assert nodes.edges == fused.edges + 2
    costs = even_costs(nodes, fabric)
    found = Scheduling(nodes, fabric, costs).schedule(np.array([0, 1, 0]))
    assert faults(found, costs) == []
    assert found.start[12] >= found.end[:12].max()
    assert found.start[6] < found.end[:6].max()


def test_what_is_cut_in_the_mapping_stays() -> None:
    entries = {"c0": StreamEntry(("a", "b"), within=(("OY", 3),)), "default": StreamEntry(("a", "b"))}
    options = ScheduleOptions(objective="edp", evaluations=60, effort=QUICK)
    found = schedule_network(chain(2), pair(), StreamMapping(entries), options)
    assert found.how.splits["c0"] == OperationSplit(within=(("OY", 3),))


def test_an_interrupt_keeps_the_best_so_far() -> None:
    seen: list[str] = []

    def progress(stage: str) -> None:
        seen.append(stage)
        if sum("allocations" in each for each in seen) == 2:
            raise KeyboardInterrupt

    options = ScheduleOptions(split=(("OY", 3),), evaluations=60, effort=QUICK)
    found = schedule_network(chain(8), pair(), options=options, progress=progress)
    assert found.stopped
    assert 0 < found.evaluated < 60
    assert faults(found.schedule, found.costs) == []

    def at_once(_stage: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        schedule_network(chain(8), pair(), options=options, progress=at_once)
