"""Fixtures and options for all tests.

External cases are optional: a test marked `cases` is not collected on a machine that has none, and an argument `case`
of such a test runs over the cases below the folders named by the marker: `@pytest.mark.cases("standard_networks")`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support import GOLDEN_FOLDER, Golden, cases_folder, find_cases


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write tests/golden instead of comparing with it")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("cases")
    if marker is None:
        raise pytest.UsageError(f"{metafunc.definition.nodeid} takes a `case`, so it needs @pytest.mark.cases(...)")
    top = cases_folder()
    found = find_cases(top, marker.args) if top else []
    if top and not found:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: no cases below {', '.join(marker.args) or top}")
    metafunc.parametrize("case", found, ids=[case.name for case in found])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if cases_folder() is not None:
        return
    needing = [item for item in items if item.get_closest_marker("cases")]
    items[:] = [item for item in items if not item.get_closest_marker("cases")]
    config.hook.pytest_deselected(items=needing)


@pytest.fixture(scope="session")
def cases() -> Path | None:
    """The folder of external cases, where this machine has one."""
    return cases_folder()


@pytest.fixture(scope="session")
def golden(pytestconfig: pytest.Config) -> Golden:
    """`golden("name.txt", text)` compares text with tests/golden/name.txt."""
    return Golden(GOLDEN_FOLDER, update=bool(pytestconfig.getoption("--update-goldens")))
