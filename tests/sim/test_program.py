"""ELF files: what is loaded, and what addresses are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.faults import FLAGS
from sim.small_programs import small_program
from tilewright.sim.program import ElfProgram, SourcePlace, load_program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ElfProgram:
    return load_program(small_program(tmp_path_factory.mktemp("elf"), "variables"))


def test_what_is_loaded(program: ElfProgram) -> None:
    assert program.entry == program.symbols["_start"].address == program.segments[0].address
    numbers = program.symbols["numbers"]
    assert numbers.size == 16
    assert not numbers.is_function
    segment = next(s for s in program.segments if 0 <= numbers.address - s.address < len(s.data))
    at = numbers.address - segment.address
    assert segment.data[at : at + 16] == bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0])


def test_addresses_have_names_and_lines(program: ElfProgram) -> None:
    function = program.symbols["add_all"]
    place = program.place(function.address + 2)
    assert (place.function, place.offset) == ("add_all", 2)
    source = (Path(__file__).parent / "programs" / "small" / "variables.c").read_text().splitlines()
    first = next(number for number, line in enumerate(source, 1) if "add_all(void)" in line)
    for address in range(function.address, function.address + function.size, 2):
        name, line = program.place(address).line.split(":")
        assert name == "variables.c"
        assert first <= int(line) <= first + 5
    assert str(place).startswith(f"{function.address + 2:#010x} in add_all+0x2 (variables.c:")


def test_labels_inside_of_assembly_are_no_functions(program: ElfProgram) -> None:
    assert program.symbols["_start"].is_function
    assert not program.symbols["cleared"].is_function
    assert program.place(program.symbols["cleared"].address).function == "_start"


def test_address_without_name(program: ElfProgram) -> None:
    assert program.place(0x30000000) == SourcePlace(0x30000000)
    assert str(program.place(0x10)) == "0x00000010"


def test_without_debug_information(tmp_path: Path) -> None:
    flags = tuple(flag for flag in FLAGS if flag != "-g")
    plain = load_program(small_program(tmp_path, "variables", flags=flags))
    place = plain.place(plain.symbols["add_all"].address)
    assert (place.function, place.line) == ("add_all", "")


def test_stripped(tmp_path: Path) -> None:
    bare = load_program(small_program(tmp_path, "variables", flags=(*FLAGS, "-s")))
    assert bare.symbols == {}
    assert bare.place(bare.entry) == SourcePlace(bare.entry)
