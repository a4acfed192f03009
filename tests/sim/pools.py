"""Machines of many small cores for tests: the tiles of platform `mempool` without caches, and programs for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim import encoder, machines
from tilewright import _native
from tilewright.machine.target import load_platform

L1_BYTES, CODE = 0x100000, 0x80000000
CONTROL, DMA = 0x40000000, 0x40010000
ENDED = encoder.encode("ebreak")
COUNTER, NUMBER = 0xB00, 0xF14
A0, A1, A2, A3, A4, T0, T1 = 10, 11, 12, 13, 14, 5, 6


def pool(changes: Mapping[str, int] | None = None) -> _native.Machine:
    """256 harts in tiles of four, next to 1024 banks; instructions come at once."""
    timing = load_platform("mempool").timings["rtl"]
    group = timing.harts["pool"]
    machine = _native.Machine()
    machine.add_memory(name="L1", base=0, size=L1_BYTES, banks=1024, executable=False)
    machine.add_memory(name="L2", base=CODE, size=0x100000, banks=4, executable=True)
    machine.add_harts(
        name=group.name,
        extensions=list(group.extensions),
        harts={
            "count": group.count,
            "first_id": 0,
            "near_banks": 0,
            "outstanding_loads": group.outstanding_loads,
            "early_counters": 0,
            "clock_numerator": 1,
            "clock_denominator": 1,
        },
        pipeline=dict(group.pipeline),
        fetch=machines.FETCH,
        cycles=dict(group.cycles),
        near="L1",
        tiles={**dict(group.tiles or {}), **(changes or {})},
    )
    for name in ("control", "dma"):
        device = timing.devices[name]
        machine.add_device(device.kind, device.name, device.base, device.size, dict(device.settings))
    return machine


def write_program(machine: _native.Machine, code: Sequence[int], at: int = 0) -> int:
    """Puts code behind the start of L2; its address."""
    machine.write(CODE + at, encoder.word_bytes(*code))
    return CODE + at


def timed(body: Sequence[int]) -> list[int]:
    """A body between two readings of the cycle counter, into a3 and a4."""
    read = [encoder.encode("csrrs", d=register, E=COUNTER, s=0) for register in (A3, A4)]
    return [read[0], *body, read[1], ENDED]


def run_to_end(machine: _native.Machine, cycles: int = 100_000) -> None:
    """Runs until a hart comes to its `ebreak`."""
    assert machine.run(cycles) == "fault"
    fault = machine.fault()
    assert fault is not None
    assert fault["kind"] == "trap", fault


def cycles_of(body: Sequence[int], hart: int = 0, **registers: int) -> int:
    """What a body takes on one hart, from one reading of the counter to the next."""
    machine = pool()
    numbers = {"a0": A0, "a1": A1, "a2": A2}
    for name, value in registers.items():
        machine.set_register(hart, numbers[name], value)
    machine.start(hart, write_program(machine, timed(body)), 0)
    run_to_end(machine)
    return machine.register(hart, A4) - machine.register(hart, A3)
