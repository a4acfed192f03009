"""What tables and pages say of a simulated run, from invented figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright
from onnx_models import model, node, value, write
from tilewright.core.plan import Schedule
from tilewright.machine.target import Sizes
from tilewright.report import render_report
from tilewright.report.profile import profile_rows, roofline
from tilewright.sim.marks import GroupProfile
from tilewright.timeline.clock import CORES
from tilewright.timeline.replay import plan_timeline


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tilewright.Compiled:
    weights = np.ones((32, 32), np.float32)
    nodes = [node("MatMul", "x w", "a", name="product"), node("Softmax", "a", "y", name="softmax", axis=0)]
    built = model(nodes, [value("x", (8, 32))], ["y"], constants={"w": weights})
    path = write(tmp_path_factory.mktemp("profile") / "m.onnx", built)
    return tilewright.compile(path, tilewright.Options("siracusa", sizes=Sizes({"L1": 65536})))


@pytest.fixture(scope="module")
def schedule(compiled: tilewright.Compiled) -> Schedule:
    assert compiled.plan.schedule is not None
    return compiled.plan.schedule


@pytest.fixture(scope="module")
def simulated(schedule: Schedule) -> tuple[GroupProfile, ...]:
    """Every group takes twice what was predicted."""
    found: list[GroupProfile] = []
    for index, group in enumerate(schedule.groups):
        profile = GroupProfile(index, 0, round(2 * group.cycles))
        tile = profile.tile(0)
        tile.loading, tile.loaded, tile.waiting, tile.kernels[0] = 300, 2048, 40, round(group.cycles)
        profile.counters += [{"cycles": profile.cycles, "instructions": 10 + core} for core in range(8)]
        found.append(profile)
    return tuple(found)


def test_rows(compiled: tilewright.Compiled, schedule: Schedule, simulated: tuple[GroupProfile, ...]) -> None:
    rows = profile_rows(compiled.plan, schedule, simulated)
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert all(row.ratio == pytest.approx(0.5, rel=1e-3) for row in rows)
    assert rows[0].macs == 8 * 32 * 32
    assert rows[0].rate == pytest.approx(8 * 32 * 32 / rows[0].cycles)
    # What the cores need of x, w and y, and not what the DMA happened to move meanwhile.
    assert sum(row.moved for row in rows) == 4 * (8 * 32 + 32 * 32 + 8 * 32)
    assert rows[0].counters["instructions"] == sum(range(10, 18))


def test_roofline(compiled: tilewright.Compiled, schedule: Schedule, simulated: tuple[GroupProfile, ...]) -> None:
    drawn = roofline(compiled.plan, schedule, profile_rows(compiled.plan, schedule, simulated))
    assert drawn is not None
    assert drawn.note == "at most 32 MAC/cycle and 8 bytes/cycle"
    assert len(drawn.dots) == 1
    corners = [tuple(map(float, corner.split(","))) for corner in drawn.roof.split(" ")]
    assert corners[-1][1] == corners[-2][1] < corners[0][1]
    for dot in drawn.dots:
        assert drawn.left <= dot.x <= drawn.right
        assert drawn.top <= dot.y <= drawn.bottom
        # Nothing is above the roof.
        assert dot.y >= corners[-1][1]


def test_the_page_shows_it(compiled: tilewright.Compiled, simulated: tuple[GroupProfile, ...]) -> None:
    plain = render_report(compiled.plan, compiled.program, title="m")
    assert "Simulated run" not in plain
    page = render_report(compiled.plan, compiled.program, title="m", simulated=simulated)
    assert all(text in page for text in ("Simulated run", "Roofline", "<polyline", "<circle", "0.50"))


def test_engines_have_lanes() -> None:
    """NEUREKA works on the next tile while the cores work on this one."""
    path = Path(__file__).parent.parent.parent / "examples" / "models" / "tiny_cnn_int8.onnx"
    made = tilewright.compile(path, tilewright.Options("siracusa")).plan
    assert made.schedule is not None
    timeline = plan_timeline(made, made.schedule)
    timed = next(t for t in timeline.groups if t.group.ahead)
    bars = [bar for bar in timeline.bars(timed.index, 4) if bar.kind == "compute"]
    sums, rest = ([bar for bar in bars if bar.lane == lane] for lane in ("neureka", CORES))
    assert sums[1].start < rest[0].stop
    assert sums[0].stop <= rest[0].start
    assert all(timed.busy(lane) > 0 for lane in ("neureka", CORES))
