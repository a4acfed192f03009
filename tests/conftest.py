"""Fixtures and options for all tests.

External cases are optional: a test marked `cases` is not collected on a machine that has none, and an argument `case`
of such a test runs over the cases below the folders named by the marker: `@pytest.mark.cases("standard_networks")`.
Families of tests marked `sample` are told in sampling.py.
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from build_cache import BuildCache
from compilers import combinations
from sampling import TODAY, Sampler, left_out, seed_of
from support import GOLDEN_FOLDER, Golden, cases_folder, find_cases
from tilewright.core.cache import VARIABLE

MATRIX = "test_flag_matrix.py"
BYTES_KEPT = 1 << 30
"""Of built programs, from run to run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write tests/golden instead of comparing with it")
    parser.addoption(
        "--sample-seed",
        metavar=f"NUMBER|{TODAY}",
        help=f"of families of tests marked `sample`, run some by this number, or by the day ({TODAY}); else all",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The day is looked up once, before there are workers: one of them may start behind midnight."""
    # As in the command line: plans are many small values, and it is slow to look for dead ones again and again.
    gc.set_threshold(50_000, 20, 100)
    text = config.option.sample_seed
    if text is not None:
        try:
            config.option.sample_seed = str(seed_of(text))
        except ValueError:
            raise pytest.UsageError(f"--sample-seed takes a whole number or '{TODAY}', not '{text}'") from None


def sampler_of(config: pytest.Config) -> Sampler:
    text = config.getoption("--sample-seed")
    return Sampler(None if text is None else int(text))


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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Last, so that families have the members that other options leave."""
    gone = [item for item in items if item.get_closest_marker("cases")] if cases_folder() is None else []
    absent = {item.nodeid for item in gone}
    gone += left_out([item for item in items if item.nodeid not in absent], sampler_of(config))
    absent |= {item.nodeid for item in gone}
    items[:] = [item for item in items if item.nodeid not in absent]
    config.hook.pytest_deselected(items=gone)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed = sampler_of(config).seed
    if seed is not None:
        terminalreporter.write_line(f"families of tests were sampled by --sample-seed {seed}; without it, all run")
    ended = [report for status in ("passed", "failed") for report in terminalreporter.getreports(status)]
    if built := sum(f"{MATRIX}::test_results" in report.nodeid for report in ended):
        terminalreporter.write_line(f"the flag matrix: {built} compilations of {len(combinations())} combinations")


@pytest.fixture
def only_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of kernels are made of small layers, for which loop nests may be faster: these take the kernels all the
    same."""

    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr("tilewright.plan.select._nest_is_faster", never)


@pytest.fixture(scope="session")
def sampler(pytestconfig: pytest.Config) -> Sampler:
    """For tests that run over a family themselves."""
    return sampler_of(pytestconfig)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Measurements of tests are not those of whoever runs them."""
    os.environ[VARIABLE] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def cases() -> Path | None:
    """The folder of external cases, where this machine has one."""
    return cases_folder()


@pytest.fixture(scope="session")
def golden(pytestconfig: pytest.Config) -> Golden:
    """`golden("name.txt", text)` compares text with tests/golden/name.txt."""
    return Golden(GOLDEN_FOLDER, update=bool(pytestconfig.getoption("--update-goldens")))


def build_cache(config: pytest.Config) -> BuildCache:
    return BuildCache(config.rootpath / "build" / "tests")


@pytest.fixture(scope="session", autouse=True)
def built_once(pytestconfig: pytest.Config) -> Iterator[None]:
    """A program that an earlier test or run has built is not built again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module("tilewright.codegen.build"), "subprocess", build_cache(pytestconfig))
        yield


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        build_cache(config).trim(BYTES_KEPT)
