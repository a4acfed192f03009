"""Golden files and external cases behave as the tests that use them expect."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import CASES_VARIABLE, GOLDEN_FOLDER, Golden, cases_folder, find_cases


def test_golden_writes_then_compares(tmp_path: Path) -> None:
    Golden(tmp_path, update=True)("pass/fold.txt", "one\ntwo\n")
    compare = Golden(tmp_path, update=False)
    compare("pass/fold.txt", "one\ntwo\n")
    with pytest.raises(AssertionError, match=r"(?s)-two\n\+three\n.*--update-goldens"):
        compare("pass/fold.txt", "one\nthree\n")
    with pytest.raises(AssertionError, match=r"other\.txt is missing"):
        compare("other.txt", "")


def test_golden_sees_the_last_line_break(tmp_path: Path) -> None:
    Golden(tmp_path, update=True)("a.txt", "one\n")
    with pytest.raises(AssertionError, match="--update-goldens"):
        Golden(tmp_path, update=False)("a.txt", "one")


def test_golden_fixture_uses_the_folder_of_the_repository(golden: Golden) -> None:
    assert golden.folder == GOLDEN_FOLDER == Path(__file__).parent / "golden"


def test_cases_are_found_in_both_layouts(tmp_path: Path) -> None:
    for name in ("zoo/net/network.onnx", "pairs/x.onnx", "pairs/x.npz", "pairs/lonely.onnx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [case.name for case in find_cases(tmp_path, ())] == ["pairs/x", "zoo/net"]
    assert [case.network for case in find_cases(tmp_path, ("zoo",))] == [tmp_path / "zoo" / "net" / "network.onnx"]


def test_cases_folder_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CASES_VARIABLE, raising=False)
    assert cases_folder() is None
    monkeypatch.setenv(CASES_VARIABLE, str(tmp_path))
    assert cases_folder() == tmp_path
    monkeypatch.setenv(CASES_VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(NotADirectoryError, match=CASES_VARIABLE):
        cases_folder()
