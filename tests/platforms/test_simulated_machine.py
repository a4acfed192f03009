"""The simulator's part of a platform.yaml: what it means, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from tilewright.errors import TilewrightError
from tilewright.machine.target import PLATFORMS, Sizes, Target, load_platform, platform_names, resize
from tilewright.machine.timing import INSTRUCTION_CLASSES
from tilewright.sim.simulator import Simulator, built

SIRACUSA = (PLATFORMS / "siracusa" / "platform.yaml").read_text()


def test_timings_change_only_what_they_say() -> None:
    rtl, private, gvsoc = load_platform("siracusa").timings.values()
    assert (rtl.name, private.name, gvsoc.name) == ("rtl", "private", "gvsoc")
    assert rtl.aliases == gvsoc.aliases
    assert rtl.harts["cluster"].fetch == gvsoc.harts["cluster"].fetch
    assert (rtl.harts["cluster"].near_banks, gvsoc.harts["cluster"].near_banks) == (True, False)
    assert (rtl.harts["fc"].pipeline["multiply"], gvsoc.harts["fc"].pipeline["multiply"]) == (1, 2)
    assert rtl.harts["fc"].pipeline["load_use"] == gvsoc.harts["fc"].pipeline["load_use"] == 1


def test_units_are_shared_unless_the_timing_says_otherwise() -> None:
    rtl, private, gvsoc = (timing.harts["cluster"] for timing in load_platform("siracusa").timings.values())
    counts = [{unit.name: unit.count for unit in harts.units} for harts in (rtl, gvsoc, private)]
    assert counts == [{"fpu": 4, "divider": 1}, {"fpu": 4, "divider": 1}, {"fpu": 9, "divider": 9}]
    assert replace(private, units=rtl.units) == rtl
    assert [{unit.round_robin for unit in harts.units} for harts in (rtl, gvsoc)] == [{True}, {False}]


@pytest.mark.parametrize(("cores", "floats", "divisions"), [(8, 1, 7), (5, 1, 4), (4, 0, 3), (1, 0, 0)])
def test_cores_know_who_shares_their_unit(cores: int, floats: int, divisions: int) -> None:
    platform = resize(load_platform("siracusa"), Sizes(cores=cores))
    found = [platform.others_on_unit(kind) for kind in ("fp", "fp_divide", "alu")]
    assert found == [floats, divisions, 0]
    assert load_platform("generic").others_on_unit("fp") == 0


def test_the_planner_knows_the_queues_of_the_dma() -> None:
    platform = load_platform("siracusa")
    settings = next(iter(platform.timings.values())).devices["mchan"].settings
    assert platform.links["mchan"].queue == int(settings["core_queue"]) + int(settings["queue"])


def test_harts_have_names_and_numbers() -> None:
    timing = next(iter(load_platform("siracusa").timings.values()))
    assert timing.hart_names[:3] == ("fc", "cluster 0", "cluster 1")
    assert (timing.first_hart("fc"), timing.first_hart("cluster")) == (0, 1)
    assert timing.devices["event_unit"].settings["first_hart"] == 1


def test_every_simulated_platform_can_be_built() -> None:
    for name in platform_names():
        platform = load_platform(name)
        for timing in platform.timings.values():
            built(platform, timing)


def test_every_number_of_the_energy_model_has_a_basis() -> None:
    energy = load_platform("siracusa").energy
    assert {term.basis for term in energy} <= {"published", "derived", "estimate"}
    assert all(term.picojoules > 0 for term in energy)


def test_the_pipeline_names_every_class_of_instructions() -> None:
    timing = next(iter(load_platform("siracusa").timings.values()))
    assert set(INSTRUCTION_CLASSES) <= set(timing.harts["fc"].pipeline)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("starts: fc", "starts: boss", "simulator.starts: 'boss' is not among harts (fc, cluster)"),
        ("hertz: 360.0e+6", "hertz: fast", "simulator.hertz: must be a number"),
        ("bytes: 0x800000, section: .wmem", "section: .wmem", "simulator: memory WMEM has no size, so that it"),
        ("      multiply: 1\n", "", "simulator.pipelines.ri5cy.multiply: is missing"),
        ("      loop: 1\n", "      loop: 1\n      daydream: 1\n", "pipelines.ri5cy.daydream: is not a known key"),
        ("      pipeline: ri5cy\n      near: L2", "      pipeline: x\n      near: L2", "harts.fc.pipeline: 'x' is not"),
        ("near: L1\n", "near: L3\n", "simulator.harts.cluster.near: 'L3' is not known (known: L1, L2, WMEM)"),
        ("        WMEM: 5\n", "", "simulator.harts.cluster.cycles.WMEM: is missing"),
        ("        WMEM: 5\n", "        WMEM: 0\n", "cluster.cycles.WMEM: must be at least 1, found 0"),
        ("        WMEM: 5\n", "        WMEM: 5\n        moon: 9\n", "cluster.cycles.moon: is neither a memory"),
        ("base: 0x00000000, harts: cluster", "base: 0x00000000, harts: crew", "aliases[0].harts: 'crew' is not known"),
        ("fpu: {count: 4,", "fpu: {count: 0,", "simulator.harts.cluster.units.fpu.count: must be at least 1, found 0"),
        ("instructions: [fp]", "instructions: [fpp]", "cluster.units.fpu.instructions: 'fpp' is not known"),
        ("[fp], cycles: 1,", "[fp], cycles: 2,", "cluster.units.fpu.cycles: must be 1 to 1, the cycles of fp, found 2"),
        (
            "exit_register: 0xA0",
            "exit_register: [1]",
            "control.exit_register: must be a whole number or text, found [1]",
        ),
        ("device: mchan, base", "device: mcham, base", "simulator.windows.mchan_port.device: 'mcham' is not known"),
        (
            "          fp_load_again: 1\n",
            "          fp_lode: 1\n",
            "timings.gvsoc.pipelines.ri5cy.fp_lode: changes what is not",
        ),
        (
            "basis: estimate} # clock",
            "basis: rumour} # clock",
            "energy.cluster cores[1].basis: must be one of derived, estimate, published, found 'rumour'",
        ),
        (
            "pj: 14, basis",
            "picojoule: 14, basis",
            "energy.always on[0].picojoule: is not a known key (known: activity, basis, pj)",
        ),
    ],
)
def test_wrong_keys_are_named_with_their_path(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in SIRACUSA
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "platform.yaml").write_text(_kept_local(SIRACUSA.replace(old, new, 1)))
    with pytest.raises(TilewrightError) as caught:
        load_platform(folder)
    assert caught.value.code == "bad-platform"
    assert said in caught.value.what


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: console", "kind: typewriter", "there is no kind of device 'typewriter'"),
        ("      burst: 256\n", "", "mchan: 'burst' is missing"),
        ("      event: 8\n", "      event: eight\n", "mchan: 'event' must be a number"),
        ("      wake_cycles: 0\n", "      wake_cycle: 0\n", "event_unit: there is no setting 'wake_cycle'"),
        ("instructions: [fp]", "instructions: [alu]", "instructions 'alu' have no unit that harts can share"),
        ("xpulpv2] # no floating point", "xpulpv9]", "xpulpv9"),
    ],
)
def test_what_only_the_simulator_knows_to_be_wrong(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in SIRACUSA
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "platform.yaml").write_text(_kept_local(SIRACUSA.replace(old, new, 1)))
    with pytest.raises(TilewrightError) as caught:
        Simulator(folder)
    assert caught.value.code == "bad-platform"
    assert said in caught.value.what


def test_a_description_of_the_older_form(tmp_path: Path) -> None:
    """The simulator had memories of its own, a device was an array, too, and links were DMAs."""
    data = yaml.safe_load(_kept_local(SIRACUSA))
    data["simulator"]["memories"] = {
        name: {key: memory.pop(key) for key in ("base", "banks", "executable", "fill", "image") if key in memory}
        for name, memory in data["memories"].items()
    }
    data["engines"]["neureka"]["kind"] = "array"
    data["dmas"] = data.pop("links")
    found: list[Target] = []
    for name, text in (("new", _kept_local(SIRACUSA)), ("old", yaml.safe_dump(data, sort_keys=False))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "platform.yaml").write_text(text)
        found.append(replace(load_platform(tmp_path / name), folder=tmp_path))
    assert found[0] == found[1]


def _kept_local(text: str) -> str:
    """Without folders of code, which another folder does not have."""
    data = yaml.safe_load(text)
    return yaml.safe_dump(
        {key: value for key, value in data.items() if key not in ("runtime", "language", "cycles")} | {"kernels": []},
        sort_keys=False,
    )
