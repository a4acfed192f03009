"""error[missing-gvsoc]: GVSoC was asked for, and is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


@pytest.fixture(autouse=True)
def nothing_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GVSOC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_not_on_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("missing-gvsoc", capsys, "run", relu(tmp_path), "--platform", "siracusa", "--simulator", "gvsoc")
    assert "there is no 'gvsoc' on PATH" in text
    assert "help: build it" in text


def test_a_variable_that_names_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GVSOC", "/no/such/gvsoc")
    text = refused("missing-gvsoc", capsys, "run", relu(tmp_path), "--platform", "siracusa", "--simulator", "gvsoc")
    assert "GVSOC names '/no/such/gvsoc'" in text
