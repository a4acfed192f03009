"""The cost of a small layer, worked out by hand."""

from __future__ import annotations

import pytest

from price.small_array import MACHINE, SPATIAL, TEMPORAL, product
from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Sum
from tilewright.machine.array import FROM_LOW, TO_HIGH, TO_LOW
from tilewright.price.array import areas, clock_period, evaluate

# Two units, each with a register for its output; 16 steps: C innermost (4), then K (2), then D (2).
#
# Register, for each of the two units: a sum of 16 bits is read and written in each of the 16 steps: 32 words read, 32
# written. Every 4 steps it is complete and leaves as 8 bits: 4 times 2 units = 8 words read.
#   0.1 * (32 + 8) + 0.1 * 32 = 7.2
# Buffer: two complete outputs (16 bits) arrive every 4 steps: 4 words.                                  2.0 * 4  = 8
#   I: one byte for both units in each step: half a word, 16 times: 8 words.                            1.0 * 8  = 8
#   W: a byte for each unit in each step: one word, 16 times.                                           1.0 * 16 = 16
# Units: 32 products.                                                                                   0.5 * 32 = 16
ENERGY = 7.2 + 8 + 8 + 16 + 16

# The read port of the buffer carries two transfers of one cycle in each step but has one cycle for them. Behind the
# first step there are 15 of each, of which 16 cycles of work hide all but 30 - 16 = 14.
STALL = 14
# After the last step the outputs leave the registers and arrive in the buffer, at the same time: 1 cycle.
STORING = 1


def test_words_and_energy() -> None:
    cost = evaluate(product(), MACHINE, SPATIAL, TEMPORAL)
    words = {(move.operand, move.memory.name, move.direction): move.words for move in cost.moves}
    assert words == {
        ("O", "register", TO_LOW): 32,
        ("O", "register", FROM_LOW): 32,
        ("O", "register", TO_HIGH): 8,
        ("O", "buffer", FROM_LOW): 4,
        ("I", "buffer", TO_LOW): 8,
        ("W", "buffer", TO_LOW): 16,
    }
    assert cost.energy == pytest.approx(ENERGY)
    assert cost.unit_energy == 16


def test_latency() -> None:
    cost = evaluate(product(), MACHINE, SPATIAL, TEMPORAL)
    assert cost.latency.computing == 16
    assert cost.latency.stall == STALL
    assert cost.latency.loading == 0
    assert cost.latency.storing == STORING
    assert cost.cycles == 16 + STALL + STORING
    assert cost.spatial_utilisation == 1
    assert cost.utilisation == 16 / 31
    assert cost.product == pytest.approx(ENERGY * 31)


def test_room() -> None:
    cost = evaluate(product(), MACHINE, SPATIAL, TEMPORAL)
    # A complete output in a register of 32 bits; 8 outputs, 8 elements of I and 16 of W in the buffer, a byte each.
    assert cost.occupied("O") == (8 / 32, 64 / 4096)
    assert cost.occupied("I") == (64 / 4096,)
    assert cost.occupied("W") == (128 / 4096,)


def test_units_that_do_not_divide_a_dimension() -> None:
    """3 columns over 2 units take 2 steps, with 1.5 units on average and 1 whole one."""
    layer = product(columns=3)
    assert SPATIAL.steps(layer) == {"D": 2, "K": 2, "C": 4}
    assert dict(SPATIAL.fractional(layer)) == {"D1": (("K", 1.5),)}
    assert dict(SPATIAL.integral(layer)) == {"D1": (("K", 1.0),)}


def test_a_dimension_on_two_sides_of_an_array() -> None:
    """5 over 2 by 2 units take 2 steps; the first side has what is not whole, as if it were alone."""
    layer = product(columns=5)
    both = SpatialMapping({"D1": (("K", 2),), "D2": (("K", 2),)})
    assert both.steps(layer)["K"] == 2
    assert dict(both.fractional(layer)) == {"D1": (("K", 5 / 3),), "D2": (("K", 2),)}


@pytest.mark.parametrize(
    ("first", "second", "scales", "values"),
    [
        (4, 3, (1, 1), 6),  # 0..3 + 0..2
        (4, 3, (2, 1), 9),  # 0, 2, 4, 6 with 0..2
        (4, 2, (3, 1), 8),  # every one differs: 0 1 3 4 6 7 9 10
        (4, 3, (1, 2), 8),  # 0..3 with 0, 2, 4
        (4, 1, (2, 1), 4),
    ],
)
def test_values_of_a_sum(first: int, second: int, scales: tuple[int, int], values: int) -> None:
    axis = Sum("IX", "OX", "FX", *scales, size=100)
    assert axis.values(first, second) == values
    assert len({scales[0] * a + scales[1] * b for a in range(first) for b in range(second)}) == values


def test_a_sum_is_no_larger_than_its_tensor() -> None:
    assert Sum("IX", "OX", "FX", 1, 1, size=4).values(4, 3) == 4


def test_area_and_clock() -> None:
    assert sum(areas(MACHINE).values()) == 2
    assert clock_period(MACHINE) is None
