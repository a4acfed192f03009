"""The library of array machines: each says where its numbers are from, and survives being printed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tilewright.machine.array import DIRECTIONS
from tilewright.machine.library import MACHINES, load_array, load_machine, machine_names
from tilewright.machine.machine import print_machine, read_machine_file

KNOWN = {
    "analog-imc",
    "ascend-like",
    "digital-imc",
    "edge-tpu-like",
    "eyeriss-like",
    "gemm-array",
    "generic-array",
    "meta-prototype-like",
    "tesla-npu-like",
    "tpu-like",
}


def test_the_known_machines_are_there() -> None:
    assert set(machine_names()) >= KNOWN


@pytest.mark.parametrize("name", machine_names())
def test_machine(name: str, tmp_path: Path) -> None:
    machine, array = load_machine(name), load_array(name)
    assert machine.name == array.name == name
    assert machine.summary
    assert machine.provenance
    assert set(array.wiring) == set(array.dims)
    assert {"I1", "I2", "O", "final"} <= set(array.precision)
    path = tmp_path / "copy.yaml"
    path.write_text(print_machine(machine), encoding="utf-8")
    assert read_machine_file(path) == machine


@pytest.mark.parametrize("name", machine_names())
def test_everything_that_moves_has_a_port(name: str) -> None:
    machine = load_array(name)
    for slot in machine.slots:
        levels = machine.levels(slot)
        for index, memory in enumerate(levels):
            needed = DIRECTIONS if slot == "O" else (DIRECTIONS[0], DIRECTIONS[3])
            for direction in needed:
                outwards = direction in DIRECTIONS[2:]
                if not (outwards and index == len(levels) - 1):
                    assert memory.port(slot, direction) is not None, f"{memory.name} {slot} {direction}"


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text((MACHINES / "tpu-like.yaml").read_text(encoding="utf-8").replace("name: tpu-like\n", ""))
    assert load_array(str(path)).name == "mine"
    assert load_array(path).dims == load_array("tpu-like").dims


def test_a_file_of_the_older_form(tmp_path: Path) -> None:
    """The array and its memories stood side by side."""
    data = yaml.safe_load((MACHINES / "tpu-like.yaml").read_text(encoding="utf-8"))
    array = data.pop("engines")["array"]
    old = {"kind": array.pop("kind"), "memories": array.pop("memories"), "array": array, **data}
    path = tmp_path / "old.yaml"
    path.write_text(yaml.safe_dump(old, sort_keys=False), encoding="utf-8")
    assert load_machine(path) == load_machine("tpu-like")
