"""error[bad-machine]: a description of an array machine that says something wrong, with the path of the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu
from tilewright.errors import TilewrightError
from tilewright.machine.library import MACHINES
from tilewright.machine.machine import read_machine_file

GOOD = (MACHINES / "tpu-like.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("kind: array", "kind: tree", "engines.array.kind: must be one of cores, device, array, found 'tree'"),
        ("bits: 64, moves", "moves", "memories.dram.ports.rw_port_1.bits: is missing"),
        ("bits: 64, moves", "bits: 0, moves", "memories.dram.ports.rw_port_1.bits: must be at least 1, found 0"),
        ("granularity: 64", "granularity: 4096", "granularity: is more than the 2048 bits of the port"),
        ("I2 to low", "I2 to hell", "'I2 to hell' is not an operand with one of: to low, from low, to high"),
        ("moves: [I2 to low]", "moves: [O to low]", "the memory does not hold 'O' (it holds I2)"),
        ("moves: [I2 to low]", "moves: [I2 from high]", "'I2 from high' cannot cross a read port"),
        ("moves: [I2 to low]", "moves: []", "memories.rf_128B.ports: none moves 'I2 to low'"),
        ("moves: [O from low]", "moves: []", "memories.rf_2B.ports: none moves 'O from low'"),
        (
            "serves: [D1, D2]",
            "serves: [D1, D3]",
            "memories.sram_2MB.serves: 'D3' is not a dimension of the array (D1, D2)",
        ),
        ("    D2: [I1 I2]", "    D9: [I1 I2]", "array.unroll.D9: is not a dimension of the array (D1, D2)"),
        ("    D2: [I1 I2]", "    D2: [I1 I7]", "array.unroll.D2: no memory holds 'I7'"),
        ("bits: {I1: 8,", "bits: {W: 8,", "array.bits.W: is neither 'final' nor an operand"),
        ("dims: {D1: 32, D2: 32}", "dims: {D1: 32, D2: many}", "array.dims.D2: must be a whole number, found 'many'"),
        ("unit_area: 1", "unit_size: 1", "array.unit_size: is not a known key"),
        ("    kind: rf", "    king: rf", "memories.rf_128B.king: is not a known key"),
        ("kind: array", "kind: [", "is not YAML"),
        ("    kind: array\n", "", "engines.array.kind: is missing (one of cores, device, array)"),
        (
            "serves: []",
            "serfs: []",
            "serfs: is not a known key (known: area, bits, double_buffered, energy, holds, kind",
        ),
    ],
)
def test_bad_machine(old: str, new: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(TilewrightError) as caught:
        read_machine_file(path)
    assert caught.value.code == "bad-machine"
    assert expected in caught.value.what


def test_analog_array_without_converters(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = (MACHINES / "analog-imc.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace(", adc_bits: 8", ""), encoding="utf-8")
    with pytest.raises(TilewrightError, match="an analog array needs converters"):
        read_machine_file(path)


def test_description_for_another_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "theirs.yaml"
    path.write_text("name: x\nmemories: {}\noperational_array: {}\n", encoding="utf-8")
    text = refused("bad-machine", capsys, "cost", relu(tmp_path), "--machine", path)
    assert "theirs.yaml is a description for ZigZag" in text
    assert "tilewright import zigzag theirs.yaml -o machine.yaml" in text
