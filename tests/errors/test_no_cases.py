"""error[no-cases]: there is nothing to test."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_no_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relu(tmp_path)
    text = refused("no-cases", capsys, "test", tmp_path)
    assert "help: a case is" in text
