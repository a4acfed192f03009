"""Small machines for tests: a hart or a few, one memory, and code that is written straight into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright import _native
from tilewright.machine.timing import INSTRUCTION_CLASSES

BASE = 0x1C000000
SIZE = 0x10000
CODE = BASE
DATA = BASE + 0x8000

EXTENSIONS = ["rv32i", "rv32m", "zicsr", "rv32a", "rv32c", "rv32f", "xpulpv2"]
PIPELINE = dict.fromkeys(INSTRUCTION_CLASSES, 1) | {
    "jump_register_written": 0,
    "fp_load_again": 0,
    "taken_branch": 0,
    "divide_signed_zero": 0,
    "divide_unsigned_zero": 0,
    "divide_negative": 0,
}
FETCH = {
    "sets": 8,
    "ways": 4,
    "shared_banks": 0,
    "shared_sets": 0,
    "shared_ways": 0,
    "refill_cycles": 0,
    "memory_cycles": 0,
}


def machine(
    harts: int = 1,
    base: int = BASE,
    size: int = SIZE,
    extensions: Sequence[str] = EXTENSIONS,
    pipeline: Mapping[str, int] = PIPELINE,
) -> _native.Machine:
    """Harts with all instructions, one cycle each, and one memory."""
    made = _native.Machine()
    made.add_memory(name="memory", base=base, size=size, banks=1, executable=True)
    made.add_harts(
        name="harts",
        extensions=extensions,
        harts={
            "count": harts,
            "first_id": 0,
            "near_banks": 0,
            "early_counters": 0,
            "clock_numerator": 1,
            "clock_denominator": 1,
        },
        pipeline=pipeline,
        fetch=FETCH,
        cycles={"memory": 1, "devices": 1},
        near="memory",
    )
    return made


def words(*encodings: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in encodings)
