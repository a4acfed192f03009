"""The timing `rtl` of MemPool against figures that are derived from its RTL (pulp-platform/mempool 904336a).

Each case is named by its figure; a body's cycles are what lies between two readings of the counter, less the one of the
first reading itself.
"""

from __future__ import annotations

import pytest

from sim import encoder, pools
from sim.pools import A0, A1, A2, A3, T0, T1

OWN, OWN_GROUP, OTHER_GROUP = 0x100, 0x2000, 0x20000
"""Addresses in a tile's own bytes: of the first tile, the next one, and the first of the next group."""
TILES, TILE_BYTES, ROW = 64, 8192, 4096
ADD = encoder.encode("addi", d=A1, s=A1, o=1)
USE = encoder.encode("addi", d=T1, s=T0, o=1)
LOAD = encoder.encode("lw", d=T0, s=A0, o=0)
PRODUCT = encoder.encode("pv_sdotsp_b", d=T0, s=A1, t=A2)


def body_cycles(body: list[int], hart: int = 0, **registers: int) -> int:
    return pools.cycles_of(body, hart, **registers) - 1


@pytest.mark.parametrize(
    ("body", "registers", "cycles"),
    [
        pytest.param([ADD] * 8, {}, 8, id="ALU: 1"),
        pytest.param([encoder.encode("beq", s=0, t=0, p=4)] * 4, {}, 4, id="branch taken: 1"),
        pytest.param([encoder.encode("bne", s=0, t=0, p=4)] * 4, {}, 4, id="branch not taken: 1"),
        pytest.param([encoder.encode("jal", d=0, a=4)] * 4, {}, 4, id="jump: 1"),
        pytest.param([LOAD, USE], {"a0": OWN}, 3, id="load, own tile: dependent issue at 2"),
        pytest.param([LOAD, USE], {"a0": OWN_GROUP}, 5, id="load, same group: dependent issue at 4"),
        pytest.param([LOAD, USE], {"a0": OTHER_GROUP}, 7, id="load, other group: dependent issue at 6"),
        pytest.param([LOAD, ADD, ADD, ADD], {"a0": OTHER_GROUP}, 4, id="load: others go on"),
        pytest.param([encoder.encode("sw", t=A1, s=A0, q=0)] * 4, {"a0": OWN}, 4, id="store: 1"),
        pytest.param([encoder.encode("sw", t=A1, s=A0, q=0)] * 4, {"a0": OTHER_GROUP}, 4, id="store, other group: 1"),
        pytest.param(
            [encoder.encode("p_lw_post", d=T0, s=A0, o=4), encoder.encode("addi", d=A1, s=A0, o=0)],
            {"a0": OTHER_GROUP},
            2,
            id="post-increment: the address register is ready in the next cycle",
        ),
        pytest.param([encoder.encode("mul", d=T0, s=A1, t=A2), USE], {}, 4, id="mul: dependent issue at 3"),
        pytest.param([PRODUCT, USE], {}, 4, id="pv.sdotsp.b: dependent issue at 3"),
        pytest.param([PRODUCT, PRODUCT], {}, 4, id="pv.sdotsp.b into the same sum: 3"),
        pytest.param(
            [encoder.encode("pv_sdotsp_b", d=number, s=A1, t=A2) for number in (20, 21, 22, 23)],
            {},
            4,
            id="pv.sdotsp.b: one per cycle",
        ),
        pytest.param([encoder.encode("p_min", d=T0, s=A1, t=A2), USE], {}, 4, id="p.min: dependent issue at 3"),
        pytest.param(
            [encoder.encode("amoadd_w", d=T0, t=A1, s=A0), USE], {"a0": OWN}, 3, id="atomic: old value as a load"
        ),
        pytest.param(
            [encoder.encode("amoadd_w", d=20 + i, t=A1, s=A0) for i in range(4)] + [encoder.encode("fence")],
            {"a0": OWN},
            9,
            id="atomics in one bank: 2 each",
        ),
        pytest.param([LOAD, encoder.encode("fence")], {"a0": OTHER_GROUP}, 7, id="fence: until all have returned"),
    ],
)
def test_instructions(body: list[int], registers: dict[str, int], cycles: int) -> None:
    assert abs(body_cycles(body, **registers) - cycles) <= 1
    # Distances differ by two cycles, so a cycle of tolerance tells them apart; what depends on no memory is exact.
    if "a0" not in registers:
        assert body_cycles(body, **registers) == cycles


def test_eight_accesses_are_under_way() -> None:
    loads = [encoder.encode("lw", d=16 + i, s=A0, o=4 * i) for i in range(8)]
    more = [encoder.encode("lw", d=24 + i, s=A0, o=64 + 4 * i) for i in range(4)]
    # Answers come after five cycles, so that eight are enough for one access a cycle.
    assert abs(body_cycles([*loads, *more], a0=OTHER_GROUP) - 12) <= 1


def test_own_bytes_lie_in_their_tile_and_others_in_all_in_turn() -> None:
    own = [body_cycles([LOAD, USE], hart, a0=hart // 4 * TILE_BYTES + 0x7C) for hart in (0, 3, 4, 255)]
    assert own == own[:1] * 4
    # Behind them, 16 words of a tile are followed by those of the next one.
    first = TILES * TILE_BYTES
    near, group, far = (body_cycles([LOAD, USE], 0, a0=first + 64 * tile) for tile in (0, 15, 16))
    assert near == own[0]
    assert (group - near, far - near) == (2, 4)
    assert body_cycles([LOAD, USE], 0, a0=first + ROW) == near


def many(body: list[int], harts: range, registers: dict[int, int]) -> int:
    """The cycle in which the last of some harts has done a body, then slept for ever."""
    machine = pools.pool()
    code = pools.write_program(
        machine, [*body, encoder.encode("csrrs", d=A3, E=pools.COUNTER, s=0), encoder.encode("wfi")]
    )
    for hart in harts:
        machine.set_register(hart, A0, registers[hart])
        machine.start(hart, code, 0)
    assert machine.run(100_000) == "deadlock"
    return max(machine.register(hart, A3) for hart in harts)


def test_a_tile_sends_one_request_a_cycle_to_each_group() -> None:
    loads = [encoder.encode("lw", d=16 + i, s=A0, o=4 * i) for i in range(8)]
    alone = many(loads, range(1), {0: OTHER_GROUP})
    to_one = many(loads, range(4), {hart: OTHER_GROUP + TILE_BYTES * hart for hart in range(4)})
    to_all = many(loads, range(4), {hart: 16 * TILE_BYTES * hart + 64 for hart in range(4)})
    assert to_one - alone >= 3 * 8 - 8
    assert to_all - alone <= 1


def test_one_counter_for_all_takes_two_cycles_each() -> None:
    body = [encoder.encode("amoadd_w", d=T0, t=0, s=A0), encoder.encode("fence")]
    cycles = many(body, range(256), dict.fromkeys(range(256), OWN))
    assert 512 <= cycles <= 540


def test_early_pulses_are_remembered() -> None:
    machine = pools.pool()
    wait = encoder.encode("wfi")
    store = encoder.encode("sw", t=A1, s=A0, q=4)
    sleeper = pools.write_program(machine, [encoder.encode("addi")] * 64 + [wait] * 7 + [pools.ENDED])
    waker = pools.write_program(machine, [store] * 9 + [wait], 0x1000)
    machine.set_register(1, A0, pools.CONTROL)
    machine.start(0, sleeper, 0)
    machine.start(1, waker, 0)
    pools.run_to_end(machine)
    # Seven of nine were remembered, and each let one `wfi` pass.
    assert machine.counters(0)["asleep"] == 0


def test_wake_ups_by_tile_and_group() -> None:
    for offset, value, woken in (
        (4, 200, [200]),
        (8 + 4, 0b10, list(range(68, 72))),
        (0x28, 0b1000, list(range(192, 256))),
    ):
        machine = pools.pool()
        code = pools.write_program(
            machine, [encoder.encode("wfi"), encoder.encode("addi", d=A3, s=0, o=1), encoder.encode("wfi")]
        )
        store = [*[encoder.encode("addi")] * 32, encoder.encode("sw", t=A1, s=A0, q=offset), encoder.encode("wfi")]
        waker = pools.write_program(machine, store, 0x1000)
        for hart in range(1, 256):
            machine.start(hart, code, 0)
        machine.set_register(0, A0, pools.CONTROL)
        machine.set_register(0, A1, value)
        machine.start(0, waker, 0)
        assert machine.run(10_000) == "deadlock"
        assert [hart for hart in range(1, 256) if machine.register(hart, A3)] == woken


def test_dma_moves_256_bytes_a_cycle() -> None:
    def cycles(size: int) -> int:
        machine = pools.pool()
        wait = [encoder.encode("lw", d=T0, s=A0, o=0x18), encoder.encode("beq", s=T0, t=0, p=-4)]
        stores = [encoder.encode("sw", t=register, s=A0, q=4 * i) for i, register in enumerate((A1, A2, 15))]
        begin = encoder.encode("lw", d=T1, s=A0, o=0x14)
        code = pools.timed([*stores, encoder.encode("fence"), begin, encoder.encode("fence"), *wait])
        data = bytes(i * 7 & 255 for i in range(size))
        machine.write(0x80080000, data)
        for number, value in ((A0, pools.DMA), (A1, 0x80080000), (A2, 0x80000), (15, size)):
            machine.set_register(0, number, value)
        machine.start(0, pools.write_program(machine, code), 0)
        pools.run_to_end(machine)
        assert machine.read(0x80000, size) == data
        return machine.register(0, pools.A4) - machine.register(0, A3)

    assert abs(cycles(0x8000 + 0x10000) - cycles(0x8000) - 0x10000 // 256) <= 16


def test_reservations() -> None:
    load, store = encoder.encode("lr_w", d=T0, s=A0), encoder.encode("sc_w", d=T1, t=A1, s=A0)
    machine = pools.pool()
    machine.set_register(0, A0, OWN)
    machine.set_register(0, A1, 5)
    machine.start(0, pools.write_program(machine, [load, store, pools.ENDED]), 0)
    pools.run_to_end(machine)
    assert machine.register(0, T1) == 0
    assert machine.read(OWN, 4) == (5).to_bytes(4, "little")
