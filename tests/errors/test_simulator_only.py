"""error[simulator-only]: a network for a platform that programs are only simulated on."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


@pytest.mark.parametrize("command", ["compile", "run", "plan"])
def test_simulator_only(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("simulator-only", capsys, command, relu(tmp_path), "--platform", "siracusa")
    assert "platform 'siracusa' has no code that networks could be compiled to" in said
    assert "generic, scratchpad" in said
