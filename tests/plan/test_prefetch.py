"""Loads across the borders of groups."""

from __future__ import annotations

import numpy as np

from passes.build import Builder
from plan.tiled_plans import schedule_of
from tilewright.language.quantised import powers
from tilewright.machine.target import load_platform
from tilewright.passes import run_pipeline
from tilewright.plan import PlanOptions, check, plan


def test_loads_of_a_group_begin_together_where_time_is_short() -> None:
    """Nothing before it takes as long as its keys and values."""
    b = Builder()
    x = b.input("x", "int16[1,64]")
    for step in range(1, 5):
        weights = np.full(64, 99 * step, np.int32)
        x = b.op("iRMSNorm", x, weights, D=1 << 9, n_levels=1 << 16 if step < 4 else 256)
    query = b.op("Reshape", x, [4, 1, 16])
    parts = [b.input(name, f"int8[{shape}]") for name, shape in (("k", "4,300,16"), ("v", "4,16,300"))]
    rows = [b.input(name, f"int8[{shape}]") for name, shape in (("new_k", "4,1,16"), ("new_v", "4,16,1"))]
    factors = np.ones(4, np.int32), powers(), np.full((4, 16), 5000, np.int32)
    graph = b.graph(b.op("iAttention", query, *parts, *rows, *factors, score_shift=6, mean_shift=18))
    platform = load_platform("siracusa")
    made = plan(run_pipeline(graph, platform), platform, PlanOptions())
    check(made)
    schedule = schedule_of(made)
    last = len(schedule.groups) - 1
    begun = {
        schedule.groups[last].buffers[move.buffer].tensor: move.issue.group
        for move in schedule.moves
        if move.group == last and move.kind == "load"
    }
    assert begun["k"] == begun["v"] < last - 1
