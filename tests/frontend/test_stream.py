"""Stream's accelerator and mapping files."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontend.stream_files import TWO, write_two
from tilewright.errors import TilewrightError
from tilewright.frontend.stream_machine import read_stream_machine
from tilewright.frontend.stream_mapping import StreamEntry, read_stream_mapping
from tilewright.machine.array import ArrayEngine
from tilewright.machine.machine import print_machine, read_machine_file
from tilewright.schedule.fabric import fabric_of


def test_an_accelerator(tmp_path: Path) -> None:
    machine, warnings = read_stream_machine(write_two(tmp_path))
    assert warnings == ()
    assert machine.home == "core2"
    assert machine.memories["core2"].word == 64
    first = machine.engines["core0"]
    assert isinstance(first, ArrayEngine)
    assert dict(first.wiring) == {"D1": (frozenset({"I1", "O"}),), "D2": (frozenset({"I2", "O"}),)}
    fabric = fabric_of(machine)
    assert fabric.places == ("core0", "core1", "core2")
    assert [(c.bits, c.energy) for c in fabric.channels] == [(32, 0.25), (32, 0.25), (64, 0.25)]
    assert fabric.routes["core0", "core1"] == (0,)
    assert fabric.routes["core2", "core1"] == (2,)
    weights = fabric.stores[fabric.holds["core0", "I2"]]
    assert (weights.bits, weights.read_word, weights.write_word) == (4096, 64, 32)


def test_what_is_printed_of_it_is_the_same_machine(tmp_path: Path) -> None:
    machine, _ = read_stream_machine(write_two(tmp_path))
    path = tmp_path / "own.yaml"
    path.write_text(print_machine(machine), encoding="utf-8")
    again, first = fabric_of(read_machine_file(path)), fabric_of(machine)
    assert (again.places, again.stores, again.routes) == (first.places, first.stores, first.routes)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("offchip_core_id: 2", "offchip_core_id: 7", "there is no core 7"),
        ("type: bus", "type: cloud", "must be link or bus"),
        ("cores: [0, 1, 2]", "cores: [0, 1, 5]", "'core5' is neither"),
        ("  2: ./cores/outside.yaml", "  x: ./cores/outside.yaml", "must be files by number"),
        ("./cores/outside.yaml", "./cores/core.yaml", "must be one, outside of the chip"),
    ],
)
def test_accelerators_that_cannot_be_read(tmp_path: Path, old: str, new: str, why: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        read_stream_machine(write_two(tmp_path, TWO.replace(old, new)))
    assert caught.value.code == "bad-platform"
    assert why in caught.value.what


def test_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(
        "- {name: Conv, core_allocation: [0, 1], intra_core_tiling: ['OY, all'], inter_core_tiling: ['K, *']}\n"
        "- {name: default, core_allocation: [1], intra_core_tiling: ['oy, 4']}\n",
        encoding="utf-8",
    )
    mapping, _ = read_stream_mapping(path)
    assert mapping.entry("first", "Conv") == StreamEntry(("core0", "core1"), (("K", 2),), (("OY", "all"),))
    assert mapping.entry("other", "Add") == StreamEntry(("core1",), (), (("OY", 4),))
    path.write_text("- {name: Conv, core_allocation: [0], intra_core_tiling: ['OY, some']}\n", encoding="utf-8")
    with pytest.raises(TilewrightError) as caught:
        read_stream_mapping(path)
    assert "'some' must be a number of parts, or all" in caught.value.what
