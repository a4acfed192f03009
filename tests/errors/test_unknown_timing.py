"""error[unknown-timing]: a platform has no timing of that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused


def test_unknown_timing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("sim", tmp_path / "program.elf", "--platform", "siracusa", "--timing", "exact")
    said = refused("unknown-timing", capsys, *arguments)
    assert "platform 'siracusa' has no timing 'exact'" in said
    assert "choose rtl or private or gvsoc" in said
