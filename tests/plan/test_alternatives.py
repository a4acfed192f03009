"""Other plans than the one predicted to be best, for those who measure."""

from __future__ import annotations

from itertools import pairwise

from passes.build import Builder
from platforms.test_siracusa_kernels import random, requantised
from tilewright.core.graph import Graph
from tilewright.core.plan import Plan
from tilewright.machine.target import Sizes, load_platform, resize
from tilewright.passes import run_pipeline
from tilewright.plan import PlanOptions, alternatives, check, plan
from tilewright.plan.scheduler import DOUBT
from tilewright.plan.shapes import shape_of

OPTIONS = PlanOptions()
PLATFORM = resize(load_platform("siracusa"), Sizes({"L1": 32768}))


def product() -> Graph:
    b = Builder()
    sums = b.op("MatMul", b.input("x", "int8[64,96]"), random("int8", 96, 128, seed=2))
    return run_pipeline(b.graph(requantised(b, sums)), PLATFORM)


def cycles(made: Plan) -> float:
    assert made.schedule is not None
    return made.schedule.cycles


def test_they_differ_and_are_near() -> None:
    graph = product()
    best, found = plan(graph, PLATFORM, OPTIONS), [*alternatives(graph, PLATFORM, OPTIONS)]
    assert found
    shapes = [tuple(shape_of(g) for g in made.schedule.groups) for made in (best, *found) if made.schedule]
    assert len({*shapes}) > 1
    for made in found:
        check(made)
        assert cycles(made) <= cycles(best) * (1 + DOUBT)
    assert all(cycles(a) <= cycles(b) for a, b in pairwise(found))


def test_they_leave_the_plan_as_it_is() -> None:
    graph = product()
    before = plan(graph, PLATFORM, OPTIONS)
    first = [made.schedule for made in alternatives(graph, PLATFORM, OPTIONS)]
    assert [made.schedule for made in alternatives(graph, PLATFORM, OPTIONS)] == first
    assert plan(graph, PLATFORM, OPTIONS).schedule == before.schedule


def test_there_are_none_without_tiles() -> None:
    platform = load_platform("generic")
    b = Builder()
    graph = run_pipeline(b.graph(b.op("Relu", b.input("x", "float32[4]"))), platform)
    assert [*alternatives(graph, platform, OPTIONS)] == []


def test_loop_nests_that_may_be_faster_are_among_them() -> None:
    """Predictions of so few products are too rough to do without the kernel unmeasured."""
    platform = resize(load_platform("siracusa"), Sizes(without=("neureka",)))
    b = Builder()
    sums = b.op("MatMul", b.input("x", "int8[2,8]"), random("int8", 8, 4, seed=2))
    graph = run_pipeline(b.graph(requantised(b, sums)), platform)
    kernels = [choice.kernel for choice in plan(graph, platform, OPTIONS).choices]
    others = [[choice.kernel for choice in made.choices] for made in alternatives(graph, platform, OPTIONS)]
    assert None not in kernels
    assert [None] in others
