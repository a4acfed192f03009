"""error[bad-elf]: a file that is no program for the simulated machine."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from command_line import refused
from sim.faults import FLAGS, START, compiler
from sim.small_programs import small_program

SIM = ("--platform", "siracusa")


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return small_program(tmp_path_factory.mktemp("hello"), "hello", "STATUS=0").read_bytes()


def said_of(contents: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = folder / "program.elf"
    path.write_bytes(contents)
    said = refused("bad-elf", capsys, "sim", path, *SIM)
    assert "program.elf" in said
    assert "help: " in said
    return said


def test_not_an_elf_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for contents in (b"", b"\x7f", b"#!/bin/sh\n", bytes(1000)):
        assert "it is not an ELF file" in said_of(contents, tmp_path, capsys)


def test_cut_off(hello: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for length in (4, 16, 51):
        assert "its header is cut off or damaged" in said_of(hello[:length], tmp_path, capsys)
    for length in (60, 200, 4000):
        assert "cut off" in said_of(hello[:length], tmp_path, capsys)


def test_another_machine(hello: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arm = hello[:18] + struct.pack("<H", 40) + hello[20:]
    assert "it is for another machine: EM_ARM with 32 bits, little endian" in said_of(arm, tmp_path, capsys)


def test_nothing_to_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "start.o"
    subprocess.run([compiler(), *FLAGS[:2], "-c", START, "-o", path], check=True)
    said = refused("bad-elf", capsys, "sim", path, *SIM)
    assert "it has no segment to load" in said
    assert "link it" in said


def test_outside_of_all_memories(hello: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = hello.replace(struct.pack("<I", 0x1C010000), struct.pack("<I", 0x40000000))
    said = said_of(moved, tmp_path, capsys)
    assert "does not fit into the memories of 'siracusa'" in said
    assert "bytes at 0x40000000" in said
    assert "L2 is at 0x1c000000 to 0x1c200000" in said


def test_garbled(hello: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is wrong with the headers, there is an error and no crash."""
    from tilewright.cli.app import run

    path = tmp_path / "program.elf"
    for at in (*range(16, 52, 2), *range(52, 52 + 64, 4)):
        path.write_bytes(hello[:at] + b"\xff\xff\xff\x7f" + hello[at + 4 :])
        assert run(["sim", str(path), *SIM, "--max-cycles", "100000"]) in (0, 2)
        assert "Traceback" not in capsys.readouterr().err
