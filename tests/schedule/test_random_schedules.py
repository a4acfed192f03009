"""Schedules of random networks on random machines, looked at by the checker; and that it sees what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from schedule.small import chain, even_costs, pair, random_task
from tilewright.core.split import OperationSplit
from tilewright.schedule.checker import faults
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import EngineSchedule, NodeCosts, Scheduling, Table

SEEDS = 200


def test_random_schedules_have_no_faults() -> None:
    evicted = streamed = together = shared = 0
    for seed in range(SEEDS):
        task = random_task(seed)
        found = task.run()
        assert faults(found, task.costs) == [], f"seed {seed}"
        again = task.scheduling.evaluate(task.places)
        assert again == found.summary, f"seed {seed}"
        evicted += int((found.transfers["cause"] == 2).sum() > 0)
        streamed += int((found.busy["transfer"] < 0).sum() > 0)
        together += int((found.transfers["carrier"] != np.arange(len(found.transfers))).sum() > 0)
        shared += int(len(set(found.fabric.sites)) < len(found.fabric.sites))
    assert evicted > SEEDS // 10
    assert together > SEEDS // 10
    assert shared > SEEDS // 20
    assert streamed > SEEDS // 4


def _good() -> tuple[EngineSchedule, NodeCosts]:
    fabric = fabric_of(pair())
    nodes = split_network(chain(2), {f"c{i}": OperationSplit(within=(("OY", "all"),)) for i in range(2)}, fabric.slots)
    costs = even_costs(nodes, fabric)
    return Scheduling(nodes, fabric, costs).schedule(np.array([0, 1])), costs


def _changed(table: Table, name: str, row: int, by: int) -> Table:
    column = table[name].copy()
    column[row] += by
    return Table({**table.columns, name: column})


@pytest.mark.parametrize("row", [0, 5, 11])
def test_the_checker_sees_nodes_that_start_too_early(row: int) -> None:
    found, costs = _good()
    start, end = found.start.copy(), found.end.copy()
    start[row] -= 50
    end[row] -= 50
    assert faults(replace(found, start=start, end=end), costs)


@pytest.mark.parametrize(
    ("table", "name", "by"), [("transfers", "start", -9), ("busy", "end", 99999), ("busy", "end", -1)]
)
def test_the_checker_sees_wrong_transfers(table: str, name: str, by: int) -> None:
    found, costs = _good()
    assert faults(found, costs) == []
    assert faults(replace(found, **{table: _changed(getattr(found, table), name, 3, by)}), costs)


def test_the_checker_sees_full_memories() -> None:
    found, costs = _good()
    stores = tuple(replace(store, bits=store.bits if store.place == "home" else 400) for store in found.fabric.stores)
    assert any("holds" in fault for fault in faults(replace(found, fabric=replace(found.fabric, stores=stores)), costs))
