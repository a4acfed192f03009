"""Profiles of networks on the simulated machine: the same program and cycles, and sums that add up."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from onnx_models import model, node, value, write
from tilewright.api import Options, Ran, run_model
from tilewright.machine.target import Sizes, load_platform
from tilewright.sim.marks import MarkPlace, Walk, marks_of
from tilewright.sim.program import load_program

DUO = Path(__file__).parents[2] / "examples" / "platforms" / "duo"
OPTIONS = Options(platform="siracusa", sizes=Sizes({"L1": 8192}))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product whose weights do not fit into L1 at once, and what follows it."""
    weights = np.random.default_rng(0).normal(size=(64, 96)).astype(np.float32)
    nodes = [node("MatMul", "x w", "a", name="product"), node("Softmax", "a", "y", name="softmax", axis=-1)]
    built = model(nodes, [value("x", (16, 64))], ["y"], constants={"w": weights})
    return write(tmp_path_factory.mktemp("marks") / "m.onnx", built)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def ran(path: Path, folder: Path) -> Ran:
    return run_model(path, OPTIONS, profile=True, folder=folder)


def test_a_profile_costs_nothing(path: Path, ran: Ran) -> None:
    plain = run_model(path, OPTIONS)
    assert plain.cycles == ran.cycles
    assert plain.groups == ()


def test_groups_add_up(ran: Ran) -> None:
    assert ran.cycles is not None
    assert [group.index for group in ran.groups] == list(range(len(ran.groups)))
    # Around the groups there are only a call and a barrier.
    assert 0 <= ran.cycles - sum(group.cycles for group in ran.groups) < 400
    for group in ran.groups:
        assert sum(group.phases.values()) == group.cycles
        spent = sum(tile.kernel + tile.waiting for tile in group.tiles)
        assert 0 < spent <= group.cycles


def test_tiles_have_their_transfers(ran: Ran) -> None:
    schedule, graph = ran.compiled.plan.schedule, ran.compiled.plan.graph
    assert schedule is not None
    product = ran.groups[0]
    steps = 1
    for loop in schedule.groups[0].loops:
        steps *= loop.count
    assert len(product.tiles) == steps > 1
    assert sum(tile.loaded for tile in product.tiles) >= graph.types["x"].bytes + 64 * 96 * 4
    stored = sum(tile.stored for group in ran.groups for tile in group.tiles)
    assert stored >= graph.types[graph.outputs[0]].bytes
    for tile in (tile for group in ran.groups for tile in group.tiles):
        # At most eight bytes a cycle.
        assert tile.loading >= tile.loaded / 8
        assert tile.storing >= tile.stored / 8


def test_a_core_that_drives_and_computes_is_seen_doing_both(path: Path) -> None:
    """MemPool's first core starts transfers for the next step before it computes: that is no part of its work."""
    ran = run_model(path, Options(platform="mempool-16", sizes=Sizes({"L1": 8192})), profile=True)
    product = ran.groups[0]
    assert len(product.tiles) > 1
    assert min(tile.kernel for tile in product.tiles) > max(tile.kernel for tile in product.tiles) / 4
    assert product.phases["work"] > product.cycles / 2


def test_counters_of_every_core(ran: Ran) -> None:
    for group in ran.groups:
        assert len(group.counters) == 8
        for counted in group.counters:
            assert counted["cycles"] == pytest.approx(group.cycles, abs=400)
            assert counted["instructions"] + counted["asleep"] <= counted["cycles"]


FIRST_DRIVES = (
    ("platform.yaml", "count: 5", "count: 4"),
    ("kernels/tilewright_machine.h", "TW_HARTS 5", "TW_HARTS 4"),
    ("kernels/tilewright_machine.h", "tw_me == TW_WORKERS", "tw_me == 0"),
)
"""What makes the example platform, whose last worker drives the DMA, one whose first does, and computes as well."""


def test_the_first_worker_drives(path: Path, tmp_path: Path) -> None:
    """Transfers belong to the tiles for which the core asked that drives, however late others come by."""
    folder = tmp_path / "duo"
    shutil.copytree(DUO, folder)
    for name, old, new in FIRST_DRIVES:
        file = folder / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
    assert load_platform(folder).driver == 0
    assert load_platform(DUO).driver == 4
    ran = run_model(path, Options(platform=str(folder), sizes=Sizes({"L1": 8192}, cores=2)), profile=True)
    assert ran.compiled.plan.schedule is not None
    # Each turn of the innermost loop loads parts of the operands. Where it cuts the sum, the last one stores it.
    innermost = ran.compiled.plan.schedule.groups[0].loops[-1]
    parts, sums = innermost.count, innermost.dim == "K"
    tiles = ran.groups[0].tiles
    for first in range(0, len(tiles), parts):
        turns = tiles[first : first + parts]
        assert [t.loaded for t in turns] == [t.loaded for t in tiles[:parts]]
        assert [t.stored > 0 for t in turns] == [not sums or turn == parts - 1 for turn in range(parts)]
    assert sum(t.stored for t in tiles) == 16 * 96 * 4


def test_marks_are_in_the_program_but_not_in_memory(ran: Ran, folder: Path) -> None:
    program = load_program(folder / ran.compiled.program.name)
    places = [place for found in marks_of(program).values() for place in found]
    assert {place.name for place in places} >= {"begin", "now", "work", "end"}
    assert max(place.group for place in places) == len(ran.groups)
    assert not any(b"begin" in segment.data for segment in program.segments)


def test_places_of_other_groups_are_passed_by() -> None:
    """A place without instructions has the address of those behind it, to which other groups may jump."""
    walk = Walk()
    for time, (group, name) in enumerate(
        [(0, "begin"), (0, "now"), (0, "work"), (1, "begin"), (0, "work"), (0, "begin"), (1, "now"), (1, "work")]
    ):
        walk.come(time, MarkPlace(group, name, 0))
    assert [group.index for group in walk.groups] == [0, 1]
    assert [len(group.tiles) for group in walk.groups] == [1, 1]


def test_work_that_a_driver_does_not_pass_moves_nothing_else() -> None:
    """What drives the DMA need not come to all nodes: those behind begin when it comes to them, not to others."""
    places = [(group, name) for group in (0, 1, 2) for name in ("begin", "now", "work")]
    driver = Walk()
    for time, (group, name) in enumerate(places):
        if (group, name) != (0, "work"):
            driver.come(time * 100, MarkPlace(group, name, 0))
    core = Walk(driver.works)
    for time, (group, name) in enumerate([*places, (3, "begin")]):
        core.come(time, MarkPlace(group, name, 0))
    assert [group.start for group in core.groups] == [0, 3, 500, 800]
