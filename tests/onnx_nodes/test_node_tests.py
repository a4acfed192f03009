"""ONNX's own node tests: compiled to C, built, run and compared; results.txt says what becomes of each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from onnx_nodes.runner import Outcome, run_all
from support import Golden
from tilewright.api.cases import UNSUPPORTED

CASES, PASSING = 1765, 1400


def test_results_are_as_listed(pytestconfig: pytest.Config) -> None:
    outcomes = run_all()
    wrong = [o for o in outcomes if not _is_fine(o)]
    assert not wrong, "\n".join(f"{o.line} {o.detail}" for o in wrong)
    counts = Counter(o.status for o in outcomes)
    assert counts.total() == CASES
    assert counts["pass"] >= PASSING, counts
    golden = Golden(Path(__file__).parent, update=bool(pytestconfig.getoption("--update-goldens")))
    golden("results.txt", "".join(f"{o.line}\n" for o in outcomes))


def _is_fine(outcome: Outcome) -> bool:
    """Passed, or refused by an error that says why."""
    return outcome.status == "pass" or (outcome.status == "unsupported" and outcome.code in UNSUPPORTED)
