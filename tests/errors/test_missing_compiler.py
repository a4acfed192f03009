"""error[missing-compiler]: no C compiler of that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_a_named_compiler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("missing-compiler", capsys, "run", relu(tmp_path), "--cc", "no-such-compiler")
    assert "'no-such-compiler' is not on PATH" in text
    assert "help: install one" in text


def test_the_default_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refused("missing-compiler", capsys, "run", relu(tmp_path))
