"""error[bad-operator]: a user's operator file does not load."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_bad_operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "ops"
    folder.mkdir()
    (folder / "broken_operator.py").write_text("import no_such_module_at_all\n")
    text = refused("bad-operator", capsys, "compile", relu(tmp_path), "--ops", folder, "-o", tmp_path / "c")
    assert "broken_operator.py" in text
    assert "ModuleNotFoundError" in text
