"""The simulator from Python: load, run, step, look into memory, count, trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sim.small_programs import small_program
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform
from tilewright.sim.profile import profile_of
from tilewright.sim.simulator import SLICE, Look, Simulator
from tilewright.sim.statistics import Statistics, statistics_of
from tilewright.sim.trace import TraceWriter

PLATFORM = "siracusa"
Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    def make(name: str, *defines: str, on_cores: bool = False) -> Path:
        return small_program(tmp_path_factory.mktemp(name), name, *defines, on_cores=on_cores)

    return make


@pytest.fixture(scope="module")
def transfers(build: Build) -> Path:
    return build("transfers", on_cores=True)


def ran(path: Path, look: Look, timing: str = "") -> Simulator:
    simulator = Simulator(PLATFORM, timing, look=look)
    simulator.load(path)
    assert simulator.run(10_000_000) == "exited"
    return simulator


def test_output_and_exit_code(build: Build) -> None:
    simulator = Simulator(PLATFORM)
    simulator.load(build("hello", "STATUS=7"))
    assert simulator.run() == "exited"
    assert simulator.output == b"hello\n"
    assert simulator.exit_code == 7
    assert simulator.findings() == ()


def test_memory_by_symbol(build: Build) -> None:
    simulator = Simulator(PLATFORM)
    simulator.load(build("variables"))
    assert simulator.read_words("numbers", 4) == (1, 2, 3, 4)
    assert simulator.run_until("add_all", 100_000) == "breakpoint"
    assert simulator.stopped_hart == 0
    assert simulator.pc(0) == simulator.symbol("add_all").address
    simulator.write("numbers", (100).to_bytes(4, "little"))
    assert simulator.run() == "exited"
    assert simulator.read_words("total") == (109,)
    assert simulator.read("total") == (109).to_bytes(4, "little")


def test_run_until_goes_on_from_where_it_stopped(build: Build) -> None:
    simulator = Simulator(PLATFORM)
    simulator.load(build("variables"))
    assert simulator.run_until("main") == "breakpoint"
    assert simulator.run_until("main") == "exited"


def test_step_by_step(build: Build) -> None:
    simulator = Simulator(PLATFORM)
    program = simulator.load(build("variables"))
    seen = [simulator.pc(0)]
    for _ in range(3):
        simulator.step()
        seen.append(simulator.pc(0))
    assert seen[0] == program.entry
    # csrr, srli, and an andi in its short form.
    assert [after - before for before, after in pairwise(seen)] == [4, 4, 2]
    assert simulator.instructions == 3


def test_wrong_places() -> None:
    simulator = Simulator(PLATFORM)
    with pytest.raises(TilewrightError, match="no memory for 4 bytes at 0x30000000"):
        simulator.read(0x30000000, 4)
    with pytest.raises(TilewrightError, match="how many bytes"):
        simulator.read(0x1C000000)
    with pytest.raises(TilewrightError, match="no memory"):
        simulator.write(0x1C1FFFFE, b"1234")
    assert simulator.read_memory("L3", 16, 2) == b"\xff\xff"


def test_cycles_are_counted_while_nothing_happens(build: Build) -> None:
    simulator = Simulator(PLATFORM)
    simulator.load(build("ends", "END=spin_forever"))
    for part in range(1, 4):
        assert simulator.run(1000) == "cycle-limit"
        assert simulator.cycles == 1000 * part
    seen: list[int] = []
    assert simulator.run(2 * SLICE, watch=lambda running: seen.append(running.cycles)) == "cycle-limit"
    assert seen == [3000 + SLICE, 3000 + 2 * SLICE]


def test_the_same_cycles_every_time_and_however_it_is_looked_at(transfers: Path) -> None:
    looks = [Look(), Look(), Look(checks=True), Look(profile=True), Look(trace=True), Look(True, True, True)]
    assert len({ran(transfers, look).cycles for look in looks}) == 1


def test_timings_differ(transfers: Path) -> None:
    assert ran(transfers, Look(), "rtl").cycles != ran(transfers, Look(), "gvsoc").cycles


def test_slices_do_not_change_cycles(transfers: Path) -> None:
    whole = ran(transfers, Look())
    simulator = Simulator(PLATFORM)
    simulator.load(transfers)
    while simulator.run(97) == "cycle-limit":
        pass
    assert simulator.cycles == whole.cycles
    assert statistics_of(simulator).harts == statistics_of(whole).harts


def statistics(path: Path) -> Statistics:
    return statistics_of(ran(path, Look()))


def test_statistics(transfers: Path) -> None:
    found = statistics(transfers)
    assert [hart.name for hart in found.harts] == ["fc", "cluster 0", "cluster 1"]
    for hart in found.harts:
        explained = hart.instructions + sum(hart.stalls.values()) + hart.long_instructions
        assert hart.active == explained
        assert 0 < hart.instructions_per_cycle <= 1
    first, second = found.harts[1:]
    assert second.asleep > first.asleep > 0
    dma = next(device for device in found.devices if device.name == "mchan")
    assert dma.counts["bytes_in"] == 2048
    assert dma.counts["transfers"] == 2
    assert dma.busy["busy_in"] >= 2048 // 8
    assert 0 < dma.occupancy("busy_in", found.cycles) < 1
    assert found.seconds == pytest.approx(found.cycles / 360e6)


def test_energy_is_a_sum(transfers: Path) -> None:
    found = statistics(transfers)
    by_component = found.joules_by_component()
    assert found.joules == pytest.approx(sum(by_component.values()))
    assert by_component["DMA"] > 0
    assert by_component["NEUREKA"] == 0
    always = next(part for part in found.energy if part.term.activity == "machine.cycles")
    assert always.joules == pytest.approx(found.cycles * always.term.picojoules * 1e-12)


def test_energy_of_something_that_nobody_counts(build: Build) -> None:
    platform = load_platform(PLATFORM)
    simulator = Simulator(replace(platform, energy=(replace(platform.energy[0], activity="cluster.naps"),)))
    simulator.load(build("hello", "STATUS=0"))
    simulator.run()
    with pytest.raises(TilewrightError, match=r"energy\.cluster cores: nothing counts 'cluster\.naps'"):
        statistics_of(simulator)


def test_profile(transfers: Path) -> None:
    simulator = ran(transfers, Look(profile=True))
    functions = profile_of(simulator)
    cluster = {function.function: function for function in functions if function.group == "cluster"}
    assert cluster["sum_of_half"].line.startswith("transfers.c:")
    # Both add 1024 bytes, at least a load and an addition each.
    assert cluster["sum_of_half"].cycles > 2 * 2 * 1024
    assert sum(function.share for function in cluster.values()) == pytest.approx(1)
    # Every cycle that a hart was awake is in some function.
    for group in ("fc", "cluster"):
        awake = sum(hart.active for hart in statistics_of(simulator).harts if hart.group == group)
        assert sum(function.cycles for function in functions if function.group == group) == pytest.approx(awake, abs=20)


def test_no_profile_unless_wanted(transfers: Path) -> None:
    assert profile_of(ran(transfers, Look())) == ()


def events(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["traceEvents"]


def test_trace(transfers: Path, tmp_path: Path) -> None:
    simulator = Simulator(PLATFORM, look=Look(trace=True))
    simulator.load(transfers)
    with TraceWriter(tmp_path / "t.json", simulator) as writer:
        simulator.run(watch=lambda _: writer.update())
    found = events(tmp_path / "t.json")
    lanes = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in found
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    assert {"fc", "cluster 0", "cluster 7", "mchan in"} <= set(lanes.values())
    for lane in lanes:
        open_slices: list[str] = []
        last = 0.0
        for event in (event for event in found if (event["pid"], event["tid"]) == lane and event["ph"] in "BE"):
            assert event["ts"] >= last
            last = event["ts"]
            if event["ph"] == "B":
                open_slices.append(event["name"])
            else:
                open_slices.pop()
        assert open_slices == []
    names = {event["name"] for event in found if event["ph"] == "B"}
    assert {"_start", "main", "tw_cluster_main", "program", "sum_of_half", "asleep"} <= names
    copies = [event for event in found if event["ph"] == "X"]
    assert [copy["args"]["bytes"] for copy in copies] == [1024, 1024]
    assert copies[0]["args"]["asked for by"] == "cluster 0"
    assert "in program" in copies[0]["args"]["at"]
    assert all(copy["dur"] * 1000 >= 1024 / 8 for copy in copies)


def test_trace_of_a_run_that_is_broken_off(build: Build, tmp_path: Path) -> None:
    simulator = Simulator(PLATFORM, look=Look(trace=True))
    simulator.load(build("ends", "END=spin_forever"))

    def interrupt(_: Simulator) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), TraceWriter(tmp_path / "t.json", simulator):
        simulator.run(watch=interrupt)
    assert "spin_forever" in {event["name"] for event in events(tmp_path / "t.json") if event["ph"] == "B"}
