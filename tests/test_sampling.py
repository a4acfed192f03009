"""What runs of a family of tests, on which day."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sampling import TODAY, Sampler, seed_of

pytest_plugins = ["pytester"]

MEMBERS = [f"m{i}" for i in range(20)]
TESTS = """
import pytest

@pytest.mark.sample(every=4, by=("platform",))
@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("platform", ["a", "b", "c"])
def test_family(platform, number): pass

@pytest.mark.sample(every=5)
@pytest.mark.parametrize("number", range(20))
def test_other(number): pass

def test_alone(): pass

@pytest.mark.sample(every=2, family="both", by=("way",))
@pytest.mark.parametrize("way", range(9))
def test_first(way): pass

@pytest.mark.sample(every=2, family="both", by=("way",))
@pytest.mark.parametrize("way", range(9))
def test_second(way): pass
"""


def test_without_a_seed_all_run() -> None:
    assert Sampler(None)(MEMBERS, every=6, family="f") == MEMBERS


@pytest.mark.parametrize("every", [1, 3, 6, 100])
def test_every_member_runs_once_in_so_many_days(every: int) -> None:
    days = min(every, len(MEMBERS))
    run = [Sampler(seed)(MEMBERS, every=every, family="f") for seed in range(700_000, 700_000 + days)]
    assert all(run)
    assert sorted(member for members in run for member in members) == sorted(MEMBERS)
    assert max(map(len, run)) - min(map(len, run)) <= 1


def test_families_begin_at_different_members() -> None:
    assert len({tuple(Sampler(0)(MEMBERS, every=10, family=f"f{i}")) for i in range(30)}) > 5


def test_no_members() -> None:
    assert Sampler(1)([], every=3, family="f") == []


def test_a_day_is_one_of_utc() -> None:
    before, seed, after = datetime.now(UTC), seed_of(TODAY), datetime.now(UTC)
    assert before.toordinal() <= seed <= after.toordinal()
    assert seed_of("12") == 12


@pytest.fixture
def tree(pytester: pytest.Pytester, pytestconfig: pytest.Config) -> pytest.Pytester:
    """Tests beside this folder's conftest.py."""
    top = pytestconfig.rootpath / "tests"
    pytester.makeconftest((top / "conftest.py").read_text())
    pytester.makeini(f"[pytest]\npythonpath = {top}\nmarkers =\n    sample\n    cases\n")
    (pytester.path / "test_families.py").write_text(TESTS)
    return pytester


def names(tree: pytest.Pytester, *options: str) -> list[str]:
    lines = tree.runpytest("--collect-only", "-q", "-p", "no:xdist", *options).outlines
    return [line.partition("::")[2] for line in lines if "::" in line]


def test_marked_families_are_sampled(tree: pytest.Pytester) -> None:
    every = names(tree)
    assert len(every) == 18 + 20 + 1 + 2 * 9
    days = [names(tree, "--sample-seed", str(seed)) for seed in range(5)]
    for run in days:
        assert "test_alone" in run
        assert {name[len("test_family[") :][0] for name in run if "family" in name} == {*"abc"}
        assert sum("other" in name for name in run) == 4
        assert sorted(name[-2] for name in run if "first" in name or "second" in name) == [*"012345678"]
    assert {name for run in days for name in run} == {*every}


def test_what_is_asked_for_by_name_runs(tree: pytest.Pytester) -> None:
    assert names(tree, "--sample-seed", "3", "-k", "test_other and 17") == ["test_other[17]"]


def test_the_seed_is_told(tree: pytest.Pytester) -> None:
    tree.runpytest("-q", "-k", "alone", "--sample-seed", "7", "-p", "no:xdist").stdout.fnmatch_lines(
        ["*--sample-seed 7;*"]
    )


def test_a_seed_that_is_none(tree: pytest.Pytester) -> None:
    tree.runpytest("--sample-seed", "monday").stderr.fnmatch_lines(["*whole number or 'today', not 'monday'*"])
