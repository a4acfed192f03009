"""error[unknown-permission]: --allow names nothing that may be allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


@pytest.mark.parametrize("command", ["compile", "run", "plan"])
def test_unknown_permission(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("unknown-permission", capsys, command, relu(tmp_path), "--allow", "ita-softmx")
    assert "nothing that may be allowed is named 'ita-softmx'" in said
    assert "ita-softmax: attention runs on ITA" in said
    assert "help: give --allow one of these names" in said
