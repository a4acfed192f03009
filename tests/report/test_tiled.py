"""What tables and pages say of tiled plans: groups, memories over time, and the predicted timeline."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import tilewright
from onnx_models import model, node, value, write
from tilewright.api import plan_model
from tilewright.core.plan import Plan, Schedule
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions
from tilewright.report import group_table, render_report
from tilewright.report import memory as memory_module
from tilewright.report import timeline as timeline_module
from tilewright.report.groups import activation_peak, covered, group_span
from tilewright.report.memory import memory_maps
from tilewright.report.timeline import timeline
from tilewright.timeline.clock import CORES, Bar
from tilewright.timeline.replay import Timeline, lanes, plan_timeline

L1 = 3072
EXAMPLES = Path(__file__).parents[2] / "examples" / "models"


def network() -> tilewright.Options:
    return tilewright.Options("scratchpad", sizes=Sizes({"L1": L1}, cores=2))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution, a product with what it reads, and a sum."""
    weights = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype(np.float32)
    nodes = [
        node("Conv", "x w", "a", name="first", pads=[1, 1, 1, 1]),
        node("Sigmoid", "a", "b", name="second"),
        node("Softmax", "b", "c", name="third", axis=-1),
        node("Add", "a c", "y", name="last"),
    ]
    built = model(nodes, [value("x", (1, 4, 16, 8))], ["y"], constants={"w": weights})
    return write(tmp_path_factory.mktemp("tiled") / "m.onnx", built)


@pytest.fixture(scope="module")
def compiled(path: Path) -> tilewright.Compiled:
    return tilewright.compile(path, network())


@pytest.fixture(scope="module")
def made(compiled: tilewright.Compiled) -> Plan:
    return compiled.plan


@pytest.fixture(scope="module")
def schedule(made: Plan) -> Schedule:
    assert made.schedule is not None
    return made.schedule


@pytest.fixture(scope="module")
def replayed(made: Plan, schedule: Schedule) -> Timeline:
    """Worked out anew: that of an equal schedule is not known."""
    return plan_timeline(made, replace(schedule))


def overlap(bars: Iterable[Bar]) -> bool:
    ordered = sorted(bars, key=lambda bar: bar.start)
    return any(a.stop > b.start + 1e-6 for a, b in pairwise(ordered))


def test_cycles_are_those_of_the_plan(replayed: Timeline) -> None:
    for timed in replayed.groups:
        assert timed.cycles == timed.group.cycles
        assert timed.cost.compute <= timed.cycles + 1


def test_bars_are_what_the_cycles_are_made_of(replayed: Timeline) -> None:
    whole = [
        replace(b, start=b.start + t.start, stop=b.stop + t.start)
        for t in replayed.groups
        for b in replayed.bars(t.index, 1 << 20)
    ]
    assert max(bar.stop for bar in whole) == replayed.cycles
    for lane in {bar.lane for bar in whole}:
        assert not overlap(bar for bar in whole if bar.lane == lane)
    for timed in replayed.groups:
        bars = [bar for bar in replayed.bars(timed.index, 1 << 20) if bar.lane == CORES]
        assert sum(bar.stop - bar.start for bar in bars) == pytest.approx(timed.cost.compute, rel=1e-3)


def test_the_planner_has_worked_it_out(made: Plan, schedule: Schedule, replayed: Timeline) -> None:
    known = plan_timeline(made, schedule)
    assert known is plan_timeline(made, schedule)
    assert known is not plan_timeline(replace(made, platform=replace(made.platform)), schedule)
    assert [(t.start, t.passed, t.cost) for t in known.groups] == [(t.start, t.passed, t.cost) for t in replayed.groups]
    for timed in replayed.groups:
        assert known.groups[timed.index].group is schedule.groups[timed.index]
        assert known.bars(timed.index, 8) == replayed.bars(timed.index, 8)


def test_second_slots_make_transfers_overlap(path: Path) -> None:
    found: dict[int, bool] = {}
    for slots in (1, 2):
        planning = PlanOptions(buffers=slots, fuse="off", seconds=0.2)
        _, made = plan_model(path, replace(network(), planning=planning))
        assert made.schedule is not None
        times = plan_timeline(made, made.schedule)
        tiled = [t for t in times.groups if prod(loop.count for loop in t.group.loops) > 2]
        assert tiled
        found[slots] = any(overlap(times.bars(timed.index, 8)) for timed in tiled)
    assert found == {1: False, 2: True}


def test_lanes_are_busy_for_what_runs_there(made: Plan, replayed: Timeline) -> None:
    for timed in replayed.groups:
        assert timed.busy(CORES) == pytest.approx(timed.cost.compute, rel=1e-3)
        assert all(timed.busy(lane) <= timed.cycles for lane in lanes(made.platform))
    moved = sum(amount for timed in replayed.groups for amount in timed.passed.moved.values())
    assert moved == sum(timed.cost.moved for timed in replayed.groups)


def test_the_table_says_what_the_plan_is(made: Plan, schedule: Schedule) -> None:
    table = group_table(made, schedule)
    assert [row.steps for row in table.rows] == [tuple(w.step for w in group.works) for group in schedule.groups]
    for row, group in zip(table.rows, schedule.groups, strict=True):
        assert row.near_bytes <= schedule.used["L1"] <= L1
        assert row.bound == ("compute" if row.compute >= row.transfers else "DMA")
        assert [(b.tensor, b.bytes, b.slots) for b in row.buffers] == [
            (b.tensor, b.bytes, b.slots) for b in group.buffers
        ]
    totals = table.totals
    assert totals.cycles == pytest.approx(sum(group.cycles for group in schedule.groups))
    assert totals.gap is None or 0 <= totals.gap < 1
    assert totals.macs == 16 * 8 * 4 * 36
    assert totals.extra_macs >= -1e-9


def test_results_that_are_not_read_are_no_work_that_was_saved() -> None:
    """NEUREKA knows no strides: of a convolution at every pixel, the last row and column are not read."""
    _, made = plan_model(EXAMPLES / "tiny_cnn_int8.onnx", tilewright.Options("siracusa"))
    assert made.schedule
    table = group_table(made, made.schedule)
    assert any("Slice" in op for row in table.rows for op in row.ops)
    assert table.totals.extra_macs == pytest.approx(0)
    assert table.totals.macs == pytest.approx(sum(row.macs for row in table.rows))


def test_activation_peak(made: Plan, schedule: Schedule) -> None:
    """Whole tensors between groups, and tiles of the group that runs; no weights, no inputs and outputs."""
    peak = activation_peak(made, schedule)
    assert 0 < peak <= sum(buffer.bytes for buffer in made.buffers) + L1
    lonely = replace(made, buffers=())
    assert activation_peak(lonely, schedule) <= L1


def test_covered_counts_bytes_once() -> None:
    assert covered([]) == 0
    assert covered([(0, 8), (4, 12), (20, 24), (21, 22)]) == 16


def test_group_spans(schedule: Schedule) -> None:
    for index, group in enumerate(schedule.groups):
        first, last = group.works[0].step, group.works[-1].step
        assert group_span(schedule, first, last + 1) == (index, index + 1)
    everything = (0, schedule.groups[-1].works[-1].step + 1)
    assert group_span(schedule, *everything) == (0, len(schedule.groups))


def test_every_memory_is_drawn(made: Plan, schedule: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = memory_maps(made)
    assert maps[0].name == "L1"
    slots = sum(buffer.slots for group in schedule.groups for buffer in group.buffers)
    scratch = sum(bool(work.scratch_bytes) for group in schedule.groups for work in group.works)
    assert sum(len(drawn.blocks) for drawn in maps) == len(made.buffers) + slots + scratch
    for drawn in maps:
        assert drawn.unit == "group"
        for block in drawn.blocks:
            assert drawn.left <= block.x
            assert block.x + block.width <= drawn.right + 0.2
            assert drawn.top - 0.2 <= block.y
            assert block.y + block.height <= drawn.bottom + 1.2
    monkeypatch.setattr(memory_module, "MOST", 0)
    merged = memory_maps(made)
    assert sum(len(drawn.blocks) for drawn in merged) <= len(made.buffers) + len(schedule.groups)


def test_charts_stay_in_their_frame_and_small(made: Plan, schedule: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = timeline(made, schedule, plan_timeline(made, schedule))
    assert drawn.close_ups
    for chart in (drawn.whole, *drawn.close_ups):
        for mark in chart.marks:
            assert chart.left <= mark.x
            assert mark.x + mark.width <= chart.right + 1
            assert mark.y >= 0
            assert mark.y + mark.height <= chart.bottom
    monkeypatch.setattr(timeline_module, "MOST_GROUPS", 1)
    monkeypatch.setattr(timeline_module, "MOST_BARS", 0)
    small = timeline(made, schedule, plan_timeline(made, schedule))
    assert small.close_ups == ()
    assert len(small.whole.marks) <= 1 + len(made.platform.links)


def test_copies_into_nearer_memories_follow_each_other(path: Path) -> None:
    _, made = plan_model(path, replace(network(), sizes=Sizes({"L1": L1}, home="L3")))
    assert made.schedule is not None
    times = plan_timeline(made, made.schedule)
    every = [(times.groups[n].start, bar) for n in range(len(times.groups)) for bar in times.bars(n, 1)]
    bars = [replace(bar, start=at + bar.start, stop=at + bar.stop) for at, bar in every if bar.kind == "stage"]
    assert len(bars) == len(made.schedule.stages)
    for lane in {bar.lane for bar in bars}:
        assert not overlap(bar for bar in bars if bar.lane == lane)
    drawn = timeline(made, made.schedule, times).whole
    assert all(mark.x + mark.width <= drawn.right + 1 for mark in drawn.marks)
    copies = sum("copy of" in block.buffer.name for level in memory_maps(made) for block in level.blocks)
    assert copies == len(bars)


def test_the_page(compiled: tilewright.Compiled, schedule: Schedule) -> None:
    text = render_report(compiled.plan, compiled.program, title="tiled")
    assert text == render_report(compiled.plan, compiled.program, title="tiled")
    assert "Predicted timeline" in text
    assert "L1: " in text
    for group in schedule.groups:
        for buffer in group.buffers:
            assert f'title="{buffer.tensor}"' in text
    assert text.count('class="mark"') < 2000
