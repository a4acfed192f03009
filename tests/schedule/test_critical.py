"""The critical path: without gaps, from the beginning to the end."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from schedule.small import chain, even_costs, pair, random_task
from tilewright.schedule.critical import WAIT, critical_path
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling


def test_a_chain_over_two_engines() -> None:
    fabric = fabric_of(pair())
    nodes = split_network(chain(2), {}, fabric.slots)
    found = critical_path(Scheduling(nodes, fabric, even_costs(nodes, fabric)).schedule(np.array([0, 1])))
    assert [(step.kind, step.name, step.where) for step in found] == [
        ("fetch", "c0.W", "home to a"),
        ("fetch", "c0.I", "home to a"),
        ("compute", "c0", "a"),
        ("pass", "c0", "a to b"),
        ("compute", "c1", "b"),
        ("result", "c1", "b to home"),
    ]


def test_paths_have_no_gaps_and_seldom_wait_for_nothing() -> None:
    waited = 0
    for seed in range(60):
        found = random_task(seed).run()
        path = critical_path(found)
        assert path[0].start == 0
        assert path[-1].end == found.latency
        assert all(one.end == other.start for one, other in pairwise(path))
        waited += any(step.kind == WAIT for step in path)
    assert waited < 6
