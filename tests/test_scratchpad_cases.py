"""External cases on scratchpads: each in one of the ways of `benchmarks/scratchpad_matrix.py`, chosen by its name.

`python -m benchmarks scratchpad_matrix` runs every case in all of them.
"""

from __future__ import annotations

import zlib
from itertools import product

import pytest

from support import Case, every_case
from tilewright.api import Options, run_case
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.machine.target import Sizes
from tilewright.sim import EmulatedMachine, Moment

MOMENTS: tuple[Moment, ...] = ("start", "wait", "random")
WAYS = tuple(product((4096, 16384, 65536, 262144), ("L2", "L3"), (1, 8), MOMENTS))


@every_case
@pytest.mark.cases("deeploy", "standard_networks")
def test_cases_on_scratchpads(case: Case) -> None:
    """Right, or refused because a memory is too small."""
    l1, home, cores, moment = WAYS[zlib.crc32(case.name.encode()) % len(WAYS)]
    options = Options(platform="scratchpad", sizes=Sizes({"L1": l1}, home, cores))
    flags = (*STRICT, *SANITIZE, "-O0")
    result = run_case(case.name, case.network, options, flags=flags, machine=EmulatedMachine(moment, 1))
    fits = result.status == "pass"
    assert fits or ("does-not-fit" in result.detail and "needs at least" in result.detail), result.detail
