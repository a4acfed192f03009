"""Where a program spends its time: cycles by function."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tilewright.sim.program import ElfProgram
from tilewright.sim.simulator import Simulator

UNKNOWN = "(no symbol)"


class FunctionCycles(Struct, frozen=True):
    """Cycles that harts of one group were awake in a function; calls to others are not among them."""

    group: str
    function: str
    line: str
    """Where the function begins in its source."""
    cycles: int
    share: float
    """Of all cycles of the group."""


def profile_of(simulator: Simulator) -> tuple[FunctionCycles, ...]:
    """By group of harts, most cycles first; nothing where no profile was recorded."""
    if simulator.program is None or not simulator.look.profile:
        return ()
    found: list[FunctionCycles] = []
    for index, group in enumerate(simulator.timing.harts):
        found += _group(simulator.program, group, *simulator.native.profile(index))
    return tuple(found)


def _group(
    program: ElfProgram, group: str, addresses: NDArray[np.uint32], cycles: NDArray[np.uint64]
) -> list[FunctionCycles]:
    sums: dict[int, int] = {}
    names: dict[int, str] = {}
    for address, count in zip(addresses.tolist(), cycles.tolist(), strict=True):
        function = program.function_at(address)
        start = function.address if function else -1
        names.setdefault(start, function.name if function else UNKNOWN)
        sums[start] = sums.get(start, 0) + count
    total = sum(sums.values()) or 1
    return [
        FunctionCycles(group, names[start], program.line_at(start) if start >= 0 else "", count, count / total)
        for start, count in sorted(sums.items(), key=lambda each: (-each[1], each[0]))
    ]
