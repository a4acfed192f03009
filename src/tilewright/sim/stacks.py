"""Where the stacks of harts end, from symbols of a linker script.

A group of harts has stacks of one size, the first hart's at the top: `__NAME_stack_top` and `__NAME_stack_size`, where
NAME is the beginning of the group's name (`__cl_stack_top` for `cluster`); or at the bottom: `__NAME_stack_base`.
Without these symbols nothing is known, and an overflow is not found.
"""

from __future__ import annotations

import re

from tilewright.machine.timing import Timing
from tilewright.sim.program import ElfProgram

_PLACE = re.compile(r"__(\w+)_stack_(top|base)")


def stack_ends(program: ElfProgram, timing: Timing) -> dict[int, int]:
    """The lowest address of each hart's stack, by the hart's number in the machine."""
    ends: dict[int, int] = {}
    for name, place in program.symbols.items():
        match = _PLACE.fullmatch(name)
        size = program.symbols.get(f"__{match[1]}_stack_size") if match else None
        if match is None or size is None:
            continue
        for group in timing.harts.values():
            if group.name.startswith(match[1]):
                first = timing.first_hart(group.name)
                # The value of a symbol for a size is the size.
                step, from_first = (-size.address, -size.address) if match[2] == "top" else (size.address, 0)
                ends |= {first + index: place.address + from_first + index * step for index in range(group.count)}
    # Of a damaged table of symbols, whatever is no address says nothing.
    return {hart: low for hart, low in ends.items() if 0 <= low < 1 << 32}
