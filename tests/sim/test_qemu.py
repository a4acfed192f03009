"""RV32IMAFC against an independent simulator: the same machine code, at the same addresses, in qemu and in ours.

One program holds thousands of random sequences. Each has a record: the registers and the buffer it starts from, which
its results overwrite. At the end the program writes all records to its standard output, which ends it on our side.
"""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sim import machines
from sim.encoder import encode, instructions, word_bytes
from sim.random_code import BUFFER_BYTES, CALLER, FCSR, State, random_sequence, random_state

SEQUENCES = 12_000
SEED = 4
ALIGNMENT = 16

# A record: x1 to x30, f0 to f31, fcsr, the buffer.
INTEGERS, FLOATS = 30, 32
FLOATS_AT = 4 * INTEGERS
FCSR_AT = FLOATS_AT + 4 * FLOATS
BUFFER_AT = FCSR_AT + 4
RECORD_BYTES = BUFFER_AT + BUFFER_BYTES

LINK, SCRATCH = 1, 5
SYSTEM_WRITE, SYSTEM_EXIT = 64, 93


def load_immediate(register: int, value: int) -> bytes:
    upper = (value + 0x800) & 0xFFFFF000
    return word_bytes(encode("lui", d=register, u=upper), encode("addi", d=register, s=register, o=value - upper))


def call(here: int, target: int) -> bytes:
    """A call by the link register from `here`, as far away as it may be."""
    upper = (target - here + 0x800) & 0xFFFFF000
    return word_bytes(encode("auipc", d=LINK, u=upper), encode("jalr", d=LINK, s=LINK, o=target - here - upper))


def load_state() -> bytes:
    """A routine: all registers but the link register from the caller's record."""
    words = [encode("lw", d=SCRATCH, s=CALLER, o=FCSR_AT), encode("csrrw", E=FCSR, s=SCRATCH)]
    words += [encode("flw", d=number, s=CALLER, o=FLOATS_AT + 4 * number) for number in range(FLOATS)]
    words += [encode("lw", d=number, s=CALLER, o=4 * (number - 1)) for number in range(2, INTEGERS + 1)]
    return word_bytes(*words, encode("jalr", s=LINK))


def save_state() -> bytes:
    """A routine: all registers but the link register into the caller's record."""
    words = [encode("sw", t=number, s=CALLER, q=4 * (number - 1)) for number in range(2, INTEGERS + 1)]
    words += [encode("fsw", t=number, s=CALLER, q=FLOATS_AT + 4 * number) for number in range(FLOATS)]
    words += [encode("csrrs", d=SCRATCH, E=FCSR), encode("sw", t=SCRATCH, s=CALLER, q=FCSR_AT)]
    return word_bytes(*words, encode("jalr", s=LINK))


def record_of(state: State) -> bytes:
    words = [*state.integers, *state.floats, state.fcsr]
    return struct.pack(f"<{len(words)}I", *words) + state.buffer


@dataclass(frozen=True)
class Program:
    """Machine code and data from `machines.BASE` on."""

    image: bytes
    entry: int
    places: list[int]
    """Where each sequence starts, without what is around it."""
    sequences: list[bytes]
    records: int
    """Where the records are."""

    @property
    def end(self) -> int:
        """Where the program asks for its records to be written."""
        return self.records - len(final_calls(0, 0)) + len(write_call(0, 0)) - 4


def write_call(records: int, size: int) -> bytes:
    arguments = {10: 1, 11: records, 12: size, 17: SYSTEM_WRITE}
    return b"".join(load_immediate(*argument) for argument in arguments.items()) + word_bytes(encode("ecall"))


def final_calls(records: int, size: int) -> bytes:
    leave = load_immediate(10, 0) + load_immediate(17, SYSTEM_EXIT) + word_bytes(encode("ecall"))
    padding = -(len(write_call(0, 0)) + len(leave)) % ALIGNMENT
    return write_call(records, size) + leave + bytes(padding)


def random_program(chance: random.Random, count: int) -> Program:
    sequences = [random_sequence(chance) for _ in range(count)]
    loading, saving = load_state(), save_state()
    around = len(load_immediate(CALLER, 0) + call(0, 0)) + 4
    after = len(call(0, 0)) + 4
    load_at, save_at = machines.BASE, machines.BASE + len(loading)
    entry = save_at + len(saving)
    code_end = entry + sum(around + len(sequence) + after for sequence in sequences)
    final_at = code_end + -code_end % ALIGNMENT
    records = final_at + len(final_calls(0, 0))
    parts = [loading, saving]
    places: list[int] = []
    here = entry
    for index, sequence in enumerate(sequences):
        record = records + index * RECORD_BYTES
        pointing = load_immediate(CALLER, record)
        parts += [pointing, call(here + len(pointing), load_at), word_bytes(encode("lw", d=LINK, s=CALLER))]
        places.append(here + around)
        here += around + len(sequence)
        parts += [sequence, word_bytes(encode("sw", t=LINK, s=CALLER)), call(here + 4, save_at)]
        here += after
    # Compressed nops up to the final calls.
    parts += [word_bytes(*[0x0001] * ((final_at - here) // 2)), final_calls(records, count * RECORD_BYTES)]
    parts += [record_of(random_state(chance, records + i * RECORD_BYTES + BUFFER_AT)) for i in range(count)]
    return Program(b"".join(parts), entry, places, sequences, records)


def elf(program: Program) -> bytes:
    """A static RV32 executable of one segment that is read, written and executed."""
    riscv, compressed_and_single_float = 243, 0x3
    header_bytes, entry_bytes, page = 52, 32, 4096
    identity = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    fields = (2, riscv, 1, program.entry, header_bytes, 0, compressed_and_single_float, header_bytes, entry_bytes)
    header = identity + struct.pack("<HHIIIIIHHHHHH", *fields, 1, 0, 0, 0)
    size = len(program.image)
    segment = struct.pack("<IIIIIIII", 1, page, machines.BASE, machines.BASE, size, size, 7, page)
    return (header + segment).ljust(page, b"\0") + program.image


def run_in_qemu(program: Program, folder: Path) -> bytes:
    qemu = shutil.which("qemu-riscv32")
    if qemu is None:
        pytest.fail("qemu-riscv32 is missing: install Debian's package qemu-user")
    executable, output = folder / "program.elf", folder / "records"
    executable.write_bytes(elf(program))
    executable.chmod(0o755)
    with output.open("wb") as records:
        subprocess.run([qemu, str(executable)], stdout=records, check=True, timeout=60)
    return output.read_bytes()


def run_in_simulator(program: Program, extensions: Sequence[str]) -> bytes:
    machine = machines.machine(size=len(program.image) + -len(program.image) % ALIGNMENT, extensions=extensions)
    machine.write(machines.BASE, program.image)
    machine.start(0, program.entry, 0)
    assert machine.run(10**9) == "fault"
    fault = machine.fault()
    assert fault is not None
    assert (fault["kind"], fault["pc"]) == ("trap", program.end), fault
    return machine.read(program.records, len(program.sequences) * RECORD_BYTES)


def record_text(index: int) -> str:
    """What the word `index` of a record is."""
    if index < INTEGERS:
        return f"x{index + 1}"
    if index < INTEGERS + FLOATS:
        return f"f{index - INTEGERS}"
    return "fcsr" if index == INTEGERS + FLOATS else f"buffer+{4 * index - BUFFER_AT}"


def difference(program: Program, index: int, expected: bytes, found: bytes) -> str:
    """A sequence in words, what it started from, and the words that differ."""
    machine = machines.machine()
    code, place = program.sequences[index], program.places[index]
    lines = [f"sequence {index}:"]
    at = 0
    while at < len(code):
        word = int.from_bytes(code[at : at + 4], "little")
        lines.append(f"  {place + at:08x}: {machine.disassemble(0, word, place + at)}")
        at += 4 if word & 3 == 3 else 2
    start = program.records - machines.BASE + index * RECORD_BYTES
    before = struct.iter_unpack("<I", program.image[start : start + RECORD_BYTES])
    rows = zip(before, struct.iter_unpack("<I", expected), struct.iter_unpack("<I", found), strict=True)
    for number, ((old,), (theirs,), (ours,)) in enumerate(rows):
        mark = "" if theirs == ours else f"  <-- simulated {ours:08x}"
        lines.append(f"  {record_text(number)}: {old:08x} -> {theirs:08x}{mark}")
    return "\n".join(lines)


@pytest.mark.parametrize("floats", ["rv32f", "xfloat"])
def test_random_sequences_end_as_in_qemu(floats: str, tmp_path: Path) -> None:
    """Floats in registers of 32 bits, and boxed in those of 64."""
    program = random_program(random.Random(SEED), SEQUENCES)
    extensions = [floats if name == "rv32f" else name for name in machines.EXTENSIONS]
    expected, found = run_in_qemu(program, tmp_path), run_in_simulator(program, extensions)
    assert len(expected) == SEQUENCES * RECORD_BYTES
    starts = range(0, len(expected), RECORD_BYTES)
    wrong = [start for start in starts if expected[start : start + RECORD_BYTES] != found[start : start + RECORD_BYTES]]
    if wrong:
        shown = slice(wrong[0], wrong[0] + RECORD_BYTES)
        text = difference(program, wrong[0] // RECORD_BYTES, expected[shown], found[shown])
        pytest.fail(f"{len(wrong)} of {SEQUENCES} sequences end differently, for example\n{text}")


def test_random_sequences_hold_all_instructions() -> None:
    """A thousand sequences are enough for each row of the tables, so that none is compared by luck only."""
    chance = random.Random(SEED)
    machine = machines.machine()
    seen: set[str] = set()
    for sequence in (random_sequence(chance) for _ in range(1000)):
        at = 0
        while at < len(sequence):
            word = int.from_bytes(sequence[at : at + 4], "little")
            seen.add(machine.disassemble(0, word, 0).split()[0])
            at += 4 if word & 3 == 3 else 2
    kinds = {"rv32i", "rv32m", "zicsr", "rv32a", "rv32f"}
    names = {row.name for row in instructions().values() if row.extension in kinds}
    assert names - seen <= {"ecall", "ebreak", "mret", "wfi", "fence", "fence.i"}
