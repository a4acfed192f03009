"""Who has a unit first that harts share, when they ask for it in the same cycle."""

from __future__ import annotations

import pytest

from sim import encoder
from sim.device_programs import platform
from tilewright.sim.simulator import built

CODE, COUNTER, TURNS = 0x1C010000, 0xB00, 40
A3, A4, T1 = 13, 14, 6
FADD, ADDI = encoder.encode("fadd_s", D=8, S=1, T=2, m=0), encoder.encode("addi", d=T1, s=T1, o=1)
NOP = encoder.encode("addi", d=0, s=0, o=0)
PLATFORM = platform()
FIRST = next(iter(PLATFORM.timings.values())).first_hart("cluster")
LENGTHS = (5, 4)
"""Instructions in the loops of two cores, so that these meet again and again; one of them is for the unit."""


def waits(timing: str, cores: tuple[int, int]) -> tuple[int, ...]:
    """Cycles that each of two cores waits for the other."""
    native = built(PLATFORM, PLATFORM.timings[timing])
    for core, length, entry in zip(cores, LENGTHS, (CODE, CODE + 0x200), strict=True):
        turns = TURNS * LENGTHS[0] // length
        reading = [encoder.encode("csrrs", d=register, E=COUNTER, s=0) for register in (A3, A4)]
        loop = encoder.encode("lp_setupi", L=0, j=turns, b2=4 * length)
        body = [FADD, *[ADDI] * (length - 1)]
        native.write(entry, encoder.word_bytes(reading[0], NOP, loop, *body, reading[1], encoder.encode("wfi")))
        native.start(FIRST + core, entry, 1000)
    assert native.run(1_000_000) in ("deadlock", "cycle-limit")
    return tuple(native.counters(FIRST + core)["stall_unit"] for core in cores)


@pytest.mark.parametrize("cores", [(0, 4), (4, 0)])
def test_the_core_that_was_served_last_lets_the_other_go_first(cores: tuple[int, int]) -> None:
    """That is the one with the shorter loop, but for the first time."""
    long, short = waits("rtl", cores)
    assert long <= 1 < short


@pytest.mark.parametrize(("timing", "cores"), [("private", (0, 4)), ("rtl", (0, 1)), ("gvsoc", (3, 6))])
def test_cores_with_units_of_their_own_never_wait(timing: str, cores: tuple[int, int]) -> None:
    assert waits(timing, cores) == (0, 0)


def test_in_gvsoc_the_core_that_was_woken_last_goes_first() -> None:
    long, short = waits("gvsoc", (0, 4))
    assert short == 0 < long
