"""Texts of instructions against the disassembler of binutils, which knows the standard instructions."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sim import machines
from sim.encoder import Instruction, encode, instructions, word_bytes
from sim.random_code import DYNAMIC, ROUNDING_MODES, STANDARD

COMPRESSED_FORMS = {
    **dict.fromkeys(("c.lw", "c.flw", "c.sw", "c.fsw", "c.lwsp", "c.flwsp", "c.swsp", "c.fswsp"), "{name} {0},{1}"),
    **dict.fromkeys(("c.addi", "c.addi16sp", "c.srli", "c.srai", "c.slli", "c.andi"), "{name} {0},{0},{1}"),
    **dict.fromkeys(("c.sub", "c.xor", "c.or", "c.and", "c.add"), "{name} {0},{0},{1}"),
    # Shifts by 0 have names of their own there.
    **dict.fromkeys(("c.slli64", "c.srli64", "c.srai64"), "{name} {0},{0},0"),
    "c.addi4spn": "addi {0},{1},{2}",
    "c.nop": "addi zero,zero,{0}",
    "c.li": "addi {0},zero,{1}",
    "c.lui": "lui {0},{1}",
    "c.mv": "add {0},zero,{1}",
    "c.j": "jal zero,{0}",
    "c.jal": "jal ra,{0}",
    "c.jr": "jalr zero,0({0})",
    "c.jalr": "jalr ra,0({0})",
    "c.beqz": "beq {0},zero,{1}",
    "c.bnez": "bne {0},zero,{1}",
    "c.ebreak": "ebreak",
}
"""What compressed instructions stand for, in the operands that binutils prints."""
UNNAMED_CONTROL_REGISTER = 0x8FF


def disassembled(code: bytes, folder: Path) -> list[str]:
    """The text of each instruction."""
    tool = shutil.which("riscv64-unknown-elf-objdump")
    if tool is None:
        pytest.fail("riscv64-unknown-elf-objdump is missing: install Debian's package binutils-riscv64-unknown-elf")
    (folder / "code").write_bytes(code)
    command = [tool, "-D", "-z", "-b", "binary", "-m", "riscv:rv32", "-M", "no-aliases", str(folder / "code")]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^ *[0-9a-f]+:\t[0-9a-f]+ *\t(.*)$", listing, re.MULTILINE)


def normal(text: str) -> str:
    """One spelling: a space behind the name, decimal numbers, no comments and symbols, the usual rounding unsaid."""
    text = re.sub(r"\s+", " ", text.partition("#")[0].partition("<")[0]).strip().removesuffix(",dyn")
    return re.sub(r"0x[0-9a-f]+", lambda number: str(int(number[0], 16)), text)


def random_operand(chance: random.Random, letter: str) -> int:
    match letter:
        case "m":
            return chance.choice((*ROUNDING_MODES, DYNAMIC))
        case "E":
            return UNNAMED_CONTROL_REGISTER
        case _:
            return chance.getrandbits(32) & ~1 if letter in "pa" else chance.getrandbits(32)


def random_encodings(row: Instruction, chance: random.Random) -> list[int]:
    count = 8 if row.letters else 1
    return [encode(row, {letter: random_operand(chance, letter) for letter in row.letters}) for _ in range(count)]


def test_standard_instructions(tmp_path: Path) -> None:
    chance = random.Random(1)
    # A fence's operands are not kept.
    standard = [row for row in instructions().values() if row.extension in STANDARD and row.id != "fence"]
    words = [word for row in standard for word in random_encodings(row, chance)]
    expected = disassembled(word_bytes(*words), tmp_path)
    machine = machines.machine()
    for index, (word, text) in enumerate(zip(words, expected, strict=True)):
        assert normal(machine.disassemble(0, word, 4 * index)) == normal(text), hex(word)


def in_full(text: str) -> str:
    """The 32-bit instruction that a compressed one stands for."""
    name, _, operands = text.partition(" ")
    # Binutils prints some encodings that the specification reserves: shifts by 32 and more, and moving sp by 0.
    shift = re.search(r"^c\.s[lr][la]i .*,(\d+)$", text)
    reserved = text == "c.addi16sp sp,0" or (shift and int(shift[1]) >= 32)
    if name not in COMPRESSED_FORMS or reserved:
        return "illegal"
    plain = name.removeprefix("c.").removesuffix("sp").removesuffix("16").removesuffix("64")
    return COMPRESSED_FORMS[name].format(*(operands or "0").split(","), name=plain)


def test_all_compressed_instructions(tmp_path: Path) -> None:
    words = [word for word in range(0x10000) if word & 3 != 3]
    expected = disassembled(word_bytes(*words), tmp_path)
    machine = machines.machine()
    for index, (word, text) in enumerate(zip(words, expected, strict=True)):
        assert normal(machine.disassemble(0, word, 2 * index)) == in_full(normal(text)), f"{word:04x}: {text}"
