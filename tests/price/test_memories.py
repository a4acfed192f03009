"""Energies and areas of memories: what CACTI says where it was asked, and something sensible in between."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from price.small_array import BUFFER, MACHINE
from tilewright.price.memories import memory_cost, registers, sram, with_costs


@pytest.mark.parametrize(
    ("bits", "word", "read", "write", "area"),
    [
        # Printed by CACTI 7, and also in the pool of memories that comes with ZigZag 3.8.5.
        (1024, 8, 0.0740, 0.0997, 0.000309),
        (16777216, 256, 134.898, 139.563, 3.66505),
    ],
)
def test_figures_of_cacti(bits: int, word: int, read: float, write: float, area: float) -> None:
    cost = sram(bits, word)
    assert (cost.read, cost.write, cost.area) == pytest.approx((read, write, area), rel=2e-3)


@pytest.mark.parametrize(
    ("bits", "word", "read", "write", "area"),
    [
        (20480, 256, 3.2531, 4.6817, 0.01028),
        (202752, 256, 9.1704, 14.642, 0.0481),
        (3840, 16, 0.24752, 0.25793, 0.001085),
        (13850624, 128, 71.03, 67.951, 3.068),
        (25344, 32, 0.86792, 0.96785, 0.005709),
        (12288, 128, 1.1189, 1.983, 0.00419),
        (389120, 256, 14.528, 19.775, 0.117),
        (208384, 32, 3.7036, 2.3457, 0.04571),
        (19200, 32, 0.74905, 0.8209, 0.004519),
        (9324544, 256, 99.422, 101.96, 2.362),
        (89984, 16, 1.6774, 1.0894, 0.02106),
        (1383296, 16, 6.807, 5.3949, 0.3023),
    ],
)
def test_sizes_that_are_not_in_the_table(bits: int, word: int, read: float, write: float, area: float) -> None:
    """Printed by CACTI 7 with the same settings."""
    cost = sram(bits, word)
    assert (cost.read, cost.write, cost.area) == pytest.approx((read, write, area), rel=0.2)


def test_between_figures() -> None:
    low, middle, high = sram(2**16, 64), sram(3 * 2**15, 64), sram(2**17, 64)
    assert low.area < middle.area < high.area
    assert min(low.read, high.read) <= middle.read <= max(low.read, high.read)


def test_registers_grow_into_memories() -> None:
    costs = [registers(bits, 16).write for bits in (16, 64, 256, 1024)]
    assert costs == sorted(costs)
    assert registers(1024, 16) == sram(1024, 16)
    assert registers(16, 16).read == pytest.approx(0.018, rel=0.01)


def test_more_ports_and_older_processes_cost_more() -> None:
    single = replace(BUFFER, ports=BUFFER.ports[:1])
    assert memory_cost(single).area < memory_cost(BUFFER).area
    assert memory_cost(BUFFER, 45).read == pytest.approx(memory_cost(BUFFER).read * (45 / 22) ** 1.75)


def test_only_what_is_left_open_is_filled_in() -> None:
    opened = replace(MACHINE, memories=(MACHINE.memories[0], replace(BUFFER, read_energy=0.0, extracted=True)))
    filled = with_costs(opened)
    assert filled.memories[0] == MACHINE.memories[0]
    assert filled.memories[1].read_energy == memory_cost(BUFFER).read
    assert not filled.memories[1].extracted


def test_dram_goes_by_the_bit() -> None:
    assert memory_cost(replace(BUFFER, kind="dram")).read == 16 * 700 / 64
