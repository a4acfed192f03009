"""ONNX's own node tests: compiled to C, built, run and compared; results.txt says what becomes of each."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from onnx_models import read
from onnx_nodes.runner import NODE_TESTS, Outcome, run_all
from sampling import Sampler
from support import Golden
from tilewright.api import find_cases
from tilewright.api.cases import UNSUPPORTED

CASES, PASSING = 1765, 1400
SEVERAL = ""
"""Stands for the operators of a test that has more than one, mostly what another test's operator expands to."""


def chosen(names: list[str], sampler: Sampler) -> list[str]:
    """Of the tests of each operator at least one."""
    families: dict[str, list[str]] = defaultdict(list)
    for name in names:
        nodes = read(NODE_TESTS / name.partition("/")[0] / "model.onnx").graph.node
        families[nodes[0].op_type if len(nodes) == 1 else SEVERAL].append(name)
    return [name for op, members in families.items() for name in sampler(members, every=10, family=op)]


def test_results_are_as_listed(pytestconfig: pytest.Config, sampler: Sampler) -> None:
    found = sorted(name for name, _ in find_cases([NODE_TESTS]))
    outcomes = run_all(chosen(found, sampler))
    wrong = [o for o in outcomes if not _is_fine(o)]
    assert not wrong, "\n".join(f"{o.line} {o.detail}" for o in wrong)
    golden = Golden(Path(__file__).parent, update=bool(pytestconfig.getoption("--update-goldens")))
    lines = {line.split()[0]: line for line in (golden.folder / "results.txt").read_text().splitlines()}
    lines |= {o.name: o.line for o in outcomes}
    golden("results.txt", "".join(f"{lines.get(name, name)}\n" for name in found))
    assert len(found) == CASES
    assert sum(line.split()[1] == "pass" for line in lines.values()) >= PASSING


def _is_fine(outcome: Outcome) -> bool:
    """Passed, or refused by an error that says why."""
    return outcome.status == "pass" or (outcome.status == "unsupported" and outcome.code in UNSUPPORTED)
