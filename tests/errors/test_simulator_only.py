"""error[simulator-only]: a network for a platform that programs are only simulated on."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu

MACHINE = """\
name: board
summary: Runs programs, but nobody has written kernels for it.
channels_last: 0
alignment: 8
memories: {RAM: {bytes: 65536}}
engines: {core: {kind: cores, count: 1, memory: RAM}}
kernels: []
"""


@pytest.mark.parametrize("command", ["compile", "run", "plan"])
def test_simulator_only(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = tmp_path / "board"
    board.mkdir()
    (board / "platform.yaml").write_text(MACHINE)
    said = refused("simulator-only", capsys, command, relu(tmp_path), "--platform", board)
    assert "platform 'board' has no code that networks could be compiled to" in said
    assert "generic, mempool, mempool-1024, mempool-16, mempool-ita, scratchpad, siracusa, snitch" in said
