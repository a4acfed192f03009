"""Cycles of instructions with timing `gvsoc`, as GVSoC counts them: alone, and on cores that share units.

A body of instructions runs 32 times in a hardware loop, between two readings of the cycle counter. Caches are warm, and
all cores start in the same cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sim import encoder
from sim.device_programs import platform, with_private_units
from tilewright.sim.simulator import built

SWITCH_ON, CODE, DATA = 0x10000000, 0x10001000, 0x10004000
TURNS = 32
COUNTER = 0xB00
CACHE_CONTROL = 0x10201400
A0, A1, A3, A4, T0, T1 = 10, 11, 13, 14, 5, 6
ALL_CORES = tuple(range(8))
PLATFORM, TIMING = platform(), "gvsoc"
FIRST = PLATFORM.timings[TIMING].first_hart("cluster")
NOP = encoder.encode("addi", d=0, s=0, o=0)
FRAME = 3
"""Cycles of the first reading, of setting up the loop, and of an instruction between them."""


def program(body: Sequence[int], frame: int) -> list[int]:
    reading = [encoder.encode("csrrs", d=register, E=COUNTER, s=0) for register in (A3, A4)]
    setup = encoder.encode("lp_setupi", L=0, j=TURNS, b2=4 * len(body))
    return [reading[0], *[NOP] * (frame - 2), setup, *body, reading[1], encoder.encode("wfi")]


def measured(body: Sequence[int], cores: Sequence[int], frame: int = FRAME, private: bool = False) -> list[int]:
    """What each core measures for the body, when these cores run it at the same time."""
    chosen = with_private_units(PLATFORM, TIMING) if private else PLATFORM
    native = built(chosen, chosen.timings[TIMING])
    enable = [encoder.encode("sw", t=A0, q=0, s=A1), encoder.encode("wfi")]
    native.write(SWITCH_ON, encoder.word_bytes(*enable))
    native.write(CODE, encoder.word_bytes(*program(body, frame)))
    for entry in (SWITCH_ON, CODE, CODE):
        start = native.now + 100_000
        for core in cores:
            native.set_register(FIRST + core, A0, DATA + 64 * core)
            native.set_register(FIRST + core, A1, CACHE_CONTROL)
            native.start(FIRST + core, entry, start)
        assert native.run(start + 100_000) in ("deadlock", "cycle-limit")
    return [native.register(FIRST + core, A4) - native.register(FIRST + core, A3) for core in cores]


def one(name: str, **operands: int) -> int:
    """An instruction; operands that are not given have registers of their own."""
    usual = {"D": 8, "S": 1, "T": 2, "R": 3, "d": T0, "s": A0, "t": A0, "m": 0, "o": 0, "q": 0}
    letters = encoder.instructions()[name].letters
    return encoder.encode(name, **{letter: operands.get(letter, usual[letter]) for letter in letters})


def each(*names: str, **operands: int) -> list[tuple[str, list[int]]]:
    return [(name, [one(name, **operands)] * 8) for name in names]


def load(target: int) -> int:
    return one("flw", D=target)


ADDI = encoder.encode("addi", d=T1, s=T1, o=1)
FADD, FDIV, FMADD = one("fadd_s"), one("fdiv_s"), one("fmadd_s")
OTHER_LOADS = [load(target) for target in range(8)]
DEPENDENT = {"D": 4, "S": 4}


@dataclass(frozen=True)
class Row:
    """What a body of instructions takes: the fewest and the most cycles that a core measures."""

    name: str
    body: list[int]
    alone: int
    together: tuple[int, int]
    frame: int = FRAME


SHARED = (
    *each("fadd_s", "fsub_s", "fmul_s", "fmadd_s", "fmin_s", "fsgnj_s", "feq_s", "fcvt_w_s", "fcvt_s_w"),
    *each("fadd_s", "fmul_s", "fmadd_s", "fmin_s", "fsgnj_s", **DEPENDENT),
)
ALSO_SHARED = (
    *each("flt_s", "fle_s", "fclass_s", "fmsub_s", "fnmadd_s", "fnmsub_s", "fmax_s", "fsgnjn_s", "fsgnjx_s"),
    *each("fcvt_wu_s", "fcvt_s_wu"),
)
OWN = (*each("fmv_x_w", "fmv_w_x", "fsw"), ("addi", [ADDI] * 8))
PAIRS = (
    ("fadd;addi", [FADD, ADDI] * 4),
    ("fcvt.w.s;use", [one("fcvt_w_s"), encoder.encode("addi", d=T1, s=T0, o=1)] * 4),
    ("fadd;fsw", [FADD, one("fsw", T=8)] * 4),
)
DIVISIONS = (*each("fdiv_s", "fsqrt_s"), *each("fdiv_s", "fsqrt_s", **DEPENDENT))
ROWS = (
    *(Row(name, body, 259, (514, 515)) for name, body in SHARED),
    *(Row(name, body, 262, (517, 518), frame=6) for name, body in ALSO_SHARED),
    *(Row(name, body, 259, (259, 259)) for name, body in OWN),
    *(Row(name, body, 259, (259, 260)) for name, body in PAIRS),
    Row("3 fadd; addi", [FADD, FADD, FADD, ADDI] * 2, 262, (388, 391), frame=6),
    *(Row(name, body, 3587, (28577, 28675)) for name, body in DIVISIONS),
    Row("fdiv;fadd", [FDIV, FADD] * 4, 1923, (14242, 14340)),
    Row("fdiv + 7 addi", [FDIV, *[ADDI] * 7], 675, (3496, 3594)),
    Row("flw, other registers", OTHER_LOADS, 259, (259, 259)),
    Row("flw, always the same register", [load(8)] * 8, 514, (514, 514)),
    Row("flw;addi", [load(8), ADDI] * 4, 259, (259, 259)),
    Row("flw;fadd that uses it", [load(1), FADD] * 4, 387, (387, 387)),
    Row("fmadd;flw", [FMADD, load(7)] * 4, 259, (259, 260)),
    Row("flw;flw;fmadd;fsw", [load(1), load(2), FMADD, one("fsw", T=8)] * 2, 323, (323, 323)),
    Row("mul", [encoder.encode("mul", d=T0, s=A0, t=A1)] * 8, 515, (515, 515)),
)


@pytest.mark.parametrize("row", ROWS, ids=[f"{index} {row.name}" for index, row in enumerate(ROWS)])
def test_instructions(row: Row) -> None:
    assert measured(row.body, [0], row.frame) == [row.alone]
    together = measured(row.body, ALL_CORES, row.frame)
    assert (min(together), max(together)) == row.together
    assert set(measured(row.body, ALL_CORES, row.frame, private=True)) == {row.alone}


@pytest.mark.parametrize(("name", "body"), [*SHARED, *ALSO_SHARED])
def test_cores_of_a_pair_differ_by_one(name: str, body: list[int]) -> None:
    together = measured(body, ALL_CORES)
    assert {abs(first - second) for first, second in zip(together[:4], together[4:], strict=True)} == {1}, name


@pytest.mark.parametrize(
    ("cores", "cycles"),
    [((0, 1, 2, 3), 262), ((0, 1), 262), ((0, 4), 518), ((0, 2, 4, 6), 518), ((0, 8), 518), ((1, 8), 262)],
)
def test_some_cores_only(cores: tuple[int, ...], cycles: int) -> None:
    """Core c uses unit c modulo 4; the controller, which is number 8, too."""
    assert max(measured([FADD] * 8, cores, frame=6)) == cycles


@pytest.mark.parametrize(("cores", "cycles"), [(2, 7174), (4, 14342)])
def test_one_divider_for_all(cores: int, cycles: int) -> None:
    assert max(measured([FDIV] * 8, range(cores), frame=6)) == cycles
