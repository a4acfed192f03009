"""Where the corrected mode differs from ZigZag's model: one test for each entry of docs/zigzag.md."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from price.small_array import BUFFER, MACHINE, REGISTER, SPATIAL, TEMPORAL, product
from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.errors import TilewrightError
from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW, ArrayEngine, MemoryLevel, Port
from tilewright.mapping.allocate import allocate
from tilewright.price.array import ArrayCost, evaluate


def both(engine: ArrayEngine, temporal: TemporalMapping = TEMPORAL, columns: int = 4) -> tuple[ArrayCost, ArrayCost]:
    layer = product(columns=columns)
    original = evaluate(layer, engine, SPATIAL, temporal)
    return original, evaluate(layer, engine, SPATIAL, temporal, corrected=True)


def test_sums_that_have_not_begun_are_not_read() -> None:
    """Of 4 additions to each output the first one adds to nothing: 24 words are read from registers, not 32."""
    words = [
        next(m.words for m in cost.moves if (m.operand, m.level, m.direction) == ("O", 0, TO_LOW))
        for cost in both(MACHINE)
    ]
    assert words == [32, 24]
    original, corrected = both(MACHINE)
    assert original.energy - corrected.energy == pytest.approx(8 * REGISTER.read_energy)


def test_units_are_rounded_up() -> None:
    """3 columns over 2 units: the first of two steps uses both of them, so a transfer of weights has 2 elements."""
    elements = [
        next(m.elements for m in cost.latency.moves if (m.operand, m.direction) == ("W", TO_LOW))
        for cost in both(MACHINE, columns=3)
    ]
    assert elements == [1, 2]


def test_double_buffering_has_an_effect() -> None:
    """A register that an output fills can be emptied while the next one is summed up, if there are two of it."""
    twice = replace(MACHINE, memories=(replace(REGISTER, bits=8, double_buffered=True), BUFFER))
    original, corrected = both(twice)
    assert not original.double_buffered["O", 1]
    assert corrected.double_buffered["O", 1]


def test_double_buffering_takes_half_of_the_room() -> None:
    """The layer needs 64 + 64 + 128 = 256 bits."""
    layer = product()
    twice = replace(MACHINE, memories=(REGISTER, replace(BUFFER, bits=500, double_buffered=True)))
    assert allocate(layer, twice, SPATIAL, TEMPORAL.order).cuts["W"] == (3,)
    with pytest.raises(TilewrightError, match="'buffer' is 6 bits too small"):
        allocate(layer, twice, SPATIAL, TEMPORAL.order, corrected=True)


DRAM = MemoryLevel(
    name="dram",
    bits=1 << 20,
    slots=("I1", "I2", "O"),
    ports=(Port("port", "read_write", 8, 8, (("I1", TO_LOW), ("I2", TO_LOW), ("O", TO_LOW), ("O", FROM_LOW))),),
    serves=("D1",),
)


def test_first_loads_are_not_shorter_than_their_data() -> None:
    """16 weights and 8 inputs come from outside, a byte in a cycle, before the array can begin: 24 cycles.

    The 30 cycles of work hide all but the last 2 of the 8 cycles in which results leave, one for each register. The
    original hides 7, and takes them off the loads as well, which leaves 9 and 1 cycles for 16 and 8 bytes; the inputs
    still need 4 to get into the buffer, two bytes in a cycle.
    """
    filled = replace(
        BUFFER,
        ports=(
            Port("read", "read", 16, 8, (("I1", TO_LOW), ("I2", TO_LOW), ("O", TO_LOW), ("O", TO_HIGH))),
            Port("write", "write", 16, 8, (("I1", FROM_HIGH), ("I2", FROM_HIGH), ("O", FROM_HIGH), ("O", FROM_LOW))),
        ),
    )
    engine = replace(MACHINE, memories=(REGISTER, filled, DRAM))
    deeper = TemporalMapping(TEMPORAL.order, {"O": (1, 3, 3), "I": (3, 3), "W": (3, 3)})
    original, corrected = both(engine, deeper)
    keys = [("W", 1, TO_LOW), ("I", 1, TO_LOW), ("O", 2, FROM_LOW)]
    assert [original.latency.loads[key] for key in keys] == [9, 1, 1]
    assert [corrected.latency.loads[key] for key in keys] == [16, 8, 2]
    assert corrected.latency.loading == 24
    assert original.latency.loading == 9 + 4


def small(name: str, slot: str, bits: int = 1 << 12) -> MemoryLevel:
    ports = (
        Port("read", "read", 8, 8, ((slot, TO_LOW),)),
        Port("write", "write", 8, 8, ((slot, FROM_HIGH),)),
    )
    return MemoryLevel(name, bits, (slot,), ports, ("D1",))


def test_every_half_shared_link_counts() -> None:
    """Inputs pass two links that are shared on one end; the original counts the outer one only."""
    shared = MemoryLevel(
        name="shared",
        bits=1 << 14,
        slots=("I1", "I2"),
        ports=(
            Port("read", "read", 8, 8, (("I1", TO_LOW), ("I2", TO_LOW))),
            Port("first", "write", 8, 8, (("I1", FROM_HIGH),)),
            Port("second", "write", 8, 8, (("I2", FROM_HIGH),)),
        ),
        serves=("D1",),
    )
    result = replace(DRAM, name="results", slots=("O",))
    engine = ArrayEngine(
        "links",
        {"D1": 2},
        (REGISTER, small("inputs", "I1"), small("weights", "I2"), shared, result, replace(DRAM, slots=("I1", "I2"))),
    )
    inner = TemporalMapping((("C", 4), ("K", 2), ("D", 2)), {"O": (1, 3), "I": (1, 2, 3), "W": (1, 2, 3)})
    layer = product()
    original = evaluate(layer, engine, SPATIAL, inner)
    corrected = evaluate(layer, engine, SPATIAL, inner, corrected=True)

    def links(cost: ArrayCost, operand: str) -> list[float]:
        loads = cost.latency.loads
        return [max(loads[operand, at, FROM_HIGH], loads[operand, at + 1, TO_LOW]) for at in (0, 1)]

    assert original.latency.loading == max(links(original, "I")[1], links(original, "W")[1])
    assert corrected.latency.loading == max(sum(links(corrected, "I")), sum(links(corrected, "W")))
    assert corrected.latency.loading > original.latency.loading


def test_nothing_else_differs() -> None:
    """Without sums that begin, parts of units, second buffers or data from outside both say the same."""
    layer = product(depth=1)
    spatial = SpatialMapping({"D1": (("K", 2),)})
    temporal = TemporalMapping((("K", 2), ("D", 2)), {"O": (0, 2), "I": (2,), "W": (2,)})
    original = evaluate(layer, MACHINE, spatial, temporal)
    corrected = evaluate(layer, MACHINE, spatial, temporal, corrected=True)
    assert corrected.energy == original.energy
    assert corrected.latency == original.latency
