"""External cases on Snitch and MemPool, with and without ITA, checks on: each on one of them, by its name.

Those with larger files take minutes there: `python -m benchmarks chip_matrix` runs all cases on all of them.
"""

from __future__ import annotations

import zlib

import pytest

from support import Case, every_case
from tilewright.api import Options, run_case
from tilewright.codegen.build import STRICT
from tilewright.machine.target import Sizes

WAYS: tuple[tuple[str, dict[str, int]], ...] = (
    *((platform, {}) for platform in ("snitch", "snitch-ita", "mempool", "mempool-ita")),
    ("snitch", {"L1": 16384}),
    ("mempool", {"L1": 131072}),
)
MOST_BYTES = 256 << 10


@every_case
@pytest.mark.cases("deeploy", "standard_networks")
def test_cases_on_many_cores(case: Case) -> None:
    """Right, or refused because a memory is too small."""
    if case.network.stat().st_size > MOST_BYTES:
        pytest.skip("large networks run in the benchmark")
    platform, memories = WAYS[zlib.crc32(case.name.encode()) % len(WAYS)]
    result = run_case(case.name, case.network, Options(platform=platform, sizes=Sizes(memories)), flags=STRICT)
    fits = result.status == "pass"
    assert fits or ("does-not-fit" in result.detail and "needs at least" in result.detail), result.detail
