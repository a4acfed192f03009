"""External cases on the simulated Siracusa, checks on: each with one home, size of L1, number of cores,
and with or without NEUREKA, by its name.

`python -m benchmarks chip_matrix` runs all combinations.
"""

from __future__ import annotations

import zlib
from itertools import product

import pytest

from support import Case, every_case
from tilewright.api import Options, run_case
from tilewright.codegen.build import STRICT
from tilewright.machine.target import Sizes

WAYS = tuple(product(("L2", "L3"), (16384, 65536, 229376), (1, 8), ((), ("neureka",))))


@every_case
@pytest.mark.cases("deeploy", "standard_networks")
def test_cases_on_siracusa(case: Case) -> None:
    """Right, or refused because a memory is too small."""
    home, l1, cores, without = WAYS[zlib.crc32(case.name.encode()) % len(WAYS)]
    options = Options(platform="siracusa", sizes=Sizes({"L1": l1}, home, cores, without))
    result = run_case(case.name, case.network, options, flags=STRICT)
    fits = result.status == "pass"
    assert fits or ("does-not-fit" in result.detail and "needs at least" in result.detail), result.detail
