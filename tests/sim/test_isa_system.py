"""Traps, control registers, atomics between harts, and instructions that a hart does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from sim import machines
from sim.encoder import encode, word_bytes
from sim.random_code import DYNAMIC, FCSR, FFLAGS, FRM
from tilewright import _native

A0, A1, A2, A3, A4 = 10, 11, 12, 13, 14
MSTATUS, MISA, MTVEC, MEPC, MCAUSE, MTVAL, CYCLE, INSTRET = 0x300, 0x301, 0x305, 0x341, 0x342, 0x343, 0xC00, 0xC02
EBREAK = encode("ebreak")
NOP = encode("addi")
WITHOUT_FLOATS = [name for name in machines.EXTENSIONS if name != "rv32f"]


def run(machine: _native.Machine, words: Sequence[int], registers: Mapping[int, int] | None = None) -> _native.Machine:
    """Runs code on the first hart up to an ebreak behind it, or to a fault in it."""
    machine.write(machines.CODE, word_bytes(*words, EBREAK))
    for number, value in (registers or {}).items():
        machine.set_register(0, number, value)
    machine.start(0, machines.CODE, 0)
    assert machine.run(100_000) == "fault"
    return machine


def fault_of(machine: _native.Machine) -> tuple[str, int]:
    """The kind of a fault, and where in the code it was."""
    fault = machine.fault()
    assert fault is not None
    return fault["kind"], fault["pc"] - machines.CODE


ROUNDING_INSTRUCTIONS = ["fadd_s", "fsqrt_s", "fnmadd_s", "fcvt_w_s", "fcvt_s_wu"]


@pytest.mark.parametrize("name", ROUNDING_INSTRUCTIONS)
@pytest.mark.parametrize(("mode", "frm"), [(5, 0), (6, 0), (DYNAMIC, 5), (DYNAMIC, 6), (DYNAMIC, 7)])
def test_rounding_modes_that_do_not_exist(name: str, mode: int, frm: int) -> None:
    machine = run(machines.machine(), [encode("csrrwi", E=FRM, Z=frm), encode(name, m=mode)])
    assert fault_of(machine) == ("illegal-instruction", 4)


def test_only_instructions_that_round_look_at_the_mode() -> None:
    words = [encode("csrrwi", E=FRM, Z=7), encode("fadd_s", d=1, s=1, t=1, m=4), encode("fmax_s"), encode("feq_s")]
    assert fault_of(run(machines.machine(), words)) == ("trap", 16)


def test_parts_of_fcsr() -> None:
    words = [
        *(encode("csrrwi", d=A0, E=FCSR, Z=0b10101), encode("csrrwi", d=A1, E=FRM, Z=0b111)),
        *(encode("csrrs", d=A2, E=FCSR), encode("csrrci", d=A3, E=FFLAGS, Z=1), encode("csrrw", d=A4, E=FCSR, s=5)),
    ]
    machine = run(machines.machine(), words, {5: 0xFFFFFFFF})
    assert [machine.register(0, number) for number in (A0, A1, A2, A3, A4)] == [0, 0, 0xF5, 0x15, 0xF4]
    assert machine.fcsr(0) == 0xFF


@pytest.mark.parametrize(
    "word",
    [encode("fadd_s"), encode("flw", s=A0), encode("fmv_x_w", d=A0), encode("csrrs", d=A0, E=FCSR), 0x6108, 0xE108],
    ids=["fadd.s", "flw", "fmv.x.w", "fcsr", "c.flw", "c.fsw"],
)
def test_hart_without_floating_point(word: int) -> None:
    machine = run(machines.machine(extensions=WITHOUT_FLOATS), [NOP, word], {A0: machines.DATA})
    assert fault_of(machine) == ("illegal-instruction", 4)


@pytest.mark.parametrize(
    "word",
    [0x0000, 0x2000, 0xA000, 0x8000, 0x6101, 0x6081, 0x9001, 0x9C01, 0x9C61, 0x1002, 0x2002, 0x4002, 0x8002, 0xA002],
    ids=lambda word: f"{word:04x}",
)
def test_compressed_encodings_that_do_not_exist(word: int) -> None:
    machine = run(machines.machine(), [NOP, word])
    fault = machine.fault()
    assert fault is not None
    assert (fault["pc"], fault["message"]) == (machines.CODE + 4, f"illegal instruction 0x{word:04x}")


def test_hart_without_compressed_instructions() -> None:
    machine = run(machines.machine(extensions=["rv32i"]), [NOP, 0x0001])
    assert fault_of(machine) == ("illegal-instruction", 4)


@pytest.mark.parametrize(
    ("extensions", "letters"),
    [(["rv32i"], "i"), (["rv32i", "rv32m", "rv32c"], "icm"), (machines.EXTENSIONS, "acfimx")],
)
def test_misa_names_the_extensions(extensions: list[str], letters: str) -> None:
    machine = run(machines.machine(extensions=[*extensions, "zicsr"]), [encode("csrrs", d=A0, E=MISA)])
    assert machine.register(0, A0) == 1 << 30 | sum(1 << ord(letter) - ord("a") for letter in letters)


@pytest.mark.parametrize(
    ("word", "cause", "value"),
    [
        (encode("ecall"), 11, 0),
        (encode("ebreak"), 3, 0),
        (0xFFFFFFFF, 2, 0),
        (encode("csrrw", E=CYCLE), 2, 0),
        (encode("csrrs", E=0x5C0), 2, 0),
        (encode("fadd_s", m=5), 2, 0),
        (encode("lr_w", d=A0, s=A1), 4, machines.DATA + 2),
        (encode("sc_w", d=A0, s=A1), 6, machines.DATA + 2),
        (encode("amoadd_w", d=A0, s=A1), 6, machines.DATA + 2),
    ],
    ids=["ecall", "ebreak", "illegal", "read-only", "no-register", "rounding", "lr", "sc", "amo"],
)
def test_trap_and_return(word: int, cause: int, value: int) -> None:
    """The handler notes the cause, and returns behind the instruction."""
    handler = [
        *(encode("csrrs", d=A2, E=MCAUSE), encode("csrrs", d=A3, E=MTVAL), encode("csrrs", d=A4, E=MEPC)),
        *(encode("addi", d=5, s=A4, o=4), encode("csrrw", E=MEPC, s=5), encode("mret")),
    ]
    machine = machines.machine()
    machine.write(machines.DATA - 0x100, word_bytes(*handler))
    words = [encode("csrrw", E=MTVEC, s=6), word, encode("addi", d=A0, o=7), encode("csrrw", E=MTVEC)]
    run(machine, words, {A1: machines.DATA + 2, 6: machines.DATA - 0x100})
    assert fault_of(machine) == ("trap", 4 * len(words))
    assert [machine.register(0, number) for number in (A0, A2, A3, A4)] == [7, cause, value, machines.CODE + 4]


def test_counters_can_be_read() -> None:
    words = [NOP, NOP, encode("csrrs", d=A0, E=INSTRET), encode("csrrs", d=A1, E=CYCLE), encode("csrrs", d=A2, E=CYCLE)]
    machine = run(machines.machine(), words)
    assert machine.register(0, A0) == 2
    assert machine.register(0, A2) - machine.register(0, A1) == 1


def test_new_code_is_seen_after_fence_i() -> None:
    """The code overwrites an instruction that was executed before."""
    words = [
        *(encode("jal", a=16), encode("sw", t=A1, s=A2), encode("fence_i"), encode("jal", a=4)),
        *(encode("addi", d=A0, s=A0, o=1), encode("addi", d=A3, s=A3, o=1), encode("beq", s=A3, t=A4, p=-20)),
    ]
    changed = encode("addi", d=A0, s=A0, o=100)
    machine = run(machines.machine(), words, {A1: changed, A2: machines.CODE + 16, A4: 1})
    assert machine.register(0, A0) == 101


def test_result_of_a_load_is_waited_for_in_all_registers() -> None:
    """f0 is a register as any other, x0 is not."""
    slow = machines.PIPELINE | {"load_use": 3, "fp_load_use": 3}
    stalls: list[int] = []
    for register in (0, 1):
        uses = [encode("flw", d=register, s=A0), encode("fsgnj_s", d=2, s=register, t=3)]
        uses += [encode("lw", d=register, s=A0), encode("add", d=2, s=register, t=3)]
        machine = run(machines.machine(pipeline=slow), uses, {A0: machines.DATA})
        stalls.append(machine.counters(0)["stall_use"])
    assert stalls == [3, 6]


WORD = machines.DATA
ADDRESS = {A0: WORD}


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        *(("amoswap_w", 5), ("amoadd_w", 0x80000004), ("amoxor_w", 0x7FFFFFFA), ("amoor_w", 0xFFFFFFFF)),
        *(("amoand_w", 5), ("amomin_w", 0xFFFFFFFF), ("amomax_w", 5), ("amominu_w", 5), ("amomaxu_w", 0xFFFFFFFF)),
    ],
)
def test_atomic_operations(name: str, stored: int) -> None:
    before = 0x7FFFFFFF if name in ("amoadd_w", "amoxor_w") else 0xFFFFFFFF
    machine = machines.machine()
    machine.write(WORD, before.to_bytes(4, "little"))
    run(machine, [encode(name, d=A2, s=A0, t=A1)], ADDRESS | {A1: 5})
    assert machine.register(0, A2) == before
    assert int.from_bytes(machine.read(WORD, 4), "little") == stored


@pytest.mark.parametrize(
    ("word", "succeeds"),
    [
        (encode("sw", t=A1, s=A0), False),
        (encode("sb", t=A1, s=A0, q=3), False),
        (encode("sw", t=A1, s=A0, q=-2), False),
        (encode("fsw", s=A0), False),
        (encode("amoor_w", s=A0), False),
        (encode("sw", t=A1, s=A0, q=4), True),
        (encode("sb", t=A1, s=A0, q=-1), True),
        (encode("lw", d=A1, s=A0), True),
        (encode("sc_w", d=A1, s=A0), True),
        (NOP, True),
    ],
    ids=["sw", "sb", "misaligned", "fsw", "amo", "behind", "before", "lw", "failing sc", "nothing"],
)
def test_stores_of_another_hart_end_a_reservation(word: int, succeeds: bool) -> None:
    """The first hart waits between lr and sc, while the other one executes an instruction."""
    machine = machines.machine(harts=2)
    other = machines.CODE + 0x1000
    machine.write(machines.CODE, word_bytes(encode("lr_w", d=A1, s=A0), *[NOP] * 40, encode("sc_w", d=A2, s=A0, t=A3)))
    machine.write(other, word_bytes(*[NOP] * 20, word, encode("jal")))
    for hart, code in ((0, machines.CODE), (1, other)):
        machine.set_register(hart, A0, WORD)
        machine.start(hart, code, 0)
    machine.set_register(0, A3, 77)
    machine.set_register(0, A2, 9)
    machine.run(60)
    assert machine.register(0, A2) == (0 if succeeds else 1)
    assert (machine.read(WORD, 1) == b"\x4d") == succeeds


def test_conditional_store_needs_the_same_word() -> None:
    pairs = [encode("lr_w", s=A0), encode("sc_w", d=A2, s=A1), encode("sc_w", d=A3, s=A0), encode("sc_w", d=A4, s=A0)]
    again = [encode("lr_w", s=A0), encode("sc_w", d=A4, s=A0)]
    machine = run(machines.machine(), [*pairs, *again], ADDRESS | {A1: WORD + 4})
    assert [machine.register(0, number) for number in (A2, A3, A4)] == [1, 1, 0]


def test_reservation_is_of_the_memory_and_not_of_the_address() -> None:
    machine = machines.machine()
    machine.add_alias("memory", 0, machines.SIZE, False, "")
    words = [encode("lr_w", s=A0), encode("sc_w", d=A2, s=A1, t=A1)]
    run(machine, words, ADDRESS | {A1: WORD - machines.BASE, A2: 9})
    assert machine.register(0, A2) == 0


@pytest.mark.parametrize("atomic", ["lr_w", "amoadd_w", "none"])
def test_harts_count_together(atomic: str) -> None:
    """Four harts add 1 a hundred times; only atomic additions are never lost."""
    added = {
        "lr_w": [
            *(encode("lr_w", d=A1, s=A0), encode("addi", d=A1, s=A1, o=1), encode("sc_w", d=A2, s=A0, t=A1)),
            encode("bne", s=A2, t=0, p=-12),
        ],
        "amoadd_w": [encode("addi", d=A1, o=1), encode("amoadd_w", s=A0, t=A1)],
        "none": [encode("lw", d=A1, s=A0), encode("addi", d=A1, s=A1, o=1), encode("sw", t=A1, s=A0)],
    }[atomic]
    loop = [*added, encode("addi", d=A3, s=A3, o=-1), encode("bne", s=A3, t=0, p=-4 * len(added) - 4), encode("jal")]
    machine = machines.machine(harts=4)
    machine.write(machines.CODE, word_bytes(*loop))
    for hart in range(4):
        machine.set_register(hart, A0, WORD)
        machine.set_register(hart, A3, 100)
        machine.start(hart, machines.CODE, 0)
    assert machine.run(20_000) == "cycle-limit"
    counted = int.from_bytes(machine.read(WORD, 4), "little")
    assert counted < 400 if atomic == "none" else counted == 400
