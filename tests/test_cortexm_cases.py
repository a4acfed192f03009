"""External cases on emulated Cortex-M boards: each on one variant by its name, and, marked slow, on the main three."""

from __future__ import annotations

import zlib

import pytest

from support import Case, every_case
from tilewright.api import Options, run_case
from tilewright.codegen.build import STRICT

VARIANTS = ("cortex-m4", "cortex-m7", "cortex-m55", "cortex-m33", "cortex-m0plus")
MAIN = VARIANTS[:3]


def judge(case: Case, variant: str) -> None:
    """Right, or refused because a memory is too small, with the bytes."""
    result = run_case(case.name, case.network, Options(platform=variant), flags=STRICT)
    fits = result.status == "pass"
    assert fits or ("does-not-fit" in result.detail and "bytes" in result.detail), result.detail


LARGE = 600_000
"""Bytes of models that would take minutes on a core without an FPU."""


@every_case
@pytest.mark.cases("deeploy", "standard_networks")
def test_cases_on_one_board(case: Case) -> None:
    boards = VARIANTS if case.network.stat().st_size < LARGE else MAIN
    judge(case, boards[zlib.crc32(case.name.encode()) % len(boards)])


@pytest.mark.slow
@pytest.mark.cases("deeploy", "standard_networks")
@pytest.mark.parametrize("variant", MAIN)
def test_cases_on_every_board(case: Case, variant: str) -> None:
    judge(case, variant)
