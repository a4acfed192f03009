"""Bounds by constraint programming: below every schedule, and reached where nothing is left out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from schedule.small import chain, engine, even_costs, machine, random_task
from tilewright.api.scheduling import ScheduleOptions, schedule_network
from tilewright.core.split import OperationSplit
from tilewright.errors import TilewrightError
from tilewright.machine.parts import Net
from tilewright.mapping.results import Effort
from tilewright.schedule.bounds import least_latency
from tilewright.schedule.checker import faults
from tilewright.schedule.exact import prove
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling
from tilewright.schedule.search import SearchOptions, choices, search


def test_no_schedule_takes_less() -> None:
    tighter = 0
    for seed in range(12):
        task = random_task(seed)
        nodes, allowed = task.scheduling.nodes, choices(task.scheduling, task.costs, {})
        if nodes.count > 40:
            continue
        best = search(task.scheduling, task.costs, allowed, SearchOptions(evaluations=200)).best
        proof = prove(nodes, task.scheduling.fabric, task.costs, allowed, best.latency, effort=0.05)
        assert proof.bound <= best.latency, f"seed {seed}"
        tighter += proof.bound > least_latency(nodes, task.costs, allowed)
    assert tighter > 1


def test_it_is_reached_where_channels_are_wide() -> None:
    nets = [Net(name="bus", kind="bus", ends=("a", "b", "home"))]
    fabric = fabric_of(machine([engine(name, 1 << 20, 1 << 20) for name in ("a", "b")], nets))
    nodes = split_network(chain(3), {f"c{i}": OperationSplit(within=(("OY", "all"),)) for i in range(3)}, fabric.slots)
    costs = even_costs(nodes, fabric)
    costs.cycles[1] = [70, 130, -1]
    scheduling = Scheduling(nodes, fabric, costs)
    least = min(scheduling.evaluate(np.array(places)).latency for places in product((0, 1), repeat=3))
    proof = prove(nodes, fabric, costs, [(0, 1)] * 3, least)
    found = Scheduling(nodes, fabric, costs, proof.order).schedule(np.array(proof.places))
    assert faults(found, costs) == []
    assert proof.bound == found.latency <= least


def test_from_the_outside() -> None:
    nets = [Net(name="bus", kind="bus", ends=("a", "b", "home"), bits=64)]
    given = machine([engine(name, 1 << 20, 1 << 20) for name in ("a", "b")], nets)
    options = ScheduleOptions(split=(("OY", 2),), prove=True, effort=Effort(mappings=20, steps=20))
    found = schedule_network(chain(2), given, options=options)
    assert 0 < found.bound <= found.schedule.latency
    assert 0 < found.energy_bound <= found.schedule.energy
    many = ScheduleOptions(split=(("OY", "all"), ("OX", "all"), ("K", "all")), prove=True, effort=options.effort)
    with pytest.raises(TilewrightError) as caught:
        schedule_network(chain(12), given, options=many)
    assert caught.value.code == "too-large"
