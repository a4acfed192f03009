"""Snitch cores: loops of the FPU, streams, and what their parts take with timing rtl, on the machine `snitch`."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from sim import machines, snitch_machines
from sim.encoder import encode, instructions, word_bytes
from tilewright import _native
from tilewright.machine.target import load_platform
from tilewright.sim.simulator import built, timing_of

CODE, L1 = 0x80000000, 0x10000000
T0, T1, S0, A0, A1, A2, A3 = 5, 6, 8, 10, 11, 12, 13
FT0, FT1, FT2, FT3, FA0, FA1 = 0, 1, 2, 3, 10, 11
MCYCLE, STREAMS, BARRIER = 0xB00, 0x7C0, 0x7C2
ON, OFF = encode("csrrsi", E=STREAMS, Z=1), encode("csrrci", E=STREAMS, Z=1)
STOP = encode("ebreak")
HARTS = 9


def started(words: Sequence[int], timing: str = "rtl", harts: int = 1) -> _native.Machine:
    """The machine with some of its harts at code that ends with ebreak."""
    platform = load_platform("snitch")
    machine = built(platform, timing_of(platform, timing))
    machine.write(CODE, word_bytes(*words, STOP))
    for hart in range(harts):
        machine.start(hart, CODE, 0)
    return machine


def finished(machine: _native.Machine) -> _native.Machine:
    assert machine.run(10**6) == "fault"
    fault = machine.fault()
    assert fault is not None
    assert fault["kind"] == "trap", fault
    return machine


def immediate(register: int, value: int) -> list[int]:
    high = (value + 0x800) & 0xFFFFF000
    low = (value - high + 0x800) % 2**12 - 0x800
    return [encode("lui", d=register, u=high), encode("addi", d=register, s=register, o=low)]


def measured(body: Sequence[int], before: Sequence[int] = (), timing: str = "rtl") -> int:
    """Cycles of some instructions when they are in the caches, and one of the counter."""
    loop = [encode("csrrs", d=A0, E=MCYCLE), *body, encode("csrrs", d=A1, E=MCYCLE), encode("addi", d=S0, s=S0, o=-1)]
    words = [*before, encode("addi", d=S0, o=3), *loop, encode("bne", s=S0, p=-4 * len(loop))]
    machine = finished(started(words, timing))
    return machine.register(0, A1) - machine.register(0, A0) - 1


def configured(stream: int, place: int, value: int) -> list[int]:
    return [*immediate(T0, value & 0xFFFFFFFF), encode("scfgwi", s=T0, j=place << 5 | stream)]


ADD = encode("addi", d=T0, s=T0, o=1)


def test_alu_branches_and_jumps_take_one_cycle() -> None:
    assert measured([ADD] * 24) == 24
    assert measured([encode("beq", s=0, t=0, p=4)] * 24) == 24
    assert measured([encode("bne", s=0, t=0, p=8)] * 24) == 24
    assert measured([encode("jal", a=4)] * 24) == 24


def test_a_load_can_be_used_three_cycles_late() -> None:
    pair = [encode("lw", d=T0, s=A2), encode("add", d=T1, s=T0, t=T0)]
    assert measured(pair * 8, immediate(A2, L1)) == 8 * (2 + 3)
    assert measured([encode("sw", t=T0, s=A2)] * 8, immediate(A2, L1)) == 8


def test_a_product_can_be_used_four_cycles_later() -> None:
    assert measured([encode("mul", d=T0, s=T0, t=T1)] * 8) == pytest.approx(8 * 4, abs=3)
    assert measured([encode("mul", d=T0, s=T1, t=T1), *[ADD] * 0] * 1) == 1


@pytest.mark.parametrize(
    ("name", "cycles"),
    [("fadd_d", 4), ("fadd_s", 3), ("fadd_h", 2), ("fadd_b", 2), ("vfadd_s", 3), ("vfdotpex_s_h", 4), ("fmin_s", 2)],
)
def test_units_of_the_fpu(name: str, cycles: int) -> None:
    """Cycles in the unit and one for the operands; instructions that need no result follow each other."""
    mode = {"m": 7} if "m" in instructions()[f"x_{name}"].letters else {}
    dependent, *free = (encode(f"x_{name}", {"d": to, "s": FT3, "T": FT3} | mode) for to in (FT3, *range(10, 19)))
    wait = encode("x_fmv_x_w", d=T0, S=FT3)
    use = encode("addi", d=T0, s=T0)
    one, many = (measured([*[dependent] * count, wait, use]) for count in (1, 9))
    assert many - one == 8 * cycles
    if name != "vfdotpex_s_h":
        one, many = (measured([*free[:count], wait, use]) for count in (1, 9))
        assert many - one == 8


def doubles(machine: _native.Machine, address: int, values: Sequence[float]) -> None:
    machine.write(address, struct.pack(f"<{len(values)}d", *values))


def sum_of_products(count: int, sums: int, stagger: bool) -> list[int]:
    """Streams 0 and 1 of `count` doubles from L1 and L1 + 4096 on, their products added up in `sums` registers."""
    job = [
        *(word for stream in (0, 1) for word in configured(stream, 2, count - 1)),
        *(word for stream in (0, 1) for word in configured(stream, 6, 8)),
    ]
    starts = [*configured(0, 24, L1), *configured(1, 24, L1 + 4096)]
    zeros = [encode("x_fcvt_d_w", D=FT3 + index, s=0, m=7) for index in range(sums)]
    mask = 0b1001 if stagger else 0  # rd and rs3
    frep = encode("frep_o", {"s": T0, "j": 0, "bg": (sums - 1) << 4 | mask})
    multiply = encode("x_fmadd_d", D=FT3, S=FT0, T=FT1, R=FT3, m=7)
    return [*zeros, *job, *starts, ON, *immediate(T0, count - 1), frep, multiply, OFF]


@pytest.mark.parametrize(("sums", "stagger"), [(1, False), (4, True)])
def test_streams_and_loops_add_up_products(sums: int, stagger: bool) -> None:
    count = 64
    machine = started(sum_of_products(count, sums, stagger))
    doubles(machine, L1, [float(i) for i in range(count)])
    doubles(machine, L1 + 4096, [2.0] * count)
    finished(machine)
    found = [struct.unpack("<d", struct.pack("<Q", machine.float_register(0, FT3 + i)))[0] for i in range(sums)]
    assert found == [2.0 * sum(range(part, count, sums)) for part in range(sums)]


def test_a_loop_issues_one_instruction_a_cycle() -> None:
    """With four sums nothing waits for a result; with one, each product waits four cycles for the one before."""
    apart, alone = (measured(sum_of_products(count, 4, True)) for count in (256, 128))
    assert apart - alone == pytest.approx(128, abs=2)
    apart, alone = (measured(sum_of_products(count, 1, False)) for count in (256, 128))
    assert apart - alone == pytest.approx(128 * 4, abs=2)


def test_elements_are_delivered_again_and_written_through_a_stream() -> None:
    """Each of 8 numbers is read 3 times and written to a row of its own, 4 numbers apart."""
    words = [
        *configured(0, 1, 2),
        *configured(0, 2, 7),
        *configured(0, 6, 8),
        *configured(1, 1, 0),
        *configured(1, 2, 2),
        *configured(1, 6, 8),
        *configured(1, 3, 7),
        *configured(1, 7, 32 - 16),
        *configured(0, 24, L1),
        *configured(1, 29, L1 + 4096),
        ON,
        *immediate(T0, 23),
        encode("frep_o", s=T0),
        encode("x_fsgnj_d", D=FT1, S=FT0, T=FT0),
    ]
    # A number is read once: the other operand is the next one.
    words[-1] = encode("x_fadd_d", D=FT1, S=FT0, T=FA0, m=7)
    machine = started([encode("x_fcvt_d_w", D=FA0, s=0, m=7), *words, OFF])
    doubles(machine, L1, [float(i) for i in range(8)])
    finished(machine)
    for row in range(8):
        assert struct.unpack("<3d", machine.read(L1 + 4096 + 32 * row, 24)) == (float(row),) * 3


def test_indices_choose_elements() -> None:
    words = [
        *configured(0, 2, 7),
        *configured(0, 6, 2),
        *configured(0, 10, 1),
        *configured(0, 11, L1),
        *configured(0, 16, L1 + 4096),
        ON,
        *immediate(T0, 7),
        encode("frep_o", s=T0),
        encode("x_fadd_d", D=FA0, S=FT0, T=FA0, m=7),
        OFF,
    ]
    machine = started([encode("x_fcvt_d_w", D=FA0, s=0, m=7), *words])
    doubles(machine, L1, [float(2**i) for i in range(16)])
    chosen = [3, 1, 4, 15, 9, 2, 6, 5]
    machine.write(L1 + 4096, struct.pack("<8H", *chosen))
    finished(machine)
    total = struct.unpack("<d", struct.pack("<Q", machine.float_register(0, FA0)))[0]
    assert total == sum(2.0**i for i in chosen)


def test_inner_loops_repeat_each_instruction() -> None:
    """frep.i: twice the first, then twice the second."""
    body = [encode("x_fadd_d", D=FA0, S=FA0, T=FT3, m=7), encode("x_fmul_d", D=FA0, S=FA0, T=FA1, m=7)]
    values = [encode("x_fcvt_d_w", D=register, s=T1, m=7) for register in (FA0, FT3)]
    words = [*immediate(T1, 1), *values, *immediate(T1, 3), encode("x_fcvt_d_w", D=FA1, s=T1, m=7)]
    machine = finished(
        started([*words, *immediate(T0, 1), encode("frep_i", s=T0, j=1), *body, encode("x_fmv_x_w", d=T1, S=FA0)])
    )
    assert struct.unpack("<d", struct.pack("<Q", machine.float_register(0, FA0)))[0] == (1 + 1 + 1) * 9


def test_loops_in_loops() -> None:
    """In hardware of 2026: three additions and a product, twice."""
    values = [encode("x_fcvt_d_w", D=register, s=T1, m=7) for register in (FA0, FT3)]
    words = [*immediate(T1, 1), *values, *immediate(T1, 3), encode("x_fcvt_d_w", D=FA1, s=T1, m=7)]
    words += [*immediate(T0, 1), *immediate(T1, 2), encode("frep_o", s=T0, j=1), encode("frep_o", s=T1)]
    words += [encode("x_fadd_d", D=FA0, S=FA0, T=FT3, m=7), encode("x_fmul_d", D=FA0, S=FA0, T=FA1, m=7)]
    machine = snitch_machines.machine(loops=2, buffer=32)
    machine.write(machines.CODE, word_bytes(*words, encode("x_fmv_x_w", d=T1, S=FA0), STOP))
    machine.start(0, machines.CODE, 0)
    finished(machine)
    assert struct.unpack("<d", struct.pack("<Q", machine.float_register(0, FA0)))[0] == ((1 + 3) * 3 + 3) * 3


def test_all_harts_go_on_two_cycles_after_the_last_has_come() -> None:
    meet = encode("csrrs", d=0, E=BARRIER)
    before, behind = encode("csrrs", d=A0, E=MCYCLE), encode("csrrs", d=A1, E=MCYCLE)
    words = [encode("csrrs", d=T0, E=0xF14), encode("slli", d=T0, s=T0, **{">": 4})]
    words += [encode("addi", d=T0, s=T0, o=-1), encode("bge", s=T0, t=0, p=-4)]
    machine = started([*words, before, meet, behind, encode("jal", a=0)], harts=HARTS)
    machine.run(5000)
    last = max(machine.register(hart, A0) for hart in range(HARTS))
    assert {machine.register(hart, A1) - (last + 1) for hart in range(HARTS)} == {2}


def transfer_cycles(count: int, outward: bool) -> int:
    far, near = 0x80200000, L1
    addresses = (near, far) if outward else (far, near)
    words = [*immediate(A2, addresses[0]), *immediate(A3, addresses[1]), *immediate(T1, count)]
    words += [encode("csrrs", d=A0, E=MCYCLE), encode("dmsrc", s=A2), encode("dmdst", s=A3), encode("dmcpyi", s=T1)]
    words += [encode("dmstati", d=T0, bi=2), encode("bne", s=T0, p=-4), encode("csrrs", d=A1, E=MCYCLE)]
    platform = load_platform("snitch")
    machine = built(platform, timing_of(platform, "rtl"))
    machine.write(CODE, word_bytes(*words, STOP))
    machine.write(addresses[0], bytes(i % 251 for i in range(count)))
    machine.start(HARTS - 1, CODE, 0)
    finished(machine)
    assert machine.read(addresses[1], count) == bytes(i % 251 for i in range(count))
    return machine.register(HARTS - 1, A1) - machine.register(HARTS - 1, A0)


@pytest.mark.parametrize("outward", [False, True])
def test_the_dma_moves_64_bytes_a_cycle(outward: bool) -> None:
    long, short = (transfer_cycles(count, outward) for count in (16384, 8192))
    assert long - short == pytest.approx(8192 / 64, abs=4)


def copied(wait: Sequence[int], rows: int = 1) -> _native.Machine:
    """Rows of 16 bytes, 32 apart in DRAM, are brought to L1 and read there behind a wait; with checks."""
    platform = load_platform("snitch")
    machine = built(platform, timing_of(platform, "rtl"))
    machine.observe_checks(True)
    words = [*immediate(A2, 0x80200000), *immediate(A3, L1), encode("dmsrc", s=A2), encode("dmdst", s=A3)]
    words += [*immediate(T0, 32), *immediate(T1, 16), encode("dmstr", s=T0, t=T1)]
    words += [*immediate(T0, rows), encode("dmrep", s=T0), encode("dmcpyi", d=A1, s=T1, bi=2), *wait]
    machine.write(CODE, word_bytes(*words, encode("lw", d=A0, s=A3), STOP))
    machine.write(0x80200000, bytes(range(256)))
    machine.start(HARTS - 1, CODE, 0)
    return finished(machine)


UNTIL_IDLE = [encode("dmstati", d=T0, bi=2), encode("bne", s=T0, p=-4)]
UNTIL_COMPLETE = [encode("dmstati", d=T0, bi=0), encode("blt", s=T0, t=A1, p=-4)]


def test_rows_are_brought_together() -> None:
    machine = copied(UNTIL_IDLE, rows=4)
    assert machine.read(L1, 64) == b"".join(bytes(range(32 * row, 32 * row + 16)) for row in range(4))
    assert not machine.findings()


def test_that_an_id_is_complete_does_not_mean_that_bytes_are_there() -> None:
    findings = copied(UNTIL_COMPLETE).findings()
    assert [finding["kind"] for finding in findings] == ["race"]
    assert "not busy" in str(findings[0])


FAULTS = {
    "bad-access": [*configured(0, 2, 7), *configured(0, 6, 8), *configured(0, 24, 0x80200000)],
    "frep": [encode("frep_o", s=T0, j=16)],
    "misaligned-access": [*immediate(A2, L1 + 2), encode("lw", d=T0, s=A2)],
    "illegal-instruction": [encode("dmsrc", s=T0)],
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_the_hardware_cannot_do_stops_the_machine(kind: str) -> None:
    machine = started(FAULTS[kind])
    assert machine.run(10**5) == "fault"
    fault = machine.fault()
    assert fault is not None
    assert fault["kind"] == kind


def test_division_without_a_divider() -> None:
    machine = snitch_machines.machine(divider=0)
    machine.write(machines.CODE, word_bytes(encode("x_fdiv_s", D=FT3, S=FT3, T=FT3, m=7)))
    machine.start(0, machines.CODE, 0)
    assert machine.run(100) == "fault"
    fault = machine.fault()
    assert fault is not None
    assert fault["kind"] == "no-divider"


FINDINGS = {
    "stream": [*configured(0, 2, -1), *configured(0, 6, 8), *configured(0, 24, L1)],
    "unboxed-float": [encode("x_fadd_s", D=FT3, S=FT3, T=FT3, m=7)],
    "unfenced-store": [*immediate(A2, L1), encode("x_fsd", T=FT3, s=A2), encode("csrrs", d=0, E=BARRIER)],
}


@pytest.mark.parametrize("name", FINDINGS)
def test_mistakes_that_only_hardware_shows(name: str) -> None:
    platform = load_platform("snitch")
    machine = built(platform, timing_of(platform, "rtl"))
    machine.observe_checks(True)
    machine.write(CODE, word_bytes(*FINDINGS[name], STOP))
    machine.write(L1, bytes(4096))
    machine.start(0, CODE, 0)
    machine.run(10**4)
    assert name in {finding["kind"] for finding in machine.findings()}


def test_a_fence_before_the_barrier_is_enough() -> None:
    words = [*FINDINGS["unfenced-store"][:-1], encode("x_fmv_x_w", d=T0, S=FT3), encode("addi", d=T0, s=T0)]
    machine = started([*words, encode("csrrs", d=0, E=BARRIER)])
    machine.observe_checks(True)
    machine.run(10**4)
    assert not machine.findings()
