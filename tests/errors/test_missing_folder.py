"""error[missing-folder]: a folder of operators does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_missing_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("missing-folder", capsys, "compile", relu(tmp_path), "--ops", tmp_path / "absent")
    assert "absent" in text
