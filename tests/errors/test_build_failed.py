"""error[build-failed]: the C compiler refuses the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_build_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("build-failed", capsys, "run", relu(tmp_path), "--cflag=--no-such-flag-of-any-compiler")
    assert "--no-such-flag-of-any-compiler" in text
    assert "help: " in text
