"""Plans that are measured: which are tried, which is kept, and that nothing is simulated twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder
from tilewright.api import Options, measuring, plan_model, run_model
from tilewright.api.measuring import Times, fastest
from tilewright.codegen import lower, project_files
from tilewright.codegen.build import Built
from tilewright.core.cache import VARIABLE, user_cache
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.core.plan import Plan
from tilewright.errors import TilewrightError

MEASURED = Options("siracusa", measure=2)


def two_nests() -> Graph:
    """Two layers without a kernel that run one behind the other."""
    b = Builder()
    rows = b.op("ReduceSum", b.input("x", "float32[24,40,8]"), np.array([1]), keepdims=1)
    return b.graph(b.op("ReduceMax", rows, np.array([0]), keepdims=1))


def sums() -> Graph:
    b = Builder()
    x, y = (b.input(name, "float32[40,64]") for name in "xy")
    return b.graph(b.op("ReduceMean", b.op("Mul", x, y), np.array([1]), keepdims=1))


@pytest.fixture(scope="module")
def first() -> Plan:
    return plan_model(two_nests(), Options("siracusa"))[1]


def joined(plan: Plan) -> tuple[int, ...]:
    assert plan.schedule is not None
    return tuple(max(plan.choices[work.step].unroll for work in group.works) for group in plan.schedule.groups)


class Table:
    """Says what each group takes."""

    def __init__(self, times: Callable[[Plan], tuple[int, ...]]) -> None:
        self.times, self.asked = times, list[tuple[int, ...]]()

    def __call__(self, plan: Plan) -> tuple[str, Times]:
        self.asked.append(joined(plan))
        groups = self.times(plan)
        return f"{len(self.asked)}", Times(sum(groups) + 100, groups)


def table(*groups: Mapping[int, int]) -> Table:
    """By how many turns are joined there."""

    def times(plan: Plan) -> tuple[int, ...]:
        return tuple(known[factor] for known, factor in zip(groups, joined(plan), strict=True))

    return Table(times)


def silent(_stage: str) -> None:
    """Nobody looks."""


def test_one_plan_is_the_planners_own(first: Plan) -> None:
    meter = table({1: 500}, {1: 300})
    found = fastest(first, iter(()), meter, 1, silent)
    assert found.choices == first.choices
    assert found.schedule is not None
    assert found.schedule.measured
    assert found.schedule.known == "measured"
    assert [group.cycles for group in found.schedule.groups] == [600, 300], "the first one has what is in none"
    assert found.schedule.cycles == 900


def test_each_group_gets_what_is_best_for_it(first: Plan) -> None:
    meter = table({1: 500, 4: 470, 8: 490}, {1: 300, 4: 900})
    found = fastest(first, iter(()), meter, 3, silent)
    assert meter.asked == [(1, 1), (4, 4), (4, 1)]
    assert joined(found) == (4, 1)
    assert found.schedule is not None
    assert found.schedule.cycles == 870


def test_what_helped_much_is_taken_further(first: Plan) -> None:
    meter = table({1: 500, 4: 300, 8: 250}, {1: 300, 4: 900})
    assert joined(fastest(first, iter(()), meter, 3, silent)) == (8, 1)
    meter = table({1: 500, 4: 300, 8: 250, 16: 260}, {1: 300, 2: 290, 4: 900})
    assert joined(fastest(first, iter(()), meter, 9, silent)) == (8, 2)
    assert meter.asked == [(1, 1), (4, 4), (8, 2), (16, 2)]


def test_other_plans_are_tried_where_loops_take_little(first: Plan) -> None:
    assert first.schedule is not None
    other = replace(first, schedule=replace(first.schedule, engine="cluster"))
    kernels = tuple(replace(choice, kernel=first.platform.kernels[0]) for choice in first.choices)
    alone, beside = replace(first, choices=kernels), replace(other, choices=kernels)

    def times(plan: Plan) -> tuple[int, ...]:
        return (400, 300) if plan.schedule is first.schedule else (400, 200)

    meter = Table(times)
    found = fastest(alone, iter([beside]), meter, 5, silent)
    assert len(meter.asked) == 2, "there are no more"
    assert found.schedule is not None
    assert found.schedule.cycles == 700


def test_what_does_not_build_is_no_choice(first: Plan) -> None:
    def times(plan: Plan) -> tuple[int, ...]:
        if joined(plan) != (1, 1):
            raise TilewrightError("build-failed", "too large")
        return (500, 300)

    assert joined(fastest(first, iter(()), Table(times), 3, silent)) == (1, 1)

    def none(_plan: Plan) -> tuple[int, ...]:
        raise TilewrightError("build-failed", "too large")

    with pytest.raises(TilewrightError, match="too large"):
        fastest(first, iter(()), Table(none), 3, silent)


def test_progress_tells_the_best(first: Plan) -> None:
    said: list[str] = []
    fastest(first, iter(()), table({1: 5000, 4: 6000}, {1: 300, 4: 200}), 2, said.append)
    assert said[0] == "measuring plan 1 of 2"
    assert said[-1] == "plan 2 of 2: 6,300 cycles, best 5,400 cycles"


def test_cycles_are_those_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    graph = sums()
    noise = np.random.default_rng(4)
    fed = [noise.normal(size=graph.types[name].shape).astype(np.float32) for name in graph.inputs]
    ran = run_model(graph, MEASURED, inputs=fed, expected=interpret(graph, fed))
    assert ran.right
    schedule = ran.compiled.plan.schedule
    assert schedule is not None
    assert schedule.cycles == ran.cycles
    usual = run_model(graph, Options("siracusa"), inputs=fed)
    assert ran.cycles is not None
    assert usual.cycles is not None
    assert ran.cycles < usual.cycles, "its loops are unrolled"
    assert [np.array_equal(a, b) for a, b in zip(ran.outputs, usual.outputs, strict=True)] == [True]


def test_nothing_is_simulated_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    built = 0
    build = measuring.build

    def counted(*given: Any, **named: Any) -> Built:
        nonlocal built
        built += 1
        return build(*given, **named)

    monkeypatch.setattr(measuring, "build", counted)
    once = plan_model(sums(), MEASURED)[1]
    assert built == 2
    assert len(user_cache().entries()) == 3, "two programs, and which of them is the fastest"
    again = plan_model(sums(), MEASURED)[1]
    assert built == 2
    assert again.choices == once.choices
    assert again.schedule == once.schedule
    damaged = (b"", b"[1]", b'{"cycles": 1, "groups": [1, 2, 3, 4]}')
    for entry, data in zip(user_cache().entries(), damaged, strict=True):
        entry.path.write_bytes(data)
    assert plan_model(sums(), MEASURED)[1].schedule == once.schedule
    assert built == 4, "damaged entries are made anew"
    plan_model(sums(), replace(MEASURED, planning=replace(MEASURED.planning, seed=1)))
    assert built == 6, "what is fed is part of the key"


def test_plans_are_compared_again_where_others_may_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which plan is the fastest was found among those that were there then."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    folder = tmp_path / "kernels"
    folder.mkdir()
    header = "op: Relu\ntypes: {X: float64, Y: float64}\ncycles: {elements: size}"
    (folder / "relu_f64.c").write_text(
        f"/* ---\n{header}\n--- */\nstatic void relu_f64(const double *X, double *Y, int size) {{\n"
        "    for (int i = 0; i < size; i++) Y[i] = X[i] > 0 ? X[i] : 0;\n}\n"
    )
    for options in (MEASURED, replace(MEASURED, planning=replace(MEASURED.planning, fuse="off"))):
        compared = len(user_cache().entries())
        plan_model(sums(), options)
        assert len(user_cache().entries()) > compared
    compared = len(user_cache().entries())
    plan_model(sums(), MEASURED)
    assert len(user_cache().entries()) == compared
    plan_model(sums(), replace(MEASURED, kernels=(folder,)))
    assert len(user_cache().entries()) == compared + 1, "the programs are the same"


def test_loops_are_unrolled_where_they_are_innermost() -> None:
    _, plan = plan_model(sums(), Options("siracusa"))
    assert all(choice.kernel is None for choice in plan.choices)
    text = _code(replace(plan, choices=tuple(replace(choice, unroll=4) for choice in plan.choices)))
    before = [line.strip() for line in text.splitlines() if "for (" in line or "#pragma" in line]
    assert "#pragma" not in _code(plan)
    places = [number for number, line in enumerate(before) if line.startswith("#pragma GCC unroll 4")]
    assert places
    for number in places:
        assert before[number + 1].startswith("for (int D1"), "the terms of a sum, or the points of a row"


def _code(plan: Plan) -> str:
    return project_files([lower(plan, "network")], plan.platform)["network.c"].decode()
