"""When results of tiles are stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from passes.build import Builder
from plan.tiled_plans import buffer, by_layer, group, mapping, schedule_of, scheduled
from tilewright.codegen.lowering import Lowering
from tilewright.codegen.pieces import Pieces
from tilewright.core.plan import Choice, Place, Work
from tilewright.machine.target import load_platform


@pytest.mark.parametrize(("home", "behind"), [(Place("input"), True), (Place("L1", 4096), False)])
def test_results_are_stored_before_cores_copy_to_their_place(home: Place, behind: bool) -> None:
    """Cores copy what lies in their own memory at the start of a turn, for the step after it."""
    b = Builder()
    graph = b.graph(b.op("Neg", b.input("x", "float32[4,8]"), name="y"))
    work = Work(0, mapping(X=0, Y=1))
    tiles = group([work], [("D1", 2, 4)], (buffer("x", 32), buffer("y", 32)))
    made = scheduled(by_layer(), groups=(tiles,), stages=(), direct=frozenset[str]())
    platform, places = load_platform("siracusa"), {"x": home, "y": Place("output")}
    cores = platform.cores.name
    plan = replace(made, graph=graph, platform=platform, choices=(Choice(cores, None),), places=places)
    lowering = Lowering(plan, replace(schedule_of(plan), engine=cores), 0, tiles, Pieces(plan))
    assert lowering.stores_behind == behind
