"""The pipeline of the timing `rtl` against microbenchmarks that were measured on the RTL of the core.

The measurements were made on one core with ideal instruction memory, and a data memory of one or five cycles. So are
these: the pipeline of the platform, no instruction cache, one memory next to the core and one at five cycles.
"""

from __future__ import annotations

import pytest

from sim import encoder, machines
from tilewright import _native
from tilewright.machine.target import load_platform

A0, A1, A2, A3, A4, T0, T1 = 10, 11, 12, 13, 14, 5, 6
FAR = 0x20000000
TOLERANCE = 2
"""Cycles; reading the counter costs some of them, on the RTL as here."""


def measured(body: list[int], **registers: int) -> int:
    """Cycles between two readings of the counter around a body of instructions."""
    machine = _native.Machine()
    machine.add_memory(name="memory", base=machines.BASE, size=machines.SIZE, banks=1, executable=True)
    machine.add_memory(name="far", base=FAR, size=0x1000, banks=1, executable=False)
    group = load_platform("siracusa").timings["rtl"].harts["cluster"]
    machine.add_harts(
        name="core",
        extensions=list(group.extensions),
        harts={
            "count": 1,
            "first_id": 0,
            "near_banks": 0,
            "early_counters": 0,
            "clock_numerator": 1,
            "clock_denominator": 1,
        },
        pipeline=dict(group.pipeline),
        fetch=machines.FETCH,
        cycles={"memory": 1, "far": 5, "devices": 1},
        near="memory",
    )
    counter = 0xB00
    program = [
        encoder.encode("csrrs", d=A3, E=counter, s=0),
        *body,
        encoder.encode("csrrs", d=A4, E=counter, s=0),
        encoder.encode("ebreak"),
    ]
    machine.write(machines.CODE, encoder.word_bytes(*program))
    machine.start(0, machines.CODE, 0)
    for name, value in registers.items():
        machine.set_register(0, {"a0": A0, "a1": A1, "a2": A2}[name], value)
    assert machine.run(100_000) == "fault", "the program ends with ebreak"
    fault = machine.fault()
    assert fault is not None
    assert fault["kind"] == "trap"
    return machine.register(0, A4) - machine.register(0, A3)


def load(target: int, offset: int = 0) -> int:
    return encoder.encode("lw", d=target, o=offset, s=A0)


ADD_LOADED = encoder.encode("addi", d=T1, s=T0, o=1)
INDEPENDENT = encoder.encode("addi", d=A1, s=A1, o=1)
TAKEN = encoder.encode("beq", s=0, t=0, p=4)
DIVIDE = encoder.encode("div", d=T0, s=A1, t=A2)
CALL_NEXT = [
    encoder.encode("auipc", d=T0, u=0),
    encoder.encode("addi", d=T0, s=T0, o=12),
    encoder.encode("jalr", d=T1, o=0, s=T0),
]
NEAR_DATA, FAR_DATA = machines.DATA, FAR + 0x100


@pytest.mark.parametrize(
    ("body", "registers", "cycles"),
    [
        pytest.param([load(T0, 4 * (i % 64)) for i in range(256)], {"a0": NEAR_DATA}, 256, id="256 loads"),
        pytest.param([load(T0), ADD_LOADED] * 128, {"a0": NEAR_DATA}, 384, id="128 loads, each used at once"),
        pytest.param([load(T0), INDEPENDENT, ADD_LOADED] * 64, {"a0": FAR_DATA}, 448, id="64 loads of 5 cycles, used"),
        pytest.param([load(T0)] * 128, {"a0": NEAR_DATA + 1}, 256, id="128 misaligned loads"),
        pytest.param([load(T0)] * 128, {"a0": FAR_DATA + 1}, 1281, id="128 misaligned loads of 5 cycles"),
        pytest.param([TAKEN] * 128, {}, 387, id="128 taken branches"),
        pytest.param(CALL_NEXT * 32, {}, 161, id="32 jumps through a register just written"),
        pytest.param([encoder.encode("mulh", d=T0, s=A1, t=A2)] * 64, {}, 323, id="64 mulh"),
        pytest.param([DIVIDE] * 16, {"a1": 1000, "a2": 0x9876}, 307, id="16 div by 0x9876"),
        pytest.param([DIVIDE] * 16, {"a1": 1000, "a2": 1}, 547, id="16 div by 1"),
        pytest.param([DIVIDE] * 16, {"a1": 1000, "a2": 0x40000000}, 67, id="16 div by 0x40000000"),
        pytest.param([DIVIDE] * 16, {"a1": 1000, "a2": 0}, 563, id="16 div by 0"),
        pytest.param(
            [encoder.encode("p_elw", d=T0, o=0, s=A0)] * 64, {"a0": FAR_DATA}, 449, id="64 event loads of 5 cycles"
        ),
    ],
)
def test_microbenchmarks(body: list[int], registers: dict[str, int], cycles: int) -> None:
    assert measured(body, **registers) == pytest.approx(cycles, abs=TOLERANCE)
