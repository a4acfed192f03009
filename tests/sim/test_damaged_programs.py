"""Whatever is wrong with an ELF file, it runs or ends in one clear error; damaged debug information stops nothing."""

from __future__ import annotations

import random
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from sim.faults import FLAGS
from sim.small_programs import small_program
from tilewright.cli.app import run
from tilewright.errors import TilewrightError
from tilewright.sim.marks import SECTION, marks_of
from tilewright.sim.program import ElfProgram, load_program

PATTERNS = (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", bytes(4), b"\x80" * 8, b"\x00", b"\xff", b"\x7f", b"\x80")


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("hello")
    return small_program(folder, "hello", "STATUS=0", flags=(*FLAGS, "-g")).read_bytes()


@pytest.fixture(scope="module")
def regions(hello: bytes) -> list[tuple[int, int]]:
    """Where headers, symbols, names and debug information lie, and how long they are."""
    elf: Any = ELFFile(BytesIO(hello))
    found = [(0, 52), (52, 64), (elf["e_shoff"], elf.num_sections() * 40)]
    named = (".debug", ".symtab", ".strtab", ".shstrtab")
    found += [(s["sh_offset"], s["sh_size"]) for s in elf.iter_sections() if s.name.startswith(named) and s["sh_size"]]
    assert len(found) > 10
    return found


def damaged(content: bytes, region: tuple[int, int], seed: int) -> bytes:
    rng = random.Random(seed)
    start, size = region
    result = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = start + rng.randrange(size)
        if rng.random() < 0.4:
            result[at] ^= 1 << rng.randrange(8)
        else:
            pattern = rng.choice(PATTERNS)
            result[at : at + len(pattern)] = pattern
    return bytes(result[: len(content)])


def look_at(program: ElfProgram) -> None:
    """Asks for all that profiles and errors ask for."""
    marks_of(program)
    for symbol in program.all_symbols:
        program.place(symbol.address)
    for segment in program.segments:
        for address in range(segment.address, segment.address + len(segment.data), 16):
            program.line_at(address)


def outcome(path: Path) -> str:
    """The code of the error that a program ends in, if any."""
    try:
        look_at(load_program(path))
    except TilewrightError as error:
        return error.code if error.help else "no help"
    return ""


@pytest.mark.parametrize("part", range(16))
def test_damage_anywhere(part: int, hello: bytes, regions: list[tuple[int, int]], tmp_path: Path) -> None:
    path = tmp_path / "program.elf"
    for seed in range(part * 30, part * 30 + 30):
        path.write_bytes(damaged(hello, regions[seed % len(regions)], seed))
        assert outcome(path) in ("", "bad-elf"), seed


def test_damaged_debug_information_stops_nothing(
    hello: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf: Any = ELFFile(BytesIO(hello))
    debug = [s for s in elf.iter_sections() if s.name.startswith(".debug") and s["sh_size"]]
    path = tmp_path / "program.elf"
    for filler in (b"\xff", b"\x00", b"\x80"):
        content = hello
        for section in debug:
            start, size = section["sh_offset"], section["sh_size"]
            content = content[:start] + filler * size + content[start + size :]
        path.write_bytes(content)
        assert run(["sim", str(path), "--platform", "siracusa", "--profile"]) == 0
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(24))
def test_runs_or_says_why(
    seed: int, hello: bytes, regions: list[tuple[int, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.elf"
    path.write_bytes(damaged(hello, regions[seed % len(regions)], 1000 + seed))
    options = ["--profile", "--checks", "--stats", "--max-cycles", "20000"]
    status = run(["sim", str(path), "--platform", "siracusa", *options])
    said = capsys.readouterr().err
    assert status in (0, 2), said
    assert status == 0 or said.count("error[") == 1


def test_stacks_that_end_nowhere(hello: bytes, tmp_path: Path) -> None:
    """Symbols of a linker script that give no address for the end of a stack."""
    path = tmp_path / "program.elf"
    elf: Any = ELFFile(BytesIO(hello))
    table = elf.get_section_by_name(".symtab")
    content = bytearray(hello)
    for index, symbol in enumerate(table.iter_symbols()):
        if symbol.name.endswith("_stack_top"):
            at = table["sh_offset"] + 16 * index + 4
            content[at : at + 4] = bytes(4)
    path.write_bytes(bytes(content))
    assert run(["sim", str(path), "--platform", "siracusa", "--max-cycles", "20000"]) in (0, 2)


@pytest.mark.parametrize(
    "marks",
    [
        b"\x01",
        b"\x01\x02\x03\x04",
        b"\x01\x02\x03\x04no end",
        b"\x01\x02\x03\x04\xff\xff\0",
        b"\x01\x02\x03\x04a b\0",
        b"\x01\x02\x03\x04a b c\0",
    ],
)
def test_marks_that_say_nothing(marks: bytes, hello: bytes, tmp_path: Path) -> None:
    """The section of marks holds something else: here that of comments takes its place."""
    elf: Any = ELFFile(BytesIO(hello))
    comment = elf.get_section_by_name(".comment")
    start = comment["sh_offset"]
    length_at = elf["e_shoff"] + 40 * elf.get_section_index(".comment") + 20
    names = elf.get_section(elf["e_shstrndx"])
    content = bytearray(hello[:start] + marks + hello[start + len(marks) :])
    content[length_at : length_at + 4] = len(marks).to_bytes(4, "little")
    name_at = elf["e_shoff"] + 40 * elf.get_section_index(".comment")
    end = names["sh_offset"] + names["sh_size"]
    del content[name_at : name_at + 4]
    content[name_at:name_at] = (len(content) + 4 - names["sh_offset"]).to_bytes(4, "little")
    assert end <= len(content)
    (tmp_path / "program.elf").write_bytes(bytes(content) + SECTION.encode() + b"\0")
    with pytest.raises(TilewrightError) as caught:
        marks_of(load_program(tmp_path / "program.elf"))
    assert caught.value.code == "bad-elf"
